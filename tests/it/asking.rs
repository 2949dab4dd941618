//! Asks an engine about requests that are written as JSON.

use crate::identity::object;
use serde_json::{Value, json};
use tollgate::Decision;
use tollgate::engine::Engine;
use tollgate::request::Request;

/// Decides the request that `request` describes, which `claims` makes: an object is what a verified token says, a text is
/// why one failed, a number the code of the failure, null is no token.
pub fn ask<T>(engine: &Engine, request: &Value, claims: &Value, said: impl FnOnce(&Decision<'_>) -> T) -> T {
    let text = |key: &str| request[key].as_str().unwrap_or_default().as_bytes();
    let pairs = |key: &str| -> Vec<(&[u8], &[u8])> {
        let pairs = request[key].as_object().into_iter().flatten();
        pairs.map(|(name, value)| (name.as_bytes(), value.as_str().unwrap().as_bytes())).collect()
    };
    let metadata = match claims {
        Value::Null => json!({}),
        Value::Number(code) => json!({"jwt_failure": {"code": code, "message": "failed"}}),
        Value::String(failure) => json!({"jwt_failure": {"code": 3, "message": failure}}),
        claims => json!({"jwt_payload": claims}),
    };
    let metadata = json!({"envoy.filters.http.jwt_authn": metadata});
    let request = Request {
        method: text("method"),
        path: text("path"),
        host: text("host"),
        headers: pairs("headers"),
        peer: text("peer"),
        client: text("client"),
        context: pairs("context"),
        body: text("body"),
        metadata: object(&metadata),
    };
    said(&engine.check(&request, &engine.token().identify(&request)))
}
