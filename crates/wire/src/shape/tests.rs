use super::*;
use baton_core::decision::Effect;
use baton_core::decision::question::Escalation;
use jsonschema::Validator;
use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use std::fmt::Display;
use std::str::FromStr;

fn schema<T: Shaped>() -> Validator {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    jsonschema::validator_for(generator.into_root_schema_for::<Shape<T>>().as_value()).unwrap()
}

/// Core and the schema say the same of every one of these.
#[track_caller]
fn agree<T: Shaped + FromStr + Display>(texts: impl IntoIterator<Item = String>) {
    let schema = schema::<T>();
    let mut accepted = 0;
    for text in texts {
        let read = text.parse::<T>();
        assert_eq!(schema.is_valid(&json!(text)), read.is_ok(), "{} {text:?}", T::NAME);
        accepted += usize::from(read.is_ok());
    }
    assert!(accepted > 0, "{} accepts nothing", T::NAME);
}

/// Every character alone and inside of something, and every length around the bounds.
fn texts(max: usize) -> Vec<String> {
    let mut texts: Vec<String> = (0..=0x2ff_u32).filter_map(char::from_u32).map(String::from).collect();
    texts.extend(texts.clone().iter().map(|one| format!("a{one}z")));
    texts.extend(["", ".", "..", "...", "ü", "a\n", "\u{85}"].map(str::to_owned));
    texts.extend([max - 1, max, max + 1].map(|length| "a".repeat(length)));
    texts
}

#[test]
fn names_have_the_characters_and_lengths_that_core_accepts() {
    agree::<OrgId>(texts(OrgId::MAX));
    agree::<ProjectId>(texts(ProjectId::MAX));
    agree::<TypeName>(texts(TypeName::MAX));
    agree::<ScheduleName>(texts(ScheduleName::MAX));
    agree::<SessionId>(texts(SessionId::MAX));
    agree::<Responsibility>(texts(Responsibility::MAX));
    agree::<ChoiceName>(texts(ChoiceName::MAX));
    agree::<LaneKey>(texts(LaneKey::MAX));
    agree::<PlanName>(texts(PlanName::MAX));
    agree::<ToolName>(texts(ToolName::MAX));
    agree::<SignalName>(texts(SignalName::MAX));
}

#[test]
fn ids_are_a_prefix_and_lower_case_digits() {
    fn check<T: Shaped + FromStr + Display>(id: T) {
        let text = id.to_string();
        let others = [
            text.to_uppercase(),
            text.replace('_', "-"),
            text[4..].to_owned(),
            format!("{text}0"),
            text[..text.len() - 1].to_owned(),
            format!("run_{}", &text[4..]),
            format!("{text}\n"),
        ];
        agree::<T>(others.into_iter().chain([text]));
    }
    let id = uuid::Uuid::from_u128(0x018b_cfe5_6800_7001_8000_0000_0000_00ab);
    check(JobId(id));
    check(DocId(id));
    check(DecisionId(id));
    check(KeyId(id));
    check(RunId(id));
    check(AgentId(id));
}

#[test]
fn what_core_writes_fits() {
    fn fits<T: Shaped>(values: &[Value], others: &[Value]) {
        let schema = schema::<T>();
        for value in values {
            assert!(schema.is_valid(value), "{} {value}", T::NAME);
        }
        for value in others {
            assert!(!schema.is_valid(value), "{} {value}", T::NAME);
        }
    }
    fits::<Digest>(&[json!(Digest::ZERO)], &[json!("00"), json!(1)]);
    fits::<Role>(&Role::ALL.map(|role| json!(role)), &[json!("root")]);
    fits::<CatchUp>(&[CatchUp::Skip, CatchUp::One, CatchUp::All].map(|word| json!(word)), &[json!("some")]);
    fits::<run::State>(&run::State::ALL.iter().map(|word| json!(word)).collect::<Vec<_>>(), &[json!("gone")]);
    fits::<AgentState>(&AgentState::ALL.iter().map(|word| json!(word)).collect::<Vec<_>>(), &[json!("gone")]);
    fits::<TaskState>(&TaskState::ALL.iter().map(|word| json!(word)).collect::<Vec<_>>(), &[json!("gone")]);
    fits::<StepState>(&StepState::ALL.iter().map(|word| json!(word)).collect::<Vec<_>>(), &[json!("gone")]);
    fits::<Class>(&[Class::Transient, Class::Deterministic, Class::Fatal].map(|word| json!(word)), &[json!("odd")]);
    let modes = [FailureMode::FailFast, FailureMode::Continue, FailureMode::Retry];
    fits::<FailureMode>(&modes.map(|word| json!(word)), &[json!("fail_fast")]);
    let effects = [plan::Effect::Pure, plan::Effect::Idempotent, plan::Effect::Unsafe];
    fits::<plan::Effect>(&effects.map(|word| json!(word)), &[json!("safe")]);
    fits::<plan::Priority>(&[plan::Priority::High, plan::Priority::Normal].map(|word| json!(word)), &[json!("low")]);
    fits::<Doer>(
        &[Doer::Tool, Doer::Remote, Doer::Sleep, Doer::Wait, Doer::Ask].map(|word| json!(word)),
        &[json!("nap")],
    );
    fits::<ledger::Kind>(&ledger::Kind::ALL.map(|word| json!(word)), &[json!("gift")]);
    fits::<why::Kind>(&why::Kind::ALL.map(|word| json!(word)), &[json!("lane")]);
    fits::<What>(&What::ALL.map(|word| json!(word)), &[json!("luck")]);
    fits::<Credits>(&[json!(Credits::MAX), json!(Credits::ZERO)], &[json!("-1"), json!(1), json!("1.1234567")]);
    let name: ChoiceName = "yes".parse().unwrap();
    let choices = [Effect::GoOn, Effect::Cancel, Effect::Fail]
        .map(|effect| json!(Choice { name: name.clone(), label: Some("Yes".to_owned()), effect }));
    fits::<Choice>(&choices, &[json!({ "name": "a b", "effect": "fail" }), json!({ "name": "a" })]);
    let further = Escalation { to: "cto".parse().unwrap(), within_ms: Some(1), then: Breach::Choose(name.clone()) };
    let breaches =
        [Breach::Wait, Breach::Cancel, Breach::Fail, Breach::Choose(name), Breach::Escalate(Box::new(further))];
    fits::<Breach>(&breaches.map(|breach| json!(breach)), &[json!("choose"), json!({ "escalate": {} })]);
}
