//! `tollgate serve`: runs the service until it is told to stop.

use crate::cli::{Failure, check};
use crate::config::{Config, ListenAddress, LogFormat, LogLevel, LogRules};
use crate::engine::Engine;
use crate::envoy::ext_authz::ExtAuthz;
use crate::server;
use crate::telemetry::Telemetry;
use crate::time::SystemClock;
use std::io;
use std::path::PathBuf;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// Run the external-authorization service until SIGTERM or SIGINT
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE", env = "TOLLGATE_CONFIG")]
    config: PathBuf,
    /// Listen here instead of at the file's listen.grpc: host:port, [::]:port or unix:/path
    #[arg(long, value_name = "ADDRESS", env = "TOLLGATE_LISTEN")]
    listen: Option<ListenAddress>,
}

/// Serves until SIGTERM or SIGINT, drains and returns. A second signal ends the draining at once.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let mut config = check::load(&arguments.config)?;
    if let Some(listen) = arguments.listen {
        config.listen = listen;
    }
    start_log(&config.log);
    report_panics();
    // Control work is this runtime's; requests are the workers'.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io(&error))?;
    runtime.block_on(serve(config)).map_err(|error| Failure::io(&error))
}

async fn serve(config: Config) -> io::Result<()> {
    let (mut stop, mut again) = (Stop::new()?, Stop::new()?);
    let listener = server::bind(&config.listen).await?;
    let ext_authz = ExtAuthz {
        engine: Engine::new(config.token, config.prefixes, config.callers, SystemClock::default()),
        response: config.response,
        telemetry: Telemetry::new(config.log.principal),
    };
    let second = async {
        again.asked().await;
        again.asked().await;
    };
    tokio::select! {
        served = server::run(listener, ext_authz, stop.asked()) => served,
        () = second => {
            tracing::warn!("told to stop again: requests in flight are cut off");
            Ok(())
        }
    }
}

/// The signals that ask the process to stop.
struct Stop {
    terminate: Signal,
    interrupt: Signal,
}

impl Stop {
    fn new() -> io::Result<Self> {
        Ok(Self { terminate: signal(SignalKind::terminate())?, interrupt: signal(SignalKind::interrupt())? })
    }

    async fn asked(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

/// The log goes to standard error. Only Tollgate's own lines are in it: those of the HTTP stack may show headers.
fn start_log(rules: &LogRules) {
    let level = match rules.level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let lines = fmt::layer().with_writer(io::stderr);
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match rules.format {
        LogFormat::Json => Box::new(lines.json().flatten_event(true)),
        LogFormat::Text => Box::new(lines.with_ansi(false)),
    };
    let ours = Targets::new().with_target("tollgate", level);
    tracing_subscriber::registry().with(lines.with_filter(ours)).init();
}

/// A panic is one log line with its place. Its message is left out: it may hold a piece of the request.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a bug: the request at hand is answered with an error");
    }));
}
