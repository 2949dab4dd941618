//! Traces over OTLP: one span for each Check that Envoy traces, as a child of Envoy's. No name of a caller is in it.

mod exporter;

use crate::decision::Decision;
use crate::time::from_calendar;
use exporter::{Counted, Counts, HINT, MOST_WAITING};
use opentelemetry::trace::{
    Span as _, SpanBuilder, SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter, WithExportConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider};
use std::sync::Arc;
use std::time::Duration;

/// How long spans that wait may take to be sent at the end.
const LAST: Duration = Duration::from_secs(2);

/// Sends spans to a collector, in batches, from a thread of its own.
pub struct Spans {
    provider: SdkTracerProvider,
    tracer: SdkTracer,
    counts: Arc<Counts>,
}

/// A Check that is traced, from its start on.
pub struct Started {
    parent: SpanContext,
    /// The calendar at the start, in nanoseconds.
    since: u64,
}

impl Spans {
    /// Spans for the collector at `endpoint`, an http URL. It is to be called within the runtime that sends them.
    ///
    /// # Errors
    ///
    /// Those of the exporter, if `endpoint` is none.
    pub fn start(endpoint: &str) -> Result<Self, ExporterBuildError> {
        let exporter = SpanExporter::builder().with_tonic().with_endpoint(endpoint).build()?;
        let counts = Arc::<Counts>::default();
        let exporter = Counted::new(exporter, endpoint, &counts);
        let queue = BatchConfigBuilder::default().with_max_queue_size(MOST_WAITING).build();
        let provider = SdkTracerProvider::builder()
            .with_span_processor(BatchSpanProcessor::builder(exporter).with_batch_config(queue).build())
            // Whatever OTEL_TRACES_SAMPLER says: a span that is not sent would keep its place for ever.
            .with_sampler(Sampler::AlwaysOn)
            .with_resource(Resource::builder().with_service_name("tollgate").build())
            .build();
        Ok(Self { tracer: provider.tracer("tollgate"), provider, counts })
    }

    /// Spans that the collector took, and those that were lost.
    pub fn counts(&self) -> [u64; 2] {
        self.counts.read()
    }

    /// A span that goes on with `traceparent` (W3C Trace Context), if that is of a trace that is sampled.
    pub fn begin(&self, traceparent: Option<&[u8]>, calendar: impl FnOnce() -> u64) -> Option<Started> {
        let parent = parse(str::from_utf8(traceparent?).ok()?)?;
        Some(Started { parent, since: calendar() })
    }

    /// Ends a span with what was decided.
    pub fn end(&self, Started { parent, since }: Started, decision: &Decision<'_>, calendar: u64) {
        if !self.counts.take_place() {
            return;
        }
        let (verdict, refusal) = match decision.observed().filter(|_| decision.is_allowed()) {
            Some(refusal) => ("observed", refusal),
            None if decision.is_allowed() => ("allowed", decision),
            None => ("refused", decision),
        };
        let mut attributes = vec![
            KeyValue::new("tollgate.verdict", verdict),
            KeyValue::new("tollgate.reason", refusal.reason().as_str()),
        ];
        attributes.extend(refusal.refused_by().map(|by| KeyValue::new("tollgate.refused_by", by.to_owned())));
        let builder = SpanBuilder::from_name("tollgate.check")
            .with_kind(SpanKind::Server)
            .with_start_time(from_calendar(since))
            .with_attributes(attributes);
        let mut span = self.tracer.build_with_context(builder, &Context::new().with_remote_span_context(parent));
        span.end_with_timestamp(from_calendar(calendar));
    }

    /// Sends what waits, and tells how many never arrived. It blocks.
    pub fn flush(&self) {
        let error = self.provider.shutdown_with_timeout(LAST).err().map(|error| error.to_string());
        let lost = self.counts.missing();
        if lost > 0 {
            tracing::warn!(lost, error, hint = HINT, "spans were lost: so many since the start");
        }
    }
}

/// `00-TRACE-PARENT-FLAGS`, where the lowest flag says that the trace is sampled.
fn parse(traceparent: &str) -> Option<SpanContext> {
    let mut fields = traceparent.split('-');
    let (_, trace, span, flags) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    let (trace, span) = (TraceId::from_hex(trace).ok()?, SpanId::from_hex(span).ok()?);
    let parent = SpanContext::new(trace, span, flags, true, TraceState::default());
    (parent.is_valid() && parent.is_sampled()).then_some(parent)
}
