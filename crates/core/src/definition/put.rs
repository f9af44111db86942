//! Registering a job type as people do: they say what it is like, and versions are counted for them.

use super::register::added;
use super::{Class, Definitions, JobType, Key};
use crate::changes::Changes;
use crate::command::{Command, Ctx, Decision, Reads, Refusal};
use crate::dedupe::Mode;
use crate::name::{OrgId, TypeName};
use crate::world::View;
use crate::{lane, limits};

/// How names begin that Baton keeps for itself.
const RESERVED: [&str; 4] = ["baton.", "run.", "tool.", "webhook."];

/// Registers what a type is like from now on. Saying it again changes nothing; saying something else makes the
/// next version. Jobs keep the one that they were taken in with.
#[derive(Clone, Debug)]
pub struct PutJobType {
    pub org: OrgId,
    /// Whatever version it says.
    pub job_type: JobType,
}

/// What registering came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registration {
    pub job_type: JobType,
    /// There was none of this name before.
    pub made: bool,
    /// It is another version than before.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PutTypeError {
    #[error("{0} is a name that Baton keeps for itself")]
    Reserved(TypeName),
    #[error("the org has {0} job types of its own, as many as it can")]
    TooMany(usize),
    #[error("the schemas of all versions of the org's types would have more than {0} bytes together")]
    TooMuch(usize),
    #[error("{name} has {max} versions, as many as it can; register it under another name")]
    TooManyVersions { name: TypeName, max: u32 },
    #[error("{what} {why}")]
    Invalid { what: &'static str, why: String },
}

impl Refusal for PutTypeError {
    fn code(&self) -> &'static str {
        match self {
            Self::Reserved(_) => "job_type_reserved",
            Self::TooMany(_) | Self::TooMuch(_) | Self::TooManyVersions { .. } => "too_many_job_types",
            Self::Invalid { .. } => "invalid_job_type",
        }
    }
}

impl PutJobType {
    fn key(&self) -> Key {
        Key { class: Class::JobType, name: self.job_type.name.clone() }
    }

    fn check(&self, defs: &Definitions, new: bool) -> Result<(), PutTypeError> {
        // What Baton declares for itself follows its own rules.
        if !self.job_type.internal {
            bounds(&self.job_type)?;
        }
        let name = &self.job_type.name;
        let reserved = !self.job_type.internal && RESERVED.iter().any(|start| name.as_str().starts_with(start));
        let everybodys = self.org == OrgId::system();
        // One that was registered before everybody had it can still be changed.
        if reserved || new && !everybodys && defs.is_everybodys(name) {
            return Err(PutTypeError::Reserved(name.clone()));
        }
        let (count, bytes) = defs.own_size(&self.org);
        if new && count >= limits::JOB_TYPES {
            return Err(PutTypeError::TooMany(count));
        }
        if bytes + self.job_type.schema_size() > limits::JOB_TYPE_SCHEMAS {
            return Err(PutTypeError::TooMuch(limits::JOB_TYPE_SCHEMAS));
        }
        Ok(())
    }
}

/// Numbers and lengths of time, each within its limit.
fn bounds(kind: &JobType) -> Result<(), PutTypeError> {
    if kind.dedupe.mode == Mode::Once {
        let why = "must be single_flight, drop_duplicate or merge_duplicate".to_owned();
        return Err(PutTypeError::Invalid { what: "dedupe.mode", why });
    }
    let within = |what: &'static str, number: u64, min: u64, max: u64| {
        if (min..=max).contains(&number) {
            return Ok(());
        }
        Err(PutTypeError::Invalid { what, why: format!("must be a number from {min} to {max}, not {number}") })
    };
    let attempts = u64::from(limits::JOB_TYPE_ATTEMPTS);
    within("summary", kind.summary.chars().count() as u64, 0, limits::SUMMARY_CHARS as u64)?;
    within("maxAttempts", kind.max_attempts.unwrap_or(1).into(), 1, attempts)?;
    within("retry.maxFailures", kind.retry.max_failures.unwrap_or(1).into(), 1, attempts)?;
    if let lane::Rule::Own { limit, depth, .. } = &kind.lane {
        let limit = match limit {
            lane::Limit::None => 1,
            lane::Limit::At(limit) => *limit,
        };
        within("lane.limit", limit.into(), 1, limits::LANE_LIMIT.into())?;
        within("lane.depth", depth.unwrap_or(1).into(), 1, limits::LANE_DEPTH.into())?;
    }
    if !(limits::LEASE_MIN..=limits::LEASE_MAX).contains(&kind.lease) {
        return Err(PutTypeError::Invalid { what: "lease", why: "must be from 1s to 1h".to_owned() });
    }
    if kind.retry.base > kind.retry.max {
        return Err(PutTypeError::Invalid { what: "retry.base", why: "must not be longer than retry.max".to_owned() });
    }
    Ok(())
}

