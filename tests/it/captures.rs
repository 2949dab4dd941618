//! Real CheckRequests: what is read of them is what the full messages hold, field by field.

use bytes::Bytes;
use envoy_types::pb::envoy::config::core::v3::address::Address as AddressKind;
use envoy_types::pb::envoy::service::auth::v3::attribute_context::{self, HttpRequest};
use envoy_types::pb::envoy::service::auth::v3::{AttributeContext, CheckRequest as FullRequest};
use envoy_types::pb::google::protobuf::value::Kind;
use envoy_types::pb::google::protobuf::{ListValue, Struct, Value};
use proptest::prelude::*;
use prost::Message;
use std::collections::BTreeMap;
use tollgate::claims::{Claim, Claims};
use tollgate::envoy::check_request;
use tollgate::envoy::claims::read_struct;
use tollgate::request::Request;

/// The CheckRequests among the captures, without the gRPC frame's prefix.
pub fn captures() -> Vec<(String, Bytes)> {
    let folder = format!("{}/tests/captures", env!("CARGO_MANIFEST_DIR"));
    let mut captures = Vec::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let is_check = name == "check.bin" || name.starts_with(|c: char| c.is_ascii_digit());
        if is_check && name.ends_with(".bin") {
            let message = Bytes::from(std::fs::read(&path).unwrap());
            captures.push((name.clone(), if name == "check.bin" { message.slice(5..) } else { message }));
        }
    }
    captures.sort();
    captures
}

/// The facts of a request in an order of their own, since that of a map on the wire is of no account.
#[derive(Debug, PartialEq)]
struct Facts {
    method: Vec<u8>,
    path: Vec<u8>,
    host: Vec<u8>,
    headers: Vec<(Vec<u8>, Vec<u8>)>,
    peer: Vec<u8>,
    context: BTreeMap<Vec<u8>, Vec<u8>>,
    body: Vec<u8>,
    metadata: serde_json::Value,
}

/// Taken apart field by field, so that a new field has to be compared as well.
fn facts(request: &Request<'_>) -> Facts {
    let Request { method, path, host, headers, peer, client, context, body, metadata } = request;
    assert_eq!(*client, b"", "it is no part of the message");
    let mut headers: Vec<_> = headers.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
    headers.sort();
    Facts {
        method: method.to_vec(),
        path: path.to_vec(),
        host: host.to_vec(),
        headers,
        peer: peer.to_vec(),
        context: context.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect(),
        body: body.to_vec(),
        metadata: object(metadata),
    }
}

fn object(claims: &Claims<'_>) -> serde_json::Value {
    claims.iter().map(|(name, _)| (name.to_owned(), json(claims.get(name).unwrap()))).collect()
}

fn json(claim: &Claim<'_>) -> serde_json::Value {
    match claim {
        Claim::Null => serde_json::Value::Null,
        Claim::Bool(value) => (*value).into(),
        Claim::Number(number) => (*number).into(),
        Claim::Text(text) => (*text).into(),
        Claim::List(items) => items.iter().map(json).collect(),
        Claim::Object(claims) => object(claims),
        Claim::TooDeep => "too deep".into(),
    }
}

fn full_facts(message: &FullRequest) -> Facts {
    let attributes = message.attributes.as_ref().unwrap();
    let http = attributes.request.as_ref().unwrap().http.as_ref().unwrap();
    let bytes = |text: &String| text.clone().into_bytes();
    let mut headers: Vec<_> = http.headers.iter().map(|(name, value)| (bytes(name), bytes(value))).collect();
    for line in http.header_map.iter().flat_map(|map| &map.headers) {
        let value = if line.raw_value.is_empty() { bytes(&line.value) } else { line.raw_value.clone() };
        headers.push((bytes(&line.key), value));
    }
    headers.sort();
    let peer = attributes.source.as_ref().and_then(|peer| peer.address.as_ref()?.address.as_ref());
    let metadata = attributes.metadata_context.iter().flat_map(|metadata| &metadata.filter_metadata);
    Facts {
        method: bytes(&http.method),
        path: bytes(&http.path),
        host: bytes(&http.host),
        headers,
        peer: match peer {
            Some(AddressKind::SocketAddress(socket)) => bytes(&socket.address),
            _ => Vec::new(),
        },
        context: attributes.context_extensions.iter().map(|(name, value)| (bytes(name), bytes(value))).collect(),
        body: if http.raw_body.is_empty() { bytes(&http.body) } else { http.raw_body.clone() },
        metadata: metadata.map(|(name, fields)| (name.clone(), full_object(fields))).collect(),
    }
}

fn full_object(fields: &Struct) -> serde_json::Value {
    fields.fields.iter().map(|(name, value)| (name.clone(), full_json(value))).collect()
}

fn full_json(value: &Value) -> serde_json::Value {
    match value.kind.as_ref() {
        None | Some(Kind::NullValue(_)) => serde_json::Value::Null,
        Some(Kind::BoolValue(value)) => (*value).into(),
        Some(Kind::NumberValue(number)) => (*number).into(),
        Some(Kind::StringValue(text)) => text.clone().into(),
        Some(Kind::ListValue(list)) => list.values.iter().map(full_json).collect(),
        Some(Kind::StructValue(fields)) => full_object(fields),
    }
}

