//! Headers whose values nobody sees by accident.

use http::header::{HeaderMap, HeaderName, HeaderValue};
use std::fmt;

/// Names and values. A value may be a key to somebody's house: it is handed out when asked for,
/// never printed.
#[derive(Clone, Default)]
pub struct Headers(HeaderMap);

impl Headers {
    pub fn new() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn with(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.append(name, value);
        self
    }

    pub fn append(&mut self, name: HeaderName, mut value: HeaderValue) {
        // Keeps it out of the libraries' traces too.
        value.set_sensitive(true);
        self.0.append(name, value);
    }

    /// The first value, if it is text.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.to_str().ok()
    }

    pub fn iter(&self) -> impl Iterator<Item = (&HeaderName, &HeaderValue)> {
        self.0.iter()
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }

    /// As they are written: a colon, a space and an end of line go with each.
    pub(crate) fn bytes(&self) -> usize {
        self.0.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum()
    }

    pub(crate) fn into_map(self) -> HeaderMap {
        self.0
    }
}

impl From<HeaderMap> for Headers {
    fn from(mut map: HeaderMap) -> Self {
        map.values_mut().for_each(|value| value.set_sensitive(true));
        Self(map)
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.keys().map(|name| (name.as_str(), format_args!("***")))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_handed_out_but_never_shown() {
        let headers = Headers::new()
            .with(http::header::AUTHORIZATION, HeaderValue::from_static("Bearer hunter2"))
            .with(http::header::ACCEPT, HeaderValue::from_static("text/plain"));
        assert_eq!(headers.get("authorization"), Some("Bearer hunter2"));
        let shown =
            format!("{headers:?} {:?} {:?}", headers.clone().into_map(), Headers::from(headers.clone().into_map()));
        assert!(shown.contains("authorization") && !shown.contains("hunter2") && !shown.contains("plain"), "{shown}");
        assert_eq!(headers.bytes(), "authorization: Bearer hunter2\r\naccept: text/plain\r\n".len());
    }
}
