//! Clients of every kind: HTTP/1.1, HTTP/2, HEAD, and gRPC, in both header encodings of the Check.

use super::mesh::{Mesh, PLAIN, WARNING, assert_wait, now};
use super::wire::{Http2, Reply};
use bytes::Bytes;
use http::Request;
use tonic::metadata::MetadataValue;
use tonic::transport::Endpoint;
use tonic::{Code, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

#[test]
fn http_2_and_head_get_the_same_answers() {
    let mesh = Mesh::start(PLAIN);
    let token = mesh.token("alice", &["prefix:rate:fast", "prefix:rate:2/24h"]);
    let mut http2 = Http2::connect(&mesh.edge.to_string());
    let start = now();
    let statuses: Vec<u16> = (0..3).map(|_| call(&mut http2, "GET", "text/plain", &token).status).collect();
    assert_eq!(statuses, [200, 200, 429]);

    let (get, head) = (mesh.get(&token), mesh.send("HEAD", "/", &[("authorization", &format!("Bearer {token}"))]));
    let head2 = call(&mut http2, "HEAD", "text/plain", &token);
    assert_eq!((get.status, head.status, head2.status), (429, 429, 429));
    assert_eq!((&*head.body, &*head2.body), ("", &b""[..]));
    for name in [WARNING, "cache-control", "content-type"] {
        assert!(get.header(name).is_some(), "{get:?}");
        assert_eq!(head.header(name), get.header(name), "{head:?}");
        assert_eq!(head2.field(name), get.header(name), "{head2:?}");
    }
    assert_wait(head.header("retry-after"), 43_200, start);
    assert_wait(head2.field("retry-after"), 43_200, start);
}

#[test]
fn a_grpc_client_is_answered_in_grpc() {
    let mesh = Mesh::start(PLAIN);
    let start = now();
    let limited = mesh.token("alice", &["prefix:rate:fast", "prefix:rate:0", "prefix:rate:1/24h"]);
    assert_eq!(mesh.get(&limited).status, 200);

    let refused = grpc_status(&mesh, Some(&limited));
    assert_eq!(refused.code(), Code::ResourceExhausted, "{refused:?}");
    let field = |name| refused.metadata().get(name).and_then(|value| value.to_str().ok());
    assert_wait(field("retry-after"), 86_400, start);
    assert_eq!(refused.message(), format!("rate limit exceeded; retry after {} s", field("retry-after").unwrap()));
    let warnings: Vec<_> = refused.metadata().get_all(WARNING).iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(warnings, ["fast", "0"].map(|text| format!("malformed; kind=rate; cap=\"prefix:rate:{text}\"")));

    let unusable = mesh.sign(serde_json::json!({ "sub": "bob", "capabilities": 7 }));
    let cases = [
        (Some(&*unusable), Code::PermissionDenied, "denied"),
        (None, Code::Unauthenticated, "missing token"),
        (Some("x"), Code::Unauthenticated, "invalid token"),
    ];
    for (token, code, message) in cases {
        let refused = grpc_status(&mesh, token);
        assert_eq!((refused.code(), refused.message()), (code, message), "{refused:?}");
    }
    assert_eq!(mesh.upstream.requests(), 1);
}

/// What a gRPC client of the usual kind makes of a refused call.
fn grpc_status(mesh: &Mesh, token: Option<&str>) -> Status {
    let mut request = tonic::Request::new(HealthCheckRequest::default());
    if let Some(token) = token {
        let bearer = MetadataValue::try_from(format!("Bearer {token}")).unwrap();
        request.metadata_mut().insert("authorization", bearer);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let channel = Endpoint::from_shared(format!("http://{}", mesh.edge)).unwrap().connect().await.unwrap();
        HealthClient::new(channel).check(request).await.unwrap_err()
    })
}

/// Where Envoy sends each header line as it is, and where it joins them by name, the content type is found.
#[test]
fn grpc_is_recognised_in_both_header_encodings() {
    for raw in ["true", "false"] {
        let mesh = Mesh::patched(PLAIN, &[("encode_raw_headers: true", &format!("encode_raw_headers: {raw}"))]);
        let mut http2 = Http2::connect(&mesh.edge.to_string());
        let token = mesh.token("alice", &["prefix:rate:1/24h"]);
        let allowed = call(&mut http2, "POST", "application/grpc", &token);
        assert_eq!((allowed.status, allowed.field("grpc-status")), (200, Some("0")), "{allowed:?}");

        for content_type in ["application/grpc", "application/grpc+proto"] {
            let refused = call(&mut http2, "POST", content_type, &token);
            assert_eq!((refused.status, refused.field("grpc-status")), (200, Some("8")), "{raw}: {refused:?}");
            let headers_only = refused.body.is_empty() && refused.trailers.is_none();
            assert!(headers_only && refused.field("retry-after").is_some(), "{raw}: {refused:?}");
        }
        for content_type in ["application/grpc-web", "text/plain"] {
            let refused = call(&mut http2, "POST", content_type, &token);
            assert_eq!((refused.status, refused.field("grpc-status")), (429, None), "{raw}: {refused:?}");
            assert_eq!(refused.field("content-type"), Some("application/problem+json"), "{raw}: {refused:?}");
        }
    }
}

fn call(http2: &mut Http2, method: &str, content_type: &str, token: &str) -> Reply {
    let request = Request::builder().method(method).uri("http://tollgate.test/a.B/C");
    let request = request.header("content-type", content_type).header("authorization", format!("Bearer {token}"));
    http2.send(request.body(()).unwrap(), Bytes::new())
}
