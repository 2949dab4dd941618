//! Spans: a collector gets one for each Check that Envoy traces, as part of Envoy's trace and without a caller's name.

use super::checks::{CHECK, verdict};
use super::mesh::{Mesh, PLAIN, must, program};
use super::metrics::{scrape, with_metrics};
use super::process::Tollgate;
use super::stops::until_logged;
use super::wait_until;
use super::wire::{Http2, framed, grpc};
use bytes::Bytes;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use tokio::net::TcpListener;

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// A collector that keeps what it is sent.
struct Collector {
    address: SocketAddr,
    got: Arc<Mutex<Vec<u8>>>,
}

impl Collector {
    fn start() -> Self {
        let (got, (bound, address)) = (Arc::<Mutex<Vec<u8>>>::default(), mpsc::channel());
        let kept = Arc::clone(&got);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                bound.send(listener.local_addr().unwrap()).unwrap();
                loop {
                    let (stream, _) = listener.accept().await.unwrap();
                    tokio::spawn(serve(stream, Arc::clone(&kept)));
                }
            });
        });
        Self { address: address.recv().unwrap(), got }
    }

    fn has(&self, wanted: &[u8]) -> bool {
        self.got.lock().unwrap().windows(wanted.len()).any(|window| window == wanted)
    }
}

async fn serve(stream: tokio::net::TcpStream, kept: Arc<Mutex<Vec<u8>>>) {
    let mut connection = h2::server::handshake(stream).await.unwrap();
    while let Some(Ok((request, mut respond))) = connection.accept().await {
        assert_eq!(request.uri().path(), EXPORT);
        let kept = Arc::clone(&kept);
        tokio::spawn(async move {
            let mut body = request.into_body();
            while let Some(Ok(data)) = body.data().await {
                body.flow_control().release_capacity(data.len()).unwrap();
                kept.lock().unwrap().extend_from_slice(&data);
            }
            let head = http::Response::builder().header("content-type", "application/grpc").body(()).unwrap();
            let mut answer = respond.send_response(head, false).unwrap();
            answer.send_data(Bytes::from_static(&[0; 5]), false).unwrap();
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", http::HeaderValue::from_static("0"));
            answer.send_trailers(trailers).unwrap();
        });
    }
}

#[test]
fn a_check_is_a_span_of_envoys_trace() {
    let collector = Collector::start();
    let traces = format!("traces: {{ otlp: \"http://{}\" }}\nshutdown: {{ delay: 0s }}\n", collector.address);
    let deny = "callers: { rules: [{ when: { principal: mallory }, deny: closed }] }\n";
    let tracer = "          stat_prefix: edge\n          tracing:\n            provider:\n              name: envoy.tracers.opentelemetry\n              typed_config:\n                \"@type\": type.googleapis.com/envoy.config.trace.v3.OpenTelemetryConfig\n                grpc_service: { envoy_grpc: { cluster_name: app } }\n                service_name: edge\n";
    let mut mesh = Mesh::patched(&format!("{PLAIN}{traces}{deny}"), &[("          stat_prefix: edge\n", tracer)]);
    let bearer = format!("Bearer {}", mesh.token("mallory", &[]));
    let get = |trace: &str, flags: &str| {
        let parent = format!("00-{trace}-b7ad6b7169203331-{flags}");
        mesh.send("GET", "/", &[("traceparent", &parent), ("authorization", &bearer)]).status
    };
    let (sampled, not) = ("0af7651916cd43dd8448eb211c80319c", "11111111111111111111111111111111");
    assert_eq!((get(sampled, "01"), get(not, "00")), (403, 403));
    // What waits is sent at the stop at the latest.
    assert!(must(mesh.tollgate.stop()).success());
    let bytes =
        |hex: &str| (0..16).map(|at| u8::from_str_radix(&hex[2 * at..2 * at + 2], 16).unwrap()).collect::<Vec<_>>();
    must(wait_until("the span", || Ok(collector.has(b"tollgate.check").then_some(()))));
    for told in [&bytes(sampled)[..], b"tollgate.verdict", b"refused", b"denied", b"callers.rules[0]"] {
        assert!(collector.has(told), "{}", String::from_utf8_lossy(told));
    }
    assert!(!collector.has(b"mallory") && !collector.has(&bytes(not)));
}

/// Where no collector is, that is said, and what is lost is counted.
#[test]
fn spans_that_are_lost_are_counted() {
    // Port 1 of a loopback address that nothing else here uses.
    let traces = "traces: { otlp: \"http://127.0.0.14:1\" }\n";
    let mut tollgate =
        must(Tollgate::start(program(), &[], &with_metrics(&format!("{traces}shutdown: {{ delay: 0s }}\n"))));
    let mut connection = Http2::connect(tollgate.address());
    let mut traced = grpc(CHECK);
    let parent = http::HeaderValue::from_static("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    traced.headers_mut().insert("traceparent", parent);
    for _ in 0..3 {
        assert_eq!(verdict(&connection.send(traced.clone(), framed(b""))), 401);
    }
    let lost = || Ok(scrape(&tollgate).contains("tollgate_spans_total{result=\"lost\"} 3").then_some(()));
    must(wait_until("the loss", lost));
    until_logged(&tollgate, "spans are lost: the collector does not take them");
    assert!(must(tollgate.stop()).success());
    until_logged(&tollgate, "spans were lost: so many since the start");
}
