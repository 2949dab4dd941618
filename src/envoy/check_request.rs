//! The slice of `envoy.service.auth.v3.CheckRequest` that Tollgate reads, over the bytes of the message.
//!
//! A field that is read as `Bytes` shares the message's buffer: nothing is copied, and what is not needed stays
//! undecoded. A protobuf map is a list of entries on the wire and is read as one.

use bytes::Bytes;
use prost::Message;

/// `envoy.service.auth.v3.CheckRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    pub attributes: Option<Attributes>,
}

/// `envoy.service.auth.v3.AttributeContext`.
#[derive(Clone, PartialEq, Message)]
pub struct Attributes {
    #[prost(message, optional, tag = "1")]
    pub source: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    pub request: Option<RequestAttributes>,
    #[prost(message, repeated, tag = "10")]
    pub context_extensions: Vec<Entry>,
    #[prost(message, optional, tag = "11")]
    pub metadata_context: Option<Metadata>,
}

/// `envoy.service.auth.v3.AttributeContext.Peer`.
#[derive(Clone, PartialEq, Message)]
pub struct Peer {
    #[prost(message, optional, tag = "1")]
    pub address: Option<Address>,
}

/// `envoy.config.core.v3.Address`.
#[derive(Clone, PartialEq, Message)]
pub struct Address {
    #[prost(message, optional, tag = "1")]
    pub socket_address: Option<SocketAddress>,
}

/// `envoy.config.core.v3.SocketAddress`.
#[derive(Clone, PartialEq, Message)]
pub struct SocketAddress {
    #[prost(bytes = "bytes", tag = "2")]
    pub address: Bytes,
}

/// `envoy.service.auth.v3.AttributeContext.Request`.
#[derive(Clone, PartialEq, Message)]
pub struct RequestAttributes {
    #[prost(message, optional, tag = "2")]
    pub http: Option<HttpRequest>,
}

/// `envoy.service.auth.v3.AttributeContext.HttpRequest`.
#[derive(Clone, PartialEq, Message)]
pub struct HttpRequest {
    #[prost(bytes = "bytes", tag = "2")]
    pub method: Bytes,
    /// The headers in the default encoding: one entry a name.
    #[prost(message, repeated, tag = "3")]
    pub headers: Vec<Entry>,
    #[prost(bytes = "bytes", tag = "4")]
    pub path: Bytes,
    #[prost(bytes = "bytes", tag = "5")]
    pub host: Bytes,
    /// The headers with `encode_raw_headers: true`: one item a line.
    #[prost(message, optional, tag = "13")]
    pub header_map: Option<HeaderMap>,
}

/// `envoy.config.core.v3.HeaderMap`.
#[derive(Clone, PartialEq, Message)]
pub struct HeaderMap {
    #[prost(message, repeated, tag = "1")]
    pub headers: Vec<HeaderValue>,
}

/// `envoy.config.core.v3.HeaderValue`.
#[derive(Clone, PartialEq, Message)]
pub struct HeaderValue {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub raw_value: Bytes,
}

/// `envoy.config.core.v3.Metadata`. The values of its entries are `google.protobuf.Struct`s.
#[derive(Clone, PartialEq, Message)]
pub struct Metadata {
    #[prost(message, repeated, tag = "1")]
    pub filter_metadata: Vec<Entry>,
}

/// An entry of a map from strings to strings or to messages.
#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    #[prost(bytes = "bytes", tag = "1")]
    pub key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub value: Bytes,
}
