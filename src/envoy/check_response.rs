//! The slice of `envoy.service.auth.v3.CheckResponse` that Tollgate writes.
//!
//! An empty response means *allow* to Envoy, so there is no way to make one but [`CheckResponse::allow`] and
//! [`CheckResponse::refuse`], which set the status and the part that goes with it.

use crate::answer::Headers;
use bytes::BufMut;
use prost::{EncodeError, Message};

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

impl CheckResponse {
    /// Lets the request go on; the response to it will carry `headers`.
    pub fn allow(headers: Headers) -> Self {
        let ok = OkHttpResponse { response_headers_to_add: header_options(headers) };
        Self(Wire { status: Some(Status { code: 0 }), denied_response: None, ok_response: Some(ok) })
    }

    /// Answers the request with the HTTP `status`, `headers` and `body`; `code` is the gRPC code of the refusal.
    pub fn refuse(code: tonic::Code, status: u16, headers: Headers, body: String) -> Self {
        let denied = DeniedHttpResponse {
            status: Some(HttpStatus { code: status.into() }),
            headers: header_options(headers),
            body,
        };
        Self(Wire { status: Some(Status { code: code.into() }), denied_response: Some(denied), ok_response: None })
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

fn header_options(headers: Headers) -> Vec<HeaderValueOption> {
    headers.into_iter().map(|(key, value)| HeaderValueOption { header: Some(HeaderValue { key, value }) }).collect()
}
