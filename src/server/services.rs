//! The gRPC services on the one port, told apart by path: Authorization, access logs and health.

use crate::envoy::check_response::CheckResponse;
use crate::envoy::codec::{CheckCodec, LogCodec};
use crate::reload::Live;
use crate::telemetry::metrics::CheckError;
use crate::time::Stopwatch;
use bytes::Bytes;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use tokio::sync::watch;
use tonic::body::Body;
use tonic::server::{ClientStreamingService, Grpc, UnaryService};
use tonic::{Code, Request, Response, Status, Streaming};
use tonic_health::pb::health_server::{Health, HealthServer};
use tower_service::Service;

/// The name of the service that Envoy's ext_authz filter calls.
pub const AUTHORIZATION: &str = "envoy.service.auth.v3.Authorization";

const CHECK: &str = "/envoy.service.auth.v3.Authorization/Check";

const LOGS: &str = "/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";

/// The largest CheckRequest, in bytes. Envoy's are 0.3 to 42 kB; what is read of one takes many times its size.
const LARGEST: usize = 1024 * 1024;

/// The largest message of access logs, in bytes. Envoy collects entries in one while it cannot send them.
const LARGEST_LOG: usize = 4 * LARGEST;

type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// What a worker serves.
#[derive(Clone)]
pub struct Services {
    in_flight: InFlight,
    live: Arc<Live>,
    logs: Logs,
    /// Boxed, because the type of tonic's own health service has no name.
    health: Arc<dyn Fn(http::Request<Body>) -> BoxFuture<http::Response<Body>> + Send + Sync>,
}

/// Requests that are not answered yet, watches of the health apart.
#[derive(Clone, Debug, Default)]
pub struct InFlight(Arc<AtomicUsize>);

/// One of them, until it is dropped.
struct Flight(InFlight);

impl InFlight {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    fn start(&self) -> Flight {
        self.0.fetch_add(1, Ordering::Relaxed);
        Flight(self.clone())
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One call of `Authorization/Check`.
struct Check<'c> {
    live: &'c Live,
    /// Whether its message came whole.
    is_read: &'c AtomicBool,
}

/// `AccessLogService/StreamAccessLogs`.
#[derive(Clone)]
struct Logs {
    live: Arc<Live>,
    stopped: watch::Receiver<()>,
}

impl Services {
    /// The services of what is `live`, beside `health`. `stopped` is closed when the process stops.
    pub fn new(live: Arc<Live>, health: HealthServer<impl Health>, stopped: watch::Receiver<()>) -> Self {
        let health = move |request| -> BoxFuture<_> {
            let mut health = health.clone();
            Box::pin(async move {
                let Ok(response) = health.call(request).await;
                response
            })
        };
        let logs = Logs { live: Arc::clone(&live), stopped };
        Self { in_flight: InFlight::default(), live, logs, health: Arc::new(health) }
    }

    /// The same services, with a count of requests in flight of their own.
    pub fn counted(&self) -> (Self, InFlight) {
        let in_flight = InFlight::default();
        (Self { in_flight: in_flight.clone(), ..self.clone() }, in_flight)
    }
}

impl Service<http::Request<Body>> for Services {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        match request.uri().path() {
            CHECK => {
                let (live, flight) = (Arc::clone(&self.live), self.in_flight.start());
                Box::pin(async move {
                    let is_read = AtomicBool::new(false);
                    let answered = grpc().unary(Check { live: &live, is_read: &is_read }, request).await;
                    if !is_read.into_inner() {
                        report_unread(&live, answered.headers());
                    }
                    drop(flight);
                    Ok(answered)
                })
            }
            LOGS => {
                let logs = self.logs.clone();
                let mut grpc = Grpc::new(LogCodec).max_decoding_message_size(LARGEST_LOG);
                Box::pin(async move { Ok(grpc.client_streaming(logs, request).await) })
            }
            path if path.starts_with("/grpc.health.v1.Health/") => {
                let response = (self.health)(request);
                Box::pin(async move { Ok(response.await) })
            }
            path => {
                let unknown = Status::unimplemented(format!("no such method: {path}"));
                Box::pin(ready(Ok(unknown.into_http())))
            }
        }
    }
}

/// Reports a Check that never came to be one: too large, or cut off.
fn report_unread(live: &Live, headers: &http::HeaderMap) {
    if let Some(status) = Status::from_header_map(headers) {
        let judge = live.load();
        judge.telemetry.metrics().failed(CheckError::Unreadable);
        judge.telemetry.unreadable("a CheckRequest", &status.message(), judge.engine.now());
    }
}

fn grpc() -> Grpc<CheckCodec> {
    Grpc::new(CheckCodec).max_decoding_message_size(LARGEST)
}

impl UnaryService<Bytes> for Check<'_> {
    type Response = CheckResponse;
    type Future = Ready<Result<Response<CheckResponse>, Status>>;

    /// A panic ends this Check with an error, which Envoy takes for a failure of the service, and no other.
    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let watch = Stopwatch::start();
        self.is_read.store(true, Ordering::Relaxed);
        let answered = catch_unwind(AssertUnwindSafe(|| {
            let metadata = |key: &str| request.metadata().get(key).map(|value| value.as_bytes());
            let judge = self.live.load();
            let answered = judge.check(request.get_ref(), metadata);
            judge.telemetry.metrics().took(watch.elapsed());
            answered
        }));
        let failed = |error| self.live.load().telemetry.metrics().failed(error);
        ready(match answered {
            Ok(Ok(response)) => Ok(Response::new(response)),
            Ok(Err(unreadable)) => {
                failed(CheckError::Unreadable);
                Err(Status::invalid_argument(unreadable.to_string()))
            }
            Err(_) => {
                failed(CheckError::Panic);
                Err(Status::internal("the check failed"))
            }
        })
    }
}

impl ClientStreamingService<Bytes> for Logs {
    type Response = ();
    type Future = BoxFuture<Result<Response<()>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let Self { live, mut stopped } = self.clone();
        Box::pin(async move {
            let mut messages = request.into_inner();
            // Envoy never ends a stream by itself, so that it would hold up every stop.
            let stop = async { while stopped.changed().await.is_ok() {} };
            tokio::select! {
                () = stop => Ok(Response::new(())),
                ended = take_in(&live, &mut messages) => ended.map(Response::new),
            }
        })
    }
}

/// Takes in access logs until the stream ends. A message that cannot be read does not end it, unless it is too large.
async fn take_in(live: &Live, messages: &mut Streaming<Bytes>) -> Result<(), Status> {
    while let Some(message) = messages.message().await.inspect_err(|status| report_lost(live, status))? {
        if catch_unwind(AssertUnwindSafe(|| live.load().log(&message))).is_err() {
            live.load().lose_log(&"a bug in Tollgate");
        }
    }
    Ok(())
}

/// Reports access logs that are too large. A stream that breaks off does not say whether it cut one off: the outcomes in
/// that are some that never come.
fn report_lost(live: &Live, status: &Status) {
    if status.code() == Code::OutOfRange {
        live.load().lose_log(&status.message());
    }
}
