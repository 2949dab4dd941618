//! Sends batches of spans, and counts those that never arrive.

use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{self, SpanData};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;
use tracing::{info, warn};

/// The most spans that wait to be sent.
pub const MOST_WAITING: usize = 2048;

/// What became of spans.
#[derive(Debug, Default)]
pub struct Counts {
    waiting: AtomicU64,
    sent: AtomicU64,
    lost: AtomicU64,
}

impl Counts {
    /// Whether there is room for another span to wait; if not, it is lost.
    pub fn has_room(&self) -> bool {
        let room = |waiting| (waiting < MOST_WAITING as u64).then_some(waiting + 1);
        let has_room = self.waiting.fetch_update(Relaxed, Relaxed, room).is_ok();
        self.lost.fetch_add(u64::from(!has_room), Relaxed);
        has_room
    }

    fn end(&self, spans: u64, is_sent: bool) {
        self.waiting.fetch_sub(spans, Relaxed);
        let ended = if is_sent { &self.sent } else { &self.lost };
        ended.fetch_add(spans, Relaxed);
    }

    /// Spans that the collector took, and those that were lost.
    pub fn read(&self) -> [u64; 2] {
        [&self.sent, &self.lost].map(|count| count.load(Relaxed))
    }
}

/// An exporter whose failures are counted, and told when they begin and end.
#[derive(Debug)]
pub struct Counted {
    pub exporter: SpanExporter,
    pub counts: Arc<Counts>,
    pub endpoint: String,
    pub is_failing: AtomicBool,
}

impl trace::SpanExporter for Counted {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let spans = batch.len() as u64;
        let sent = self.exporter.export(batch).await;
        self.counts.end(spans, sent.is_ok());
        let was_failing = self.is_failing.swap(sent.is_err(), Relaxed);
        let (endpoint, [_, lost]) = (&*self.endpoint, self.counts.read());
        match &sent {
            Err(error) if !was_failing => {
                let hint = "look for the collector at `traces.otlp`; tollgate_spans_total says how many are lost";
                warn!(endpoint, %error, hint, "spans are lost: the collector does not take them");
            }
            Ok(()) if was_failing => info!(endpoint, lost, "spans are sent again"),
            _ => {}
        }
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
