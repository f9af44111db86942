//! What comes with a request that changes something: no parameters, a body, maybe a key.

use crate::app::App;
use crate::body::Body;
use crate::idempotency::{self, Asked, Keyed};
use crate::limits;
use crate::problem::Fault;
use crate::query::Params;
use axum::extract::{FromRequest, FromRequestParts as _, Request};
use baton_core::canon::Json;
use serde::Serialize;

pub struct Call<const MAX: usize = { limits::BODY_BYTES }> {
    /// As it was asked for.
    path: String,
    key: Option<String>,
    pub body: Body<MAX>,
}

impl<const MAX: usize> FromRequest<App> for Call<MAX> {
    type Rejection = Fault;

    async fn from_request(request: Request, app: &App) -> Result<Self, Fault> {
        let (mut parts, body) = request.into_parts();
        Params::from_request_parts(&mut parts, app).await?.allow(&[])?;
        let path = parts.uri.path().to_owned();
        let key = idempotency::key(&parts.headers)?;
        let body = Body::from_request(Request::from_parts(parts, body), app).await?;
        Ok(Self { path, key, body })
    }
}

impl<const MAX: usize> Call<MAX> {
    /// The idempotency key that it carries, if any.
    pub fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// What makes a repetition of this request one, if it carries a key. `scope` is the endpoint as
    /// its route is written, `understood` what was understood of the body, so that white space and
    /// the order of fields do not matter.
    pub fn keyed(&self, scope: &'static str, understood: &impl Serialize) -> Result<Option<Keyed>, Fault> {
        let Some(key) = &self.key else { return Ok(None) };
        let body = Json::of(&serde_json::to_value(understood).map_err(Fault::internal)?);
        Ok(Some(Keyed::new(key.clone(), &Asked { scope, path: &self.path, body: &body })))
    }

    /// The same for a request whose body says nothing.
    pub fn keyed_bare(&self, scope: &'static str) -> Result<Option<Keyed>, Fault> {
        self.body.expect_nothing()?;
        self.keyed(scope, &serde_json::Map::new())
    }
}
