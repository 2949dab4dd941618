//! Sends batches of spans, and counts those that never arrive.

use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::{OTelSdkError, OTelSdkResult};
use opentelemetry_sdk::trace::{self, SpanData};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tracing::{info, warn};

/// The most spans that wait to be sent.
pub const MOST_WAITING: usize = 2048;

/// What to do where spans are lost.
pub const HINT: &str = "look for the collector at `traces.otlp`";

/// What became of spans.
#[derive(Debug, Default)]
pub struct Counts {
    waiting: AtomicU64,
    sent: AtomicU64,
    lost: AtomicU64,
}

impl Counts {
    /// Takes a place for a span that waits, unless all are taken: then it is lost.
    pub fn take_place(&self) -> bool {
        let next = |waiting| (waiting < MOST_WAITING as u64).then_some(waiting + 1);
        let has_room = self.waiting.fetch_update(Relaxed, Relaxed, next).is_ok();
        if !has_room {
            self.lost.fetch_add(1, Relaxed);
        }
        has_room
    }

    fn end(&self, spans: u64, is_sent: bool) {
        let ended = if is_sent { &self.sent } else { &self.lost };
        ended.fetch_add(spans, Relaxed);
        self.waiting.fetch_sub(spans, Relaxed);
    }

    /// Spans that the collector took, and those that were lost.
    pub fn read(&self) -> [u64; 2] {
        [&self.sent, &self.lost].map(|count| count.load(Relaxed))
    }

    /// Spans that never arrived, those included that still wait.
    pub fn missing(&self) -> u64 {
        self.lost.load(Relaxed) + self.waiting.load(Relaxed)
    }
}

/// An exporter that counts, and tells when spans begin to be lost and when none is any more.
#[derive(Debug)]
pub struct Counted {
    exporter: SpanExporter,
    counts: Arc<Counts>,
    endpoint: String,
    /// How many were lost when the last batch had ended.
    lost: AtomicU64,
    is_losing: AtomicBool,
}

impl Counted {
    pub fn new(exporter: SpanExporter, endpoint: &str, counts: &Arc<Counts>) -> Self {
        let (lost, is_losing) = (AtomicU64::default(), AtomicBool::default());
        Self { exporter, counts: Arc::clone(counts), endpoint: endpoint.to_owned(), lost, is_losing }
    }

    fn tell(&self, error: Option<&OTelSdkError>) {
        let (endpoint, [_, lost]) = (&*self.endpoint, self.counts.read());
        let is_losing = lost > self.lost.swap(lost, Relaxed);
        match (self.is_losing.swap(is_losing, Relaxed), is_losing) {
            (false, true) => {
                let error = error.map_or_else(|| "they come faster than it takes them".to_owned(), ToString::to_string);
                warn!(endpoint, error, hint = HINT, "spans are lost: the collector does not take them");
            }
            (true, false) => info!(endpoint, lost, "no more spans are lost"),
            _ => {}
        }
    }
}

impl trace::SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let sent = self.exporter.export(batch).await;
        self.counts.end(spans, sent.is_ok());
        self.tell(sent.as_ref().err());
        sent
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.exporter.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.exporter.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.exporter.set_resource(resource);
    }
}
