//! The services on Tollgate's port beside Check: health, and what is not there.

use super::checks::{CHECK, verdict};
use super::mesh::{PLAIN, must, program};
use super::process::Tollgate;
use super::wire::{Http2, Reply, framed, grpc};
use prost::Message;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

pub const AUTHORIZATION: &str = "envoy.service.auth.v3.Authorization";

const OK: &str = "0";
const INVALID_ARGUMENT: &str = "3";
const NOT_FOUND: &str = "5";
const OUT_OF_RANGE: &str = "11";
const UNIMPLEMENTED: &str = "12";

#[test]
fn health_tells_of_the_process_and_of_the_service_that_envoy_calls() {
    let tollgate = must(Tollgate::start(program(), &[], PLAIN));
    let mut connection = Http2::connect(tollgate.address());
    for service in ["", AUTHORIZATION] {
        assert_eq!(serving(&health(&mut connection, service)), ServingStatus::Serving, "{service}");
    }
    let unknown = health(&mut connection, "envoy.service.ratelimit.v3.RateLimitService");
    assert_eq!(unknown.field("grpc-status"), Some(NOT_FOUND), "{unknown:?}");
}

#[test]
fn a_call_that_makes_no_sense_is_an_error_and_the_connection_goes_on() {
    let tollgate = must(Tollgate::start(program(), &[], PLAIN));
    let mut connection = Http2::connect(tollgate.address());
    for path in ["/envoy.service.auth.v3.Authorization/Other", "/grpc.health.v1.Health/Other", "/", "/a%0d%0ab"] {
        let reply = connection.send(grpc(path), framed(b""));
        assert_eq!((reply.status, reply.field("grpc-status")), (200, Some(UNIMPLEMENTED)), "{path}: {reply:?}");
    }
    // No protobuf at all, metadata that is no text, and no attributes, which is a request without a token.
    let metadata = [0x0a, 0x09, 0x5a, 0x07, 0x0a, 0x05, 0x0a, 0x00, 0x12, 0x01, 0xff];
    for (message, status) in [(&[0xff][..], INVALID_ARGUMENT), (&metadata, INVALID_ARGUMENT), (&[], OK)] {
        let reply = connection.send(grpc(CHECK), framed(message));
        assert_eq!(reply.field("grpc-status"), Some(status), "{message:?}: {reply:?}");
        if status == OK {
            assert_eq!(verdict(&reply), 401);
        }
    }
    // Longer than any CheckRequest may be.
    let reply = connection.send(grpc(CHECK), framed(&vec![0; 1024 * 1024 + 1]));
    assert_eq!(reply.field("grpc-status"), Some(OUT_OF_RANGE), "{reply:?}");
    assert_eq!(health(&mut connection, "").field("grpc-status"), Some(OK));
}

/// What an answered health check says.
#[track_caller]
pub fn serving(reply: &Reply) -> ServingStatus {
    assert_eq!(reply.field("grpc-status"), Some(OK), "{reply:?}");
    HealthCheckResponse::decode(reply.message()).unwrap().status()
}

pub fn health(connection: &mut Http2, service: &str) -> Reply {
    let request = HealthCheckRequest { service: service.to_owned() };
    connection.send(grpc("/grpc.health.v1.Health/Check"), framed(&request.encode_to_vec()))
}
