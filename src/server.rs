//! Sockets, workers and an orderly stop: one acceptor deals connections in turn over single-threaded workers.

pub mod connection;
pub mod listener;
pub mod services;
pub mod worker;

use crate::config::ListenAddress;
use crate::envoy::ext_authz::ExtAuthz;
use crate::server::listener::Listener;
use crate::server::services::Services;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tonic_health::ServingStatus;
use tracing::{info, warn};

/// How long requests in flight may take to end after a stop was asked for.
const DRAIN: Duration = Duration::from_secs(30);

/// How often expired state is swept beside the sweeping that new callers do.
const SWEEP: Duration = Duration::from_secs(60);

/// Serves on `listener` until `stop` is done, then drains: no new connection, GOAWAY on the old ones, and the
/// requests in flight are answered.
///
/// # Errors
///
/// An I/O error of the listener, or of starting the workers.
pub async fn run(listener: Listener, ext_authz: ExtAuthz, stop: impl Future<Output = ()>) -> io::Result<()> {
    let ext_authz = Arc::new(ext_authz);
    let (reporter, health) = tonic_health::server::health_reporter();
    for service in ["", services::AUTHORIZATION] {
        reporter.set_service_status(service, ServingStatus::Serving).await;
    }
    let (stopping, stopped) = watch::channel(());
    let services = Services::new(Arc::clone(&ext_authz), health);
    let (deal, workers) = worker::start(worker_count(), &services, &stopped)?;
    info!(address = %listener.address(), workers = workers.len(), "listening");

    tokio::select! {
        failure = listener.accept_all(deal) => return Err(failure),
        never = sweep(&ext_authz) => match never {},
        () = stop => {}
    }
    info!("stopping: no new connections, requests in flight are answered");
    for service in ["", services::AUTHORIZATION] {
        reporter.set_service_status(service, ServingStatus::NotServing).await;
    }
    drop(listener);
    drop(stopping);
    if tokio::time::timeout(DRAIN, worker::join(workers)).await.is_err() {
        warn!(seconds = DRAIN.as_secs(), "requests in flight did not end in time and are cut off");
    }
    Ok(())
}

async fn sweep(ext_authz: &ExtAuthz) -> std::convert::Infallible {
    let mut every = tokio::time::interval(SWEEP);
    loop {
        every.tick().await;
        ext_authz.engine.sweep();
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
