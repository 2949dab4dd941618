//! The log of the service: lines on standard error, written by a thread of their own.

use crate::config::{LogFormat, LogLevel, LogRules};
use crate::reload::Live;
use std::convert::Infallible;
use std::io;
use std::time::Duration;
use tracing_appender::non_blocking::{ErrorCounter, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry, fmt, reload};

/// How often lines that were lost are reported.
const REPORT: Duration = Duration::from_secs(10);

/// A running log. Dropping it writes what is still waiting, for at most a second.
pub struct Log {
    _writer: WorkerGuard,
    lost: ErrorCounter,
    level: reload::Handle<Targets, Registry>,
}

impl Log {
    /// Starts the log. A request never waits for it: where standard error does not keep up, lines are left out and
    /// counted. Only Tollgate's own lines are in it, since those of the HTTP stack may show headers.
    pub fn start(rules: &LogRules) -> Self {
        let (writer, guard) = NonBlockingBuilder::default().lossy(true).finish(io::stderr());
        let lost = writer.error_counter();
        let lines = fmt::layer().with_writer(writer);
        let lines: Box<dyn Layer<Registry> + Send + Sync> = match rules.format {
            LogFormat::Json => Box::new(lines.json().flatten_event(true)),
            LogFormat::Text => Box::new(lines.with_ansi(false)),
        };
        let (ours, level) = reload::Layer::new(ours(rules.level));
        tracing_subscriber::registry().with(lines.with_filter(ours)).init();
        report_panics();
        Self { _writer: guard, lost, level }
    }

    /// Writes what is at this level, or above, from now on.
    pub fn set_level(&self, level: LogLevel) {
        // It fails where the subscriber is gone, which lives as long as the process.
        let _ = self.level.reload(ours(level));
    }

    /// Reports lines that were lost, from time to time.
    pub async fn report_lost(&self, live: &Live) -> Infallible {
        let mut reported = 0;
        let mut every = tokio::time::interval(REPORT);
        loop {
            every.tick().await;
            let lost = self.lost.dropped_lines();
            if lost > reported {
                live.load().telemetry.metrics().lost((lost - reported) as u64);
                tracing::warn!(lines = lost - reported, "log lines were left out: standard error does not keep up");
                reported = lost;
            }
        }
    }
}

/// Only Tollgate's own lines.
fn ours(lowest: LogLevel) -> Targets {
    Targets::new().with_target("tollgate", level(lowest))
}

fn level(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    }
}

/// A panic is one log line with its place. Its message is left out: it may hold a piece of a request.
fn report_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string);
        tracing::error!(place, "a bug in Tollgate");
    }));
}
