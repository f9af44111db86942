//! Parameters of a query: each known, each understood, none silently ignored.

use crate::problem::Fault;
use axum::extract::{FromRequestParts, Query};
use axum::http::request::Parts;
use std::fmt::Display;
use std::str::FromStr;

/// Parameters as they were given, in order.
pub struct Params(Vec<(String, String)>);

impl<S: Send + Sync> FromRequestParts<S> for Params {
    type Rejection = Fault;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Fault> {
        match Query::<Vec<(String, String)>>::try_from_uri(&parts.uri) {
            Ok(Query(params)) => Ok(Self(params)),
            Err(_) => Err(Fault::new("invalid_request", "the query cannot be read")),
        }
    }
}

impl Params {
    /// A parameter that nobody reads is a mistake that would go unnoticed.
    pub fn allow(&self, names: &[&str]) -> Result<(), Fault> {
        match self.0.iter().find(|(name, _)| !names.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) if names.is_empty() => Err(Fault::field(name, "this route takes no parameters")),
            Some((name, _)) => {
                Err(Fault::field(name, format!("no such parameter; this route takes {}", names.join(", "))))
            }
        }
    }

    /// Every value of a parameter that may be repeated or separated by commas.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        let given = self.0.iter().filter(move |(given, _)| given == name);
        given.flat_map(|(_, value)| value.split(',')).filter(|value| !value.is_empty())
    }

    /// Whether it is given at all, be it without a value.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(given, _)| given == name)
    }

    pub fn one(&self, name: &str) -> Result<Option<&str>, Fault> {
        let mut given = self.0.iter().filter(|(given, _)| given == name).map(|(_, value)| value.as_str());
        match (given.next(), given.next()) {
            (value, None) => Ok(value),
            _ => Err(Fault::field(name, "given more than once")),
        }
    }

    /// A name or an id, if it is given.
    pub fn parsed<T: FromStr<Err: Display>>(&self, name: &str) -> Result<Option<T>, Fault> {
        self.one(name)?.map(|text| text.parse().map_err(|error| Fault::field(name, error))).transpose()
    }

    /// A number within bounds, or its default.
    pub fn number<T>(&self, name: &str, bounds: std::ops::RangeInclusive<T>, default: T) -> Result<T, Fault>
    where
        T: FromStr + PartialOrd + Display,
    {
        let Some(text) = self.one(name)? else { return Ok(default) };
        match text.parse::<T>() {
            Ok(number) if bounds.contains(&number) => Ok(number),
            _ => Err(Fault::field(name, format!("must be a number from {} to {}", bounds.start(), bounds.end()))),
        }
    }
}

#[cfg(test)]
impl Params {
    pub fn of(pairs: &[(&str, &str)]) -> Self {
        Self(pairs.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(pairs: &[(&str, &str)]) -> Params {
        Params::of(pairs)
    }

    #[test]
    fn lists_are_repeated_or_separated_by_commas() {
        let p = params(&[("state", "queued,running"), ("limit", "5"), ("state", "failed"), ("state", "")]);
        assert_eq!(p.all("state").collect::<Vec<_>>(), ["queued", "running", "failed"]);
    }

    #[test]
    fn numbers_stay_within_their_bounds() {
        let read = |text| params(&[("limit", text)]).number("limit", 1..=200usize, 50).ok();
        assert_eq!(read("1"), Some(1));
        assert_eq!(read("200"), Some(200));
        for bad in ["0", "201", "-1", "x", "", "1e2", "99999999999999999999999999"] {
            assert_eq!(read(bad), None, "{bad}");
        }
        assert_eq!(params(&[]).number("limit", 1..=200usize, 50).ok(), Some(50));
        assert!(params(&[("limit", "1"), ("limit", "2")]).number("limit", 1..=200usize, 50).is_err());
    }

    #[test]
    fn an_unknown_parameter_is_named() {
        let fault = params(&[("limti", "1")]).allow(&["limit"]).unwrap_err();
        assert!(format!("{fault:?}").contains("limti"), "{fault:?}");
        assert!(params(&[("limit", "1")]).allow(&["limit"]).is_ok());
    }
}
