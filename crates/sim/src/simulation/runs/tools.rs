//! Tools that go well, badly, slowly, or nobody knows how.

use super::super::luck::Luck;
use super::super::order::pick;
use super::deeds::{Deeds, Place};
use crate::lab::name;
use baton_core::credits::Credits;
use baton_core::plan::{self, Doer, Effect};
use baton_core::retry::Class;
use baton_core::rng::Rng;
use baton_core::run::Fault;
use baton_core::time::Span;
use baton_engine::run::{Called, Tool, ToolCall, ToolFailure, Toolbox};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// All of them, with what calling them twice would do and what a call costs.
pub(super) const TOOLS: [(&str, Effect, u32); 5] = [
    ("look", Effect::Pure, 0),
    ("think", Effect::Pure, 2),
    ("store", Effect::Idempotent, 0),
    ("send", Effect::Unsafe, 0),
    ("buy", Effect::Unsafe, 3),
];

/// What becomes of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Done,
    Failed(Class),
    /// It was not even made.
    NotCalled,
    /// It failed, and may have done what it does.
    Unknown {
        acted: bool,
    },
    Panic {
        acted: bool,
    },
    Hang {
        acted: bool,
    },
}

impl Fate {
    fn draw(rng: &mut Rng, hard: bool) -> Self {
        let of = if hard { 12 } else { 40 };
        let acted = rng.chance(1, 2);
        match rng.below(of) {
            0 | 1 => Self::Failed(Class::Transient),
            2 => Self::Failed(Class::Deterministic),
            3 if rng.chance(1, 3) => Self::Failed(Class::Fatal),
            4 => Self::NotCalled,
            5 => Self::Unknown { acted },
            6 => Self::Panic { acted },
            7 => Self::Hang { acted },
            _ => Self::Done,
        }
    }

    const fn acts(self) -> bool {
        matches!(
            self,
            Self::Done | Self::Unknown { acted: true } | Self::Panic { acted: true } | Self::Hang { acted: true }
        )
    }
}

struct Moody {
    luck: Arc<Luck>,
    deeds: Arc<Deeds>,
}

impl Tool for Moody {
    fn call(&self, call: ToolCall) -> Called {
        let (luck, deeds) = (self.luck.clone(), self.deeds.clone());
        Box::pin(async move {
            let (expected, found) = (&call.input["expects"], &call.input["finds"]);
            if expected != found {
                luck.violate(format!("{} of {} was told {found} for {expected}", call.step, call.agent));
            }
            let hard = call.input["hard"] == json!(true);
            let (fate, before, after) = luck.draw(|rng| {
                let fate = Fate::draw(rng, hard);
                let ms = |rng: &mut Rng| Duration::from_millis(pick(rng, &[0, 0, 5, 500, 3_000, 20_000]));
                (fate, ms(rng), ms(rng))
            });
            // Once nothing goes wrong any more, tools do not either.
            let fate = if luck.is_calm() { Fate::Done } else { fate };
            let agent = call.input["once"].as_str().map(str::to_owned);
            let flight = agent.map(|agent| deeds.begin(Place(call.run, agent, call.step.clone())));
            tokio::time::sleep(before).await;
            if fate.acts()
                && let Some(wrong) = flight.as_ref().and_then(super::deeds::Flight::act)
            {
                luck.violate(wrong);
            }
            tokio::time::sleep(after).await;
            ended(fate, &call.step).await
        })
    }
}

async fn ended(fate: Fate, step: &str) -> Result<Value, ToolFailure> {
    let failure = |code: &str, class| ToolFailure::from(Fault { class, ..Fault::new(code, "as luck would have it") });
    match fate {
        Fate::Done => Ok(json!({ "step": step })),
        Fate::Failed(class) => {
            let retry_after = (class == Class::Transient).then_some(Span::secs(1));
            Err(ToolFailure { retry_after, ..failure(class.as_str(), class) })
        }
        Fate::NotCalled => Err(ToolFailure { not_called: true, ..failure("not_started", Class::Transient) }),
        Fate::Unknown { .. } => Err(ToolFailure { may_have_acted: true, ..failure("cut_short", Class::Transient) }),
        Fate::Panic { .. } => panic!("as luck would have it"),
        Fate::Hang { .. } => std::future::pending().await,
    }
}

pub(super) fn toolbox(luck: &Arc<Luck>, deeds: &Arc<Deeds>) -> Toolbox {
    let mut all = Toolbox::default();
    for (tool, effect, price) in TOOLS {
        let about =
            plan::Tool { doer: Doer::Tool, effect, price: Credits::whole(price), timeout: None, attempts: None };
        let added = all.add(name(tool), about, Moody { luck: luck.clone(), deeds: deeds.clone() });
        added.unwrap_or_else(|e| panic!("{e}"));
    }
    all
}
