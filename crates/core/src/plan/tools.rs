//! What steps may call: the tools that an operator declared, and three that are always there.

use super::{Doer, Effect};
use crate::credits::Credits;
use crate::name::ToolName;
use crate::time::Span;
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tool {
    pub doer: Doer,
    pub effect: Effect,
    /// Of each call.
    pub price: Credits,
    /// How long a call may take; [`Span`] 0 is for ever, `None` what the run says.
    pub timeout: Option<Span>,
    /// `None` is what the run says.
    pub attempts: Option<u32>,
}

/// The tools that are known, by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tools(BTreeMap<ToolName, Tool>);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is a tool with the name {0} already")]
pub struct NameTaken(pub ToolName);

impl Tools {
    pub const BUILTIN: [(&'static str, Doer); 3] = [("sleep", Doer::Sleep), ("wait", Doer::Wait), ("ask", Doer::Ask)];

    /// Those that only wait: nothing outside changes, nothing is paid, and no call can take too long.
    pub fn builtin() -> Self {
        let waits =
            |doer| Tool { doer, effect: Effect::Pure, price: Credits::ZERO, timeout: Some(Span(0)), attempts: Some(1) };
        Self(Self::BUILTIN.map(|(name, doer)| (ToolName::reserved(name), waits(doer))).into())
    }

    /// A name means one tool.
    pub fn add(&mut self, name: ToolName, tool: Tool) -> Result<(), NameTaken> {
        if self.0.contains_key(&name) {
            return Err(NameTaken(name));
        }
        self.0.insert(name, tool);
        Ok(())
    }

    pub fn get(&self, name: &ToolName) -> Option<&Tool> {
        self.0.get(name)
    }

    pub fn names(&self) -> impl Iterator<Item = &ToolName> {
        self.0.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_builtin_name_cannot_be_taken() {
        let mut tools = Tools::builtin();
        let tool = tools.get(&ToolName::reserved("sleep")).unwrap().clone();
        assert!(tools.add(ToolName::reserved("sleep"), tool.clone()).is_err());
        assert!(tools.add(ToolName::reserved("nap"), tool).is_ok());
        assert_eq!(tools.names().map(ToolName::as_str).collect::<Vec<_>>(), ["ask", "nap", "sleep", "wait"]);
    }
}
