//! What an operator may set about the queue; handed to every decision with the definitions.

use crate::time::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// Off: nothing is taken in but what the engine asks for itself, nothing is handed out.
    pub enabled: bool,
    /// Jobs from outside that may wait in one project's lane.
    pub max_per_project: u32,
    /// Jobs from outside that may wait in all project lanes together.
    pub max_global: u32,
    /// Executions of a job whose type does not say.
    pub max_attempts: u32,
    /// How long one execution may take where the type does not say.
    pub timeout: Span,
    /// A background job that has waited this long goes before interactive ones now and then.
    pub aging: Span,
    /// Interactive jobs in a row after which an aged background job goes first.
    pub burst: u32,
    /// Ended jobs that are kept per project.
    pub retained: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            enabled: true,
            max_per_project: 100,
            max_global: 500,
            max_attempts: 2,
            timeout: Span::secs(60),
            aging: Span::secs(15),
            burst: 3,
            retained: 500,
        }
    }
}
