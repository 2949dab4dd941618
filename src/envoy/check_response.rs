//! The slice of `envoy.service.auth.v3.CheckResponse` that Tollgate writes.
//!
//! An empty response means *allow* to Envoy, so there is no way to make one but [`CheckResponse::allow`] and
//! [`CheckResponse::refuse`], which set the status and the part that goes with it.

use crate::answer::{Headers, Metadata, MetadataValue};
use bytes::BufMut;
use prost::{EncodeError, Message, Oneof};
use std::collections::BTreeMap;

/// `envoy.service.auth.v3.CheckResponse`. It is no message itself, because a message has a default, an empty one.
pub struct CheckResponse(Wire);

#[derive(Clone, PartialEq, Message)]
struct Wire {
    #[prost(message, optional, tag = "1")]
    status: Option<Status>,
    #[prost(message, optional, tag = "2")]
    denied_response: Option<DeniedHttpResponse>,
    #[prost(message, optional, tag = "3")]
    ok_response: Option<OkHttpResponse>,
    #[prost(message, optional, tag = "4")]
    dynamic_metadata: Option<Struct>,
}

/// `google.rpc.Status`.
#[derive(Clone, PartialEq, Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
}

/// `envoy.service.auth.v3.DeniedHttpResponse`.
#[derive(Clone, PartialEq, Message)]
struct DeniedHttpResponse {
    #[prost(message, optional, tag = "1")]
    status: Option<HttpStatus>,
    #[prost(message, repeated, tag = "2")]
    headers: Vec<HeaderValueOption>,
    #[prost(string, tag = "3")]
    body: String,
}

/// `envoy.type.v3.HttpStatus`; the code is an enum of HTTP statuses, an `int32` on the wire.
#[derive(Clone, PartialEq, Message)]
struct HttpStatus {
    #[prost(int32, tag = "1")]
    code: i32,
}

/// `envoy.service.auth.v3.OkHttpResponse`.
#[derive(Clone, PartialEq, Message)]
struct OkHttpResponse {
    #[prost(message, repeated, tag = "6")]
    response_headers_to_add: Vec<HeaderValueOption>,
}

/// `envoy.config.core.v3.HeaderValueOption`. `append` and `append_action` stay unset: so repeated names become
/// several lines, while `append: true` on a denial silently drops the header.
#[derive(Clone, PartialEq, Message)]
struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    header: Option<HeaderValue>,
}

/// `envoy.config.core.v3.HeaderValue`; Envoy ignores `raw_value` here.
#[derive(Clone, PartialEq, Message)]
struct HeaderValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

/// `google.protobuf.Struct`.
#[derive(Clone, PartialEq, Message)]
struct Struct {
    #[prost(btree_map = "string, message", tag = "1")]
    fields: BTreeMap<String, Value>,
}

/// `google.protobuf.Value`.
#[derive(Clone, PartialEq, Message)]
struct Value {
    #[prost(oneof = "Kind", tags = "2, 3")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Kind {
    #[prost(double, tag = "2")]
    Number(f64),
    #[prost(string, tag = "3")]
    Text(String),
}

impl CheckResponse {
    /// Lets the request go on; the response to it will carry `headers`, and Envoy keeps `metadata`.
    pub fn allow(headers: Headers, metadata: Metadata) -> Self {
        let ok = OkHttpResponse { response_headers_to_add: header_options(headers) };
        Self(Wire {
            status: Some(Status { code: 0 }),
            ok_response: Some(ok),
            denied_response: None,
            dynamic_metadata: dynamic(metadata),
        })
    }

    /// Answers the request with the HTTP `status`, `headers` and `body`; `code` is the gRPC code of the refusal, and
    /// Envoy keeps `metadata`.
    pub fn refuse(code: tonic::Code, status: u16, headers: Headers, body: String, metadata: Metadata) -> Self {
        let denied = DeniedHttpResponse {
            status: Some(HttpStatus { code: status.into() }),
            headers: header_options(headers),
            body,
        };
        Self(Wire {
            status: Some(Status { code: code.into() }),
            ok_response: None,
            denied_response: Some(denied),
            dynamic_metadata: dynamic(metadata),
        })
    }

    /// Writes the message.
    ///
    /// # Errors
    ///
    /// [`EncodeError`] if `buffer` is full.
    pub fn encode(&self, buffer: &mut impl BufMut) -> Result<(), EncodeError> {
        self.0.encode(buffer)
    }
}

fn dynamic(metadata: Metadata) -> Option<Struct> {
    let value = |value| match value {
        MetadataValue::Number(number) => Kind::Number(number as f64),
        MetadataValue::Text(text) => Kind::Text(text),
    };
    let fields = metadata.into_iter().map(|(key, of)| (key.to_owned(), Value { kind: Some(value(of)) }));
    let fields: BTreeMap<_, _> = fields.collect();
    (!fields.is_empty()).then_some(Struct { fields })
}

fn header_options(headers: Headers) -> Vec<HeaderValueOption> {
    headers.into_iter().map(|(key, value)| HeaderValueOption { header: Some(HeaderValue { key, value }) }).collect()
}
