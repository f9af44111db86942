//! Workers for tests: they speak the protocol by hand.

use super::{Reply, Server};
use baton_wire::MadeKey;
use baton_wire::worker::{Beaten, LeasedJob, Leases};
use serde_json::{Value, json};

/// A key with the role of a worker.
pub struct Hand<'a> {
    pub server: &'a Server,
    pub key: String,
}

impl Server {
    pub async fn hand(&self) -> Hand<'_> {
        self.hand_with(json!({})).await
    }

    /// A worker's key that is narrowed.
    pub async fn hand_with(&self, scope: Value) -> Hand<'_> {
        let mut body = json!({ "label": "worker", "role": "worker" });
        body.as_object_mut().unwrap().extend(scope.as_object().unwrap().clone());
        let made = self.post("/api/v1/keys", &body).await;
        assert_eq!(made.status, 201, "{made:?}");
        Hand { server: self, key: made.parse::<MadeKey>().secret.unwrap() }
    }

    pub async fn put_type(&self, name: &str, body: Value) -> Value {
        let reply = self.put(&format!("/api/v1/job-types/{name}"), &body).await;
        assert!([200, 201].contains(&reply.status), "{reply:?}");
        reply.parse()
    }
}

impl Hand<'_> {
    pub async fn say(&self, route: &str, body: Value) -> Reply {
        self.server.ask_as(&self.key, "POST", &format!("/api/v1/worker/{route}"), &body).await
    }

    pub async fn lease(&self, body: Value) -> Vec<LeasedJob> {
        self.say("lease", body).await.ok::<Leases>().leases
    }

    /// One job of a type, waiting for it.
    pub async fn one(&self, kind: &str) -> LeasedJob {
        let mut leases = self.lease(json!({ "types": [kind], "waitMs": 30_000 })).await;
        assert_eq!(leases.len(), 1, "{leases:?}");
        leases.remove(0)
    }

    pub async fn settled(&self, route: &str, body: Value) -> String {
        self.say(route, body).await.ok::<Value>()["settled"].as_str().unwrap().to_owned()
    }

    pub async fn beat(&self, leases: &[&str]) -> Beaten {
        self.say("heartbeat", json!({ "leases": leases })).await.ok()
    }
}
