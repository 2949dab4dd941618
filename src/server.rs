//! Sockets, workers and an orderly stop: one acceptor deals connections in turn over single-threaded workers.

pub mod connection;
mod http;
pub mod listener;
pub mod scrape;
pub mod services;
pub mod snapshot;
pub mod status;
pub mod worker;

use crate::config::{Listen, ListenAddress, Shutdown};
use crate::reload::Live;
use crate::server::http::Pages;
use crate::server::listener::Listener;
use crate::server::services::Services;
use crate::server::status::Status;
use crate::server::worker::Workers;
use crate::telemetry::counts::Reported;
use std::convert::Infallible;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tracing::{info, warn};

/// How often expired state is swept beside the sweeping that new callers do.
const SWEEP: Duration = Duration::from_secs(60);

/// The services whose health is told: the process as a whole, and the one that Envoy calls.
const HEALTH: [&str; 2] = ["", services::AUTHORIZATION];

/// The sockets that are served.
pub struct Listeners {
    /// The gRPC services.
    pub grpc: Listener,
    /// Metrics and health over HTTP.
    pub metrics: Option<Listener>,
}

/// When connections and the process end.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// How old a connection may become before its client is asked to open another.
    pub max_connection_age: Option<Duration>,
    /// How the process stops.
    pub shutdown: Shutdown,
}

/// How the process is asked to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// New connections and requests are still taken for the delay, so that every client sees NOT_SERVING in time.
    AfterDelay,
    /// Without the delay.
    Now,
}

/// Serves on `listener` until `stop` is done and its delay is over, then drains: no new connection, GOAWAY on the old
/// ones, and the requests in flight are answered.
///
/// # Errors
///
/// An I/O error of the listener, or of starting the workers.
pub async fn run(
    Listeners { grpc: listener, metrics }: Listeners,
    live: Arc<Live>,
    ends: Ends,
    stop: impl Future<Output = Stop>,
) -> io::Result<()> {
    let (health, health_service) = tonic_health::server::health_reporter();
    let status = Status::default();
    let health = Health { grpc: health, status: status.clone() };
    health.tell(ServingStatus::Serving).await;
    let (stopping, stopped) = watch::channel(());
    let services = Services::new(Arc::clone(&live), health_service, stopped.clone());
    let count = worker_count();
    let (mut deal, mut workers) = worker::start(count, &services, ends.max_connection_age, &stopped, &status)?;
    info!(address = %listener.address(), workers = count, "listening");
    let pages = Arc::new(Pages { registry: scrape::registry(&live, status.clone()), status });

    let (mut left, mut reported) = (ends.shutdown.timeout, Reported::default());
    let ended = tokio::select! {
        failure = listener.accept_all(&mut deal) => Err(failure),
        () = workers.one_ended() => Err(io::Error::other("a worker ended by itself")),
        failure = serve_pages(metrics.as_ref(), &pages) => Err(failure),
        never = sweep(&live, &mut reported) => match never {},
        delay = wait_out(stop, ends.shutdown, &health) => {
            left = left.saturating_sub(delay);
            Ok(())
        }
    };
    if ended.is_err() {
        health.tell(ServingStatus::NotServing).await;
    }
    info!("draining: no new connections, requests in flight are answered");
    drop(listener);
    // How it stops can be looked at.
    tokio::select! {
        () = drain(workers, stopping, health.grpc, left) => {}
        _ = serve_pages(metrics.as_ref(), &pages) => {}
    }
    report(&live, &mut reported);
    ended
}

/// Waits for the stop and its delay, and gives the delay. Meanwhile the health is NOT_SERVING.
async fn wait_out(stop: impl Future<Output = Stop>, shutdown: Shutdown, health: &Health) -> Duration {
    let delay = match stop.await {
        Stop::AfterDelay => shutdown.delay,
        Stop::Now => Duration::ZERO,
    };
    health.tell(ServingStatus::NotServing).await;
    info!(?delay, timeout = ?shutdown.timeout, "stopping: the health is NOT_SERVING, requests are taken for the delay");
    tokio::time::sleep(delay).await;
    delay
}

/// Serves metrics and health, if they are asked for.
async fn serve_pages(metrics: Option<&Listener>, pages: &Arc<Pages>) -> io::Error {
    match metrics {
        Some(listener) => http::serve(listener, pages).await,
        None => std::future::pending().await,
    }
}

/// The health, told by gRPC and HTTP in step.
struct Health {
    grpc: HealthReporter,
    status: Status,
}

impl Health {
    /// Tells the health of every service, also to those who watch it.
    async fn tell(&self, status: ServingStatus) {
        self.status.tell(status == ServingStatus::Serving);
        for service in HEALTH {
            self.grpc.set_service_status(service, status).await;
        }
    }
}

/// Ends the workers within the time that is left. Whoever watches the health is let go, since a watch would never end
/// by itself; last, so that it is not opened again on a connection that has no GOAWAY yet.
async fn drain(workers: Workers, stopping: watch::Sender<()>, mut health: HealthReporter, left: Duration) {
    drop(stopping);
    for service in HEALTH {
        health.clear_service_status(service).await;
    }
    if tokio::time::timeout(left, workers.all_done()).await.is_err() {
        warn!("requests in flight did not end before the shutdown timeout and are cut off");
    }
}

/// Sweeps on a thread of its own, so that connections are accepted meanwhile, and reports what requests lacked.
async fn sweep(live: &Arc<Live>, reported: &mut Reported) -> Infallible {
    let mut every = tokio::time::interval(SWEEP);
    loop {
        every.tick().await;
        let sweeping = Arc::clone(live);
        if tokio::task::spawn_blocking(move || sweeping.load().engine.sweep()).await.is_err() {
            warn!("a sweep failed; expired state stays until the next one");
        }
        report(live, reported);
    }
}

/// Reports what is counted, and log lines that were left out.
fn report(live: &Live, reported: &mut Reported) {
    let judge = live.load();
    reported.report(&judge.engine);
    judge.telemetry.report_left_out();
}

/// One worker a core.
fn worker_count() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
}

/// Binds all that `listen` names.
///
/// # Errors
///
/// An I/O error, with the address in its text.
pub async fn bind_all(listen: &Listen) -> io::Result<Listeners> {
    let grpc = bind(&listen.grpc).await?;
    let metrics = match &listen.metrics {
        Some(address) => {
            let listener = bind(address).await?;
            info!(address = %listener.address(), "metrics and health");
            Some(listener)
        }
        None => None,
    };
    Ok(Listeners { grpc, metrics })
}

/// Binds `address`.
///
/// # Errors
///
/// An I/O error, with the address in its text.
pub async fn bind(address: &ListenAddress) -> io::Result<Listener> {
    let failed = |error: io::Error| io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"));
    Listener::bind(address).await.map_err(failed)
}