#[test]
fn what_is_read_is_what_the_full_message_holds() {
    let captures = captures();
    assert_eq!(captures.len(), 19);
    let mut seen = Facts { metadata: serde_json::Value::Null, ..facts(&Request::default()) };
    for (name, message) in captures {
        let read = facts(&check_request::read(&message).unwrap());
        let full = full_facts(&FullRequest::decode(message).unwrap());
        assert_eq!(read, full, "{name}");
        seen.headers.extend(full.headers);
        seen.context.extend(full.context);
        seen.peer.extend(full.peer);
        if full.metadata.as_object().is_some_and(|namespaces| !namespaces.is_empty()) {
            seen.metadata = full.metadata;
        }
    }
    let filled = [seen.headers.is_empty(), seen.context.is_empty(), seen.peer.is_empty(), seen.metadata.is_null()];
    assert_eq!(filled, [false; 4], "every field is held by some capture");
}

/// No capture holds a body, in either of its two fields.
#[test]
fn a_body_is_read_from_either_field() {
    for (body, raw_body) in [("a=1", &b""[..]), ("", b"a=\xff"), ("", b"")] {
        let http = HttpRequest { body: body.into(), raw_body: raw_body.into(), ..HttpRequest::default() };
        let request = attribute_context::Request { http: Some(http), ..Default::default() };
        let attributes = AttributeContext { request: Some(request), ..AttributeContext::default() };
        let message = FullRequest { attributes: Some(attributes) };
        let bytes = message.encode_to_vec();
        assert_eq!(facts(&check_request::read(&bytes).unwrap()), full_facts(&message));
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(None),
        Just(Some(Kind::NullValue(0))),
        any::<bool>().prop_map(|value| Some(Kind::BoolValue(value))),
        prop::num::f64::NORMAL.prop_map(|number| Some(Kind::NumberValue(number))),
        any::<String>().prop_map(|text| Some(Kind::StringValue(text))),
    ];
    leaf.prop_map(|kind| Value { kind }).prop_recursive(4, 32, 4, |inner| {
        let list = prop::collection::vec(inner.clone(), 0..4).prop_map(|values| Kind::ListValue(ListValue { values }));
        let fields = prop::collection::hash_map(any::<String>(), inner, 0..4);
        let object = fields.prop_map(|fields| Kind::StructValue(Struct { fields }));
        prop_oneof![list, object].prop_map(|kind| Value { kind: Some(kind) })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn claims_are_read_as_the_full_decoder_reads_them(fields in prop::collection::hash_map(any::<String>(), value(), 0..6)) {
        let full = Struct { fields };
        let message = full.encode_to_vec();
        prop_assert_eq!(object(&read_struct(&message).unwrap()), full_object(&full));
    }

    /// A message that arrives damaged is an error or a request, never a panic.
    #[test]
    fn a_damaged_message_is_read_or_refused(
        capture in any::<prop::sample::Index>(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        end in any::<prop::sample::Index>(),
    ) {
        let captures = captures();
        let mut message = capture.get(&captures).1.to_vec();
        for (at, byte) in damage {
            *at.get_mut(&mut message) = byte;
        }
        for end in [end.index(message.len()), message.len()] {
            if let Ok(request) = check_request::read(&message[..end]) {
                facts(&request);
            }
        }
    }
}

/// An empty object took room for sixteen members, so that a small message could fill the memory.
#[test]
fn many_empty_claims_take_little_room() {
    let empty = Value { kind: Some(Kind::StructValue(Struct::default())) };
    let list = Value { kind: Some(Kind::ListValue(ListValue { values: vec![empty; 10_000] })) };
    let message = Struct { fields: [("many".to_owned(), list)].into() }.encode_to_vec();
    let allocations = crate::store::allocations(|| drop(read_struct(&message).unwrap()));
    assert!(allocations < 100, "{allocations}");
}

/// What is nested too deep is not read, and does not keep the rest from being read.
#[test]
fn claims_that_nest_too_deep_are_left_out() {
    let read = |depth: usize| {
        let leaf = Value { kind: Some(Kind::BoolValue(true)) };
        let list = |inner, _| Value { kind: Some(Kind::ListValue(ListValue { values: vec![inner] })) };
        let sub = Value { kind: Some(Kind::StringValue("alice".into())) };
        let fields = [("deep".to_owned(), (0..depth).fold(leaf, list)), ("sub".to_owned(), sub)].into();
        object(&read_struct(&Struct { fields }.encode_to_vec()).unwrap())
    };
    for (depth, is_cut) in [(63, false), (64, true), (500, true)] {
        let claims = read(depth);
        assert_eq!(claims["sub"], "alice", "{depth}");
        assert_eq!(claims["deep"].to_string().contains("too deep"), is_cut, "{depth}");
    }
}