impl Command for PutJobType {
    type Out = Registration;
    type No = PutTypeError;

    fn org(&self) -> &OrgId {
        &self.org
    }

    fn reads(&self, _: &Definitions) -> Reads {
        Reads::definition(self.key())
    }

    fn decide(&self, view: &View<'_>, cx: &mut Ctx<'_>) -> Decision<Registration, PutTypeError> {
        let known = view.definition(&self.key());
        if let Err(no) = self.check(cx.defs, known.is_none()) {
            return Decision::Refused(no);
        }
        let versions = known.iter().flat_map(|known| known.versions.iter().rev());
        // What a configuration says may stand further back: nodes that differ would otherwise take turns for ever.
        let looked = if self.org == OrgId::system() { usize::MAX } else { 1 };
        for (version, digest) in versions.take(looked) {
            let job_type = JobType { version: *version, ..self.job_type.clone() };
            if job_type.body().digest() == *digest {
                let same = Registration { job_type, made: false, changed: false };
                return Decision::Done(same, Changes::none());
            }
        }
        let newest = known.and_then(|known| known.versions.last_key_value());
        let version = newest.map_or(1, |(version, _)| version.saturating_add(1));
        if version > limits::JOB_TYPE_VERSIONS {
            let name = self.job_type.name.clone();
            return Decision::Refused(PutTypeError::TooManyVersions { name, max: limits::JOB_TYPE_VERSIONS });
        }
        let job_type = JobType { version, ..self.job_type.clone() };
        let body = job_type.body();
        if body.len() > limits::JOB_TYPE_BYTES {
            let why = format!("has {} bytes; at most {} are kept", body.len(), limits::JOB_TYPE_BYTES);
            return Decision::Refused(PutTypeError::Invalid { what: "it", why });
        }
        let id = known.map_or_else(|| cx.ids.definition(), |d| d.id);
        let out = Registration { job_type, made: known.is_none(), changed: true };
        Decision::Done(out, added(&self.key(), id, version, &body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::bench_top::BenchTop;

    fn put(name: &str, summary: &str) -> PutJobType {
        PutJobType { org: OrgId::default(), job_type: JobType::new(name.parse().unwrap(), 9, summary) }
    }

    #[test]
    fn a_change_is_the_next_version_and_the_same_again_is_nothing() {
        let mut top = BenchTop::new();
        let first = top.done(&put("mail", "one"));
        assert_eq!((first.job_type.version, first.made, first.changed), (1, true, true));
        let again = top.done(&put("mail", "one"));
        assert_eq!((again.job_type.version, again.made, again.changed), (1, false, false));
        let other = top.done(&put("mail", "two"));
        assert_eq!((other.job_type.version, other.made, other.changed), (2, false, true));
        let back = top.done(&put("mail", "one"));
        assert_eq!(back.job_type.version, 3, "versions only go up");
        assert_eq!(top.kinds(), ["definition.registered"; 3]);
    }

    #[test]
    fn names_of_batons_own_are_refused() {
        let mut top = BenchTop::new();
        for name in ["echo", "tool.search", "run.agent", "webhook.deliver", "baton.x"] {
            assert_eq!(top.refuse(&put(name, "")).code(), "job_type_reserved", "{name}");
        }
    }

    #[test]
    fn what_is_too_large_is_refused() {
        let mut top = BenchTop::new();
        assert_eq!(top.refuse(&put("mail", &"x".repeat(limits::JOB_TYPE_BYTES))).code(), "invalid_job_type");
    }
}
