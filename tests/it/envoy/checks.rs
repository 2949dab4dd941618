//! Checks as Envoy sends them, without an Envoy: for what only a connection of one's own can show.

use super::wire::{Http2, Pending, Reply, framed, grpc};
use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::Metadata;
use envoy_types::pb::envoy::service::auth::v3::check_response::HttpResponse;
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest, CheckResponse};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};
use prost::Message;

pub const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

/// A Check, and how much of it was sent before.
pub struct Held {
    pending: Pending,
    rest: Bytes,
}

/// Sends a whole Check and reads the answer.
pub fn check(connection: &mut Http2, principal: &str, capability: &str) -> Reply {
    connection.send(grpc(CHECK), body(principal, capability))
}

/// Sends the first half of a Check.
pub fn hold(connection: &mut Http2, principal: &str, capability: &str) -> Held {
    let mut rest = body(principal, capability);
    let start = rest.split_to(rest.len() / 2);
    Held { pending: connection.begin(grpc(CHECK), start), rest }
}

impl Held {
    /// Sends the other half and reads the answer.
    pub fn finish(self, connection: &mut Http2) -> Reply {
        connection.finish(self.pending, self.rest)
    }
}

/// The HTTP status that an answered Check asks Envoy for.
#[track_caller]
pub fn verdict(reply: &Reply) -> u32 {
    assert_eq!((reply.status, reply.field("grpc-status")), (200, Some("0")), "{reply:?}");
    let response = CheckResponse::decode(reply.message()).unwrap();
    let code = response.status.expect("an explicit status").code;
    match response.http_response.expect("an explicit answer") {
        HttpResponse::OkResponse(_) => {
            assert_eq!(code, 0);
            200
        }
        HttpResponse::DeniedResponse(denied) => {
            assert_ne!(code, 0);
            denied.status.unwrap().code.try_into().unwrap()
        }
        other => panic!("{other:?}"),
    }
}

fn body(principal: &str, capability: &str) -> Bytes {
    framed(&request(principal, &[capability]))
}

/// The message of a Check by a verified caller.
pub fn request(principal: &str, capabilities: &[&str]) -> Vec<u8> {
    let capabilities = ListValue { values: capabilities.iter().map(|capability| text(capability)).collect() };
    let claims = members([("sub", text(principal)), ("capabilities", value(Kind::ListValue(capabilities)))]);
    let namespace = members([("jwt_payload", value(Kind::StructValue(claims)))]);
    let metadata = Metadata {
        filter_metadata: [("envoy.filters.http.jwt_authn".to_owned(), namespace)].into(),
        ..Metadata::default()
    };
    let attributes = AttributeContext { metadata_context: Some(metadata), ..AttributeContext::default() };
    CheckRequest { attributes: Some(attributes) }.encode_to_vec()
}

fn text(text: &str) -> Value {
    value(Kind::StringValue(text.to_owned()))
}

fn value(kind: Kind) -> Value {
    Value { kind: Some(kind) }
}

fn members<const N: usize>(members: [(&str, Value); N]) -> Struct {
    Struct { fields: members.map(|(name, value)| (name.to_owned(), value)).into() }
}
