//! Sockets, workers and an orderly stop: one acceptor deals connections in turn over single-threaded workers.

pub mod connection;
pub mod listener;
pub mod services;
pub mod worker;

use crate::config::ListenAddress;
use crate::envoy::ext_authz::ExtAuthz;
use crate::server::listener::Listener;
use crate::server::services::Services;
use crate::server::worker::Workers;
use std::convert::Infallible;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tonic_health::ServingStatus;
use tonic_health::server::HealthReporter;
use tracing::{info, warn};

/// How long requests in flight may take to end after a stop was asked for: well within the 30 seconds after which
/// Kubernetes kills a process.
const DRAIN: Duration = Duration::from_secs(25);

/// How often expired state is swept beside the sweeping that new callers do.
const SWEEP: Duration = Duration::from_secs(60);

/// The services whose health is told: the process as a whole, and the one that Envoy calls.
const HEALTH: [&str; 2] = ["", services::AUTHORIZATION];

/// Serves on `listener` until `stop` is done, then drains: no new connection, GOAWAY on the old ones, and the
/// requests in flight are answered.
///
/// # Errors
///
/// An I/O error of the listener, or of starting the workers.
pub async fn run(listener: Listener, ext_authz: ExtAuthz, stop: impl Future<Output = ()>) -> io::Result<()> {
    let ext_authz = Arc::new(ext_authz);
    let (health, health_service) = tonic_health::server::health_reporter();
    for service in HEALTH {
        health.set_service_status(service, ServingStatus::Serving).await;
    }
    let (stopping, stopped) = watch::channel(());
    let services = Services::new(Arc::clone(&ext_authz), health_service);
    let count = worker_count();
    let (mut deal, mut workers) = worker::start(count, &services, &stopped)?;
    info!(address = %listener.address(), workers = count, "listening");

    let ended = tokio::select! {
        failure = listener.accept_all(&mut deal) => Err(failure),
        () = workers.one_ended() => Err(io::Error::other("a worker ended by itself")),
        never = sweep(&ext_authz) => match never {},
        () = stop => Ok(()),
    };
    info!("stopping: no new connections, requests in flight are answered");
    drop(listener);
    drain(workers, stopping, health).await;
    ended
}

/// Ends the workers. Whoever watches the health is told and let go: a watch is a request that would never end.
async fn drain(workers: Workers, stopping: watch::Sender<()>, mut health: HealthReporter) {
    for service in HEALTH {
        health.set_service_status(service, ServingStatus::NotServing).await;
        health.clear_service_status(service).await;
    }
    drop(stopping);
    if tokio::time::timeout(DRAIN, workers.all_ended()).await.is_err() {
        warn!(seconds = DRAIN.as_secs(), "requests in flight did not end in time and are cut off");
    }
}

/// Sweeps on a thread of its own, so that connections are accepted meanwhile.
async fn sweep(ext_authz: &Arc<ExtAuthz>) -> Infallible {
    let mut every = tokio::time::interval(SWEEP);
    loop {
        every.tick().await;
        let ext_authz = Arc::clone(ext_authz);
        if tokio::task::spawn_blocking(move || ext_authz.engine.sweep()).await.is_err() {
            warn!("a sweep failed; expired state stays until the next one");
        }
    }
}

/// One worker a core.
fn worker_count() -> NonZeroUsize {
    std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN)
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
