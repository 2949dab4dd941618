//! `tollgate serve`: runs the service until it is told to stop.

mod log;

use crate::cli::Failure;
use crate::cli::service::Service;
use crate::config::{Config, ConfigError, Diagnostics, Snapshot};
use crate::envoy::ext_authz::ExtAuthz;
use crate::reload::watch::{Seen, Watch};
use crate::reload::{Changed, Hash, Live, Source};
use crate::server::{self, Ends, Stop, snapshot};
#[cfg(feature = "otlp")]
use crate::telemetry::spans::Spans;
use crate::time::SystemClock;
use log::Log;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// How far back the clock goes, so that what a snapshot remembers has a time on it: twice the longest window of a limit.
const PAST: Duration = Duration::from_secs(2 * 366 * 24 * 60 * 60);

/// How long the last snapshot may take.
const LAST_SNAPSHOT: Duration = Duration::from_secs(5);

/// Run the external-authorization service until SIGTERM or SIGINT
///
/// At SIGTERM the health turns NOT_SERVING; after `shutdown.delay` connections are drained, and `shutdown.timeout` after
/// the signal what is still in flight is cut off. The last snapshot may take some 5 seconds more. SIGINT skips the delay. A
/// second signal of either kind ends the process at once.
///
/// The configuration file is watched, and read anew at SIGHUP: a good one is live at once, a bad one is logged and changes
/// nothing. What needs a restart is said.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    service: Service,
}

/// Serves until SIGTERM or SIGINT, drains and returns. A second signal ends the delay and the draining at once.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    // Control work is this runtime's; requests are the workers'.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::io(&error))?;
    // From here on SIGHUP ends nobody.
    let hangup = runtime.block_on(async { signal(SignalKind::hangup()) }).map_err(|error| Failure::io(&error))?;
    let (source, config) = arguments.service.open()?;
    let log = Log::start(&config.log);
    warn_of(&config);
    let served = runtime.block_on(serve(source, config, hangup, &log));
    // What does not get on, such as a snapshot on a volume that hangs, holds nobody up.
    runtime.shutdown_background();
    served.map_err(|error| Failure::io(&error))
}

async fn serve(source: Source, config: Config, hangup: Signal, log: &Log) -> io::Result<()> {
    let (mut first, mut again) = (Signals::new()?, Signals::new()?);
    let listeners = server::bind_all(&config.listen).await?;
    let ends = Ends { max_connection_age: config.listen.max_connection_age, shutdown: config.shutdown };
    let snapshot = config.snapshot.clone();
    #[cfg(feature = "otlp")]
    let otlp = config.otlp.clone();
    let mut judge = ExtAuthz::new(config, SystemClock::default().begun(PAST));
    snapshot.iter().for_each(|snapshot| snapshot::restore(snapshot, &mut judge.engine));
    #[cfg(feature = "otlp")]
    if let Some(endpoint) = otlp {
        let spans = Spans::start(&endpoint).map_err(|error| io::Error::other(format!("traces.otlp: {error}")))?;
        judge.telemetry.trace(spans);
    }
    let live = Arc::new(Live::new(judge, source.hash()));
    let watch = Watch::start(source.path(), hangup);
    let second = async {
        again.asked().await;
        again.asked().await;
    };
    let orderly = async {
        let served = server::run(listeners, Arc::clone(&live), ends, first.asked()).await;
        finish(snapshot.as_ref(), &live).await;
        served
    };
    tokio::select! {
        never = log.report_lost(&live) => match never {},
        never = reload(watch, source, &live, log) => match never {},
        never = keep(snapshot.as_ref(), &live) => match never {},
        served = orderly => served,
        () = second => {
            tracing::warn!("told to stop again: requests in flight are cut off");
            Ok(())
        }
    }
}

/// Writes what is to survive.
async fn finish(snapshot: Option<&Snapshot>, live: &Arc<Live>) {
    if let Some(snapshot) = snapshot
        && tokio::time::timeout(LAST_SNAPSHOT, snapshot::write(snapshot, live)).await.is_err()
    {
        tracing::warn!(path = %snapshot.path.display(), "the last snapshot does not get on; the one before it stays");
    }
    #[cfg(feature = "otlp")]
    flush(live).await;
}

/// Sends the last spans, from a thread that may wait: they go through this runtime.
#[cfg(feature = "otlp")]
async fn flush(live: &Arc<Live>) {
    let live = Arc::clone(live);
    let _ = tokio::task::spawn_blocking(move || live.load().telemetry.spans().map(Spans::flush)).await;
}

/// Writes snapshots, if they are asked for.
async fn keep(snapshot: Option<&Snapshot>, live: &Arc<Live>) -> Infallible {
    match snapshot {
        Some(snapshot) => snapshot::keep(snapshot, live).await,
        None => std::future::pending().await,
    }
}

/// Follows the configuration file: what is good of it is live at once, what is not changes nothing.
async fn reload(mut watch: Watch, mut source: Source, live: &Arc<Live>, log: &Log) -> Infallible {
    loop {
        match watch.look(&source).await {
            Seen::Changed(bytes) => {
                let changed = source.take(&bytes);
                live.saw(Some(source.hash()));
                take_in(changed, source.hash(), live, log).await;
            }
            Seen::Same => {
                live.saw(Some(source.hash()));
                say_same(live.status().is_current());
            }
            Seen::Unreadable(error) => {
                live.saw(None);
                tracing::warn!(%error, "the configuration file cannot be read; the live configuration stays");
            }
        }
    }
}

/// What to do about a file that cannot be used.
const CHECK: &str = "run `tollgate check` on the file; the earlier configuration stays";

/// Logs that the configuration file holds what was read last.
fn say_same(is_live: bool) {
    if is_live {
        return tracing::info!("the configuration file holds what is live");
    }
    tracing::warn!(hint = CHECK, "the configuration file holds what was refused before");
}

async fn take_in(Changed { config, needs_restart }: Changed, hash: Hash, live: &Arc<Live>, log: &Log) {
    let config = match config {
        Ok(config) => config,
        Err(error) => {
            live.refuse();
            return refuse(hash, &error);
        }
    };
    warn_of(&config);
    log.set_level(config.log.level);
    let (replacing, restart) = (Arc::clone(live), !needs_restart.is_empty());
    // On a thread of its own: it walks all callers.
    if tokio::task::spawn_blocking(move || replacing.replace(config, hash, restart)).await.is_err() {
        live.refuse();
        return tracing::error!(%hash, "the configuration was not reloaded: a bug in Tollgate");
    }
    tracing::info!(%hash, "the configuration was reloaded");
    if restart {
        let sections = needs_restart.join(", ");
        tracing::warn!(sections, "what changed in these sections needs a restart");
    }
}

/// Logs why a configuration is not live.
fn refuse(hash: Hash, error: &ConfigError) {
    if let ConfigError::Mistakes(mistakes) = error {
        for (line, cause, hint) in mistakes.records() {
            tracing::error!(line, hint, "a mistake in the configuration: {cause}");
        }
    }
    tracing::error!(%hash, hint = CHECK, "the configuration was not reloaded: {}", summary(error));
}

fn summary(error: &ConfigError) -> String {
    match error {
        ConfigError::Mistakes(mistakes) => mistakes.summary(),
        error => error.to_string(),
    }
}

/// Logs what of a configuration may not be meant.
fn warn_of(config: &Config) {
    for (line, cause, hint) in config.warnings.iter().flat_map(Diagnostics::records) {
        tracing::warn!(line, hint, "the configuration may not be meant so: {cause}");
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
