//! The message that both servers get, and the proof that Tollgate reads its rates.

use crate::load;
use bytes::Bytes;
use envoy_types::ext_authz::v3::pb::{CheckResponse, HttpResponse};
use prost::Message;
use std::net::SocketAddr;

/// A CheckRequest that Envoy sent, behind the five bytes of its gRPC frame.
const CAPTURED: &[u8] = include_bytes!("../../tests/captures/check.bin");

/// The length of a gRPC frame's head.
const FRAME: usize = 5;

/// The message, framed: its rates are never exceeded.
pub fn captured() -> Bytes {
    Bytes::from_static(CAPTURED)
}

/// Asserts that the message is allowed, and that another caller with a rate of one call a minute gets one call.
pub async fn prove(tollgate: SocketAddr) {
    let mut connection = load::connect(tollgate).await;
    let mut code = async |message: Bytes| {
        connection = connection.clone().ready().await.unwrap();
        code(&load::call(&mut connection, message).await)
    };
    assert_eq!(code(captured()).await, 0, "the message is not allowed");
    assert_eq!(code(once_a_minute()).await, 0, "the first call of a caller is not allowed");
    assert_ne!(code(once_a_minute()).await, 0, "the message's rates are not read");
}

/// The message as of another caller, whose shorter rate has a count of one.
fn once_a_minute() -> Bytes {
    let message = replace(CAPTURED, b"prefix:rate:1000000000/1m", b"prefix:rate:0000000001/1m");
    replace(&message, b"8f14e45f-ceea", b"00000000-ceea").into()
}

fn replace(message: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let place = message.windows(old.len()).position(|window| window == old).expect("a text of the message");
    [&message[..place], new, &message[place + old.len()..]].concat()
}

/// The code of an answer, which must say what its code says: an empty answer would mean OK to Envoy.
fn code(answer: &[u8]) -> i32 {
    let answer = CheckResponse::decode(&answer[FRAME..]).unwrap();
    let code = answer.status.expect("a status").code;
    match answer.http_response.expect("an answer that is not empty") {
        HttpResponse::OkResponse(_) => assert_eq!(code, 0),
        _ => assert_ne!(code, 0),
    }
    code
}
