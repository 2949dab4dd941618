//! `tollgate serve`: runs the service until it is told to stop.

mod log;

use crate::cli::Failure;
use crate::cli::service::Service;
use crate::config::{Config, Diagnostics};
use crate::engine::Engine;
use crate::envoy::ext_authz::ExtAuthz;
use crate::server::{self, Ends, Stop};
use crate::telemetry::Telemetry;
use crate::time::SystemClock;
use log::Log;
use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Run the external-authorization service until SIGTERM or SIGINT
///
/// At SIGTERM the health turns NOT_SERVING; after `shutdown.delay` connections are drained, and `shutdown.timeout` after
/// the signal the process ends at the latest. SIGINT skips the delay. A second signal of either kind ends the process at
/// once.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    service: Service,
}

/// Serves until SIGTERM or SIGINT, drains and returns. A second signal ends the delay and the draining at once.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let config = arguments.service.load()?;
    let log = Log::start(&config.log);
    for (line, cause, hint) in config.warnings.iter().flat_map(Diagnostics::records) {
        tracing::warn!(line, hint, "the configuration may not be meant so: {cause}");
    }
    // Control work is this runtime's; requests are the workers'.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io(&error))?;
    runtime.block_on(serve(config, &log)).map_err(|error| Failure::io(&error))
}

async fn serve(config: Config, log: &Log) -> io::Result<()> {
    let (mut first, mut again) = (Signals::new()?, Signals::new()?);
    let listener = server::bind(&config.listen.grpc).await?;
    let ends = Ends { max_connection_age: config.listen.max_connection_age, shutdown: config.shutdown };
    let ext_authz = ExtAuthz {
        engine: Engine::new(config.token, config.prefixes, config.policy, SystemClock::default()),
        response: config.response,
        telemetry: Telemetry::new(config.log.principal),
    };
    let second = async {
        again.asked().await;
        again.asked().await;
    };
    tokio::select! {
        never = log.report_lost() => match never {},
        served = server::run(listener, ext_authz, ends, first.asked()) => served,
        () = second => {
            tracing::warn!("told to stop again: requests in flight are cut off");
            Ok(())
        }
    }
}

/// The signals that ask the process to stop.
struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn asked(&mut self) -> Stop {
        tokio::select! {
            _ = self.terminate.recv() => Stop::AfterDelay,
            _ = self.interrupt.recv() => Stop::Now,
        }
    }
}
