//! The way over HTTP.

use super::deliver::{Carried, Carrier, Parcel, Undelivered};
use baton_tools::{Excess, Limits, Outgoing, Request, Unsent};
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, Method};
use std::time::Duration;

/// How long an endpoint may take to answer. Less than the lease of a delivery.
pub const ANSWER_WAIT: Duration = Duration::from_secs(15);
/// Of an answer; nobody looks at more than its status.
const ANSWER_BYTES: usize = 16 * 1024;

pub struct Post(pub Outgoing);

impl Carrier for Post {
    fn carry(&self, parcel: Parcel) -> Carried {
        let outgoing = self.0.clone();
        Box::pin(async move {
            let request = request(parcel)?;
            outgoing.send(request).await.map(|answer| answer.status.as_u16()).map_err(|e| undelivered(&e))
        })
    }
}

fn request(parcel: Parcel) -> Result<Request, Undelivered> {
    let mut request = Request::new(Method::POST, parcel.url);
    let headers = [
        ("webhook-id", parcel.message),
        ("webhook-timestamp", parcel.timestamp.to_string()),
        ("webhook-signature", parcel.signatures.join(" ")),
    ];
    request.headers.append(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    for (name, value) in headers {
        let bad =
            |_| Undelivered { code: "unsendable".to_owned(), detail: format!("{name} is no header"), transient: false };
        request.headers.append(HeaderName::from_static(name), HeaderValue::try_from(value).map_err(bad)?);
    }
    request.body = parcel.body.into();
    request.limits = Limits { total: ANSWER_WAIT, answer_bytes: ANSWER_BYTES, ..Limits::INHERITED };
    request.excess = Excess::Cut;
    Ok(request)
}

fn undelivered(e: &Unsent) -> Undelivered {
    Undelivered { code: e.code().to_owned(), detail: e.to_string(), transient: e.is_transient() }
}
