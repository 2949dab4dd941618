//! What a scrape reads of the live state: tables, outcomes, the configuration, connections. Labels are names of the
//! configuration, so that the size of a scrape does not depend on callers.

use super::Status;
use crate::engine::Engine;
use crate::reload::Live;
use crate::store::limit::TableCounts;
use crate::store::strikes::StrikeCounts;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;
use std::fmt::{Debug, Error, Formatter};
use std::sync::Arc;

/// What is read at each scrape.
struct Scrape {
    live: Arc<Live>,
    status: Status,
}

/// All metrics: those that are counted as requests go by, and those that are read when asked for.
pub fn registry(live: &Arc<Live>, status: Status) -> Registry {
    let mut registry = Registry::default();
    live.load().telemetry.metrics().register(&mut registry);
    registry.register_collector(Box::new(Scrape { live: Arc::clone(live), status }));
    registry
}

/// Labels and a value.
type Sample<'s> = (Vec<(&'static str, &'s str)>, f64);

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let judge = self.live.load();
        let mut writer = Writer(&mut encoder);
        of_process(&mut writer, &self.status)?;
        of_configuration(&mut writer, &self.live)?;
        #[cfg(feature = "otlp")]
        judge.telemetry.spans().map_or(Ok(()), |spans| of_spans(&mut writer, spans.counts()))?;
        of_tables(&mut writer, &judge.engine)?;
        of_outcomes(&mut writer, &judge.engine)
    }
}

fn of_process(writer: &mut Writer<'_, '_>, status: &Status) -> Result<(), Error> {
    let version = vec![("version", env!("CARGO_PKG_VERSION"))];
    writer.gauges("tollgate_build_info", "The version that runs", [(version, 1.0)])?;
    writer.gauge(
        "tollgate_ready",
        "Whether requests are taken and will be (1), or it is stopping (0)",
        status.is_ready().into(),
    )?;
    let connections = &status.connections;
    writer.gauge(
        "tollgate_connections",
        "Connections of Envoys and others to the gRPC port",
        connections.open() as u64,
    )?;
    let oldest = connections.oldest().map_or(0.0, |age| age.as_secs_f64());
    writer.gauges("tollgate_connection_oldest_age_seconds", "Age of the oldest of these", [(vec![], oldest)])?;
    writer.counter("tollgate_connections_opened", "Connections that were taken", connections.opened())
}

fn of_configuration(writer: &mut Writer<'_, '_>, live: &Live) -> Result<(), Error> {
    let status = live.status();
    let hash = status.hash.to_string();
    let help = "The live configuration, by the start of the SHA-256 of its file";
    writer.gauges("tollgate_config_info", help, [(vec![("hash", &*hash)], 1.0)])?;
    let help = "When the live configuration became so, in seconds since 1970";
    writer.gauge("tollgate_config_live_timestamp_seconds", help, status.since)?;
    let help = "Whether the configuration file is the live one (1), or has mistakes or cannot be read (0)";
    writer.gauge("tollgate_config_is_current", help, status.is_current().into())?;
    let help = "Whether the live configuration has changes that only a restart brings (1)";
    writer.gauge("tollgate_config_needs_restart", help, status.needs_restart.into())?;
    let results =
        [(vec![("result", "applied")], status.applied as f64), (vec![("result", "refused")], status.refused as f64)];
    writer.counters("tollgate_config_reloads", "Changes of the configuration file that were seen", results)?;
    let (written, failed) = (status.snapshots_written as f64, status.snapshots_failed as f64);
    let results = [(vec![("result", "written")], written), (vec![("result", "failed")], failed)];
    writer.counters("tollgate_snapshots", "Snapshots of the state, where they are turned on", results)?;
    let help = "When the last snapshot was written, or else the process started, in seconds since 1970";
    let last = status.last_snapshot.map(|seconds| (vec![], seconds as f64));
    writer.gauges("tollgate_snapshot_timestamp_seconds", help, last)
}

#[cfg(feature = "otlp")]
fn of_spans(writer: &mut Writer<'_, '_>, [sent, lost]: [u64; 2]) -> Result<(), Error> {
    let results = [(vec![("result", "sent")], sent as f64), (vec![("result", "lost")], lost as f64)];
    writer.counters("tollgate_spans", "Spans, by whether the collector took them", results)
}

fn of_tables(writer: &mut Writer<'_, '_>, engine: &Engine) -> Result<(), Error> {
    writer.gauge("tollgate_callers", "Callers that have state", engine.callers() as u64)?;
    let limits: Vec<_> = engine.limit_counts().collect();
    let each = |value: fn(&TableCounts) -> u64| -> Vec<Sample<'_>> {
        limits.iter().map(|(name, counts)| (vec![("limit", *name)], value(counts) as f64)).collect()
    };
    writer.gauges("tollgate_limit_keys", "Keys that a limit holds", each(|counts| counts.live as u64))?;
    writer.gauges(
        "tollgate_limit_shared_allowances",
        "Allowances that keys without room share",
        each(|counts| counts.shared as u64),
    )?;
    writer.counters(
        "tollgate_limit_evicted",
        "Full allowances that made room for other keys",
        each(|counts| counts.evicted),
    )?;
    let help = "Keys that were forgotten although they had spent something, for want of room";
    writer.counters("tollgate_limit_forgiven", help, each(|counts| counts.forgiven))?;
    let help = "Requests that shared an allowance, since there was no room for their key";
    writer.counters("tollgate_limit_overflowed", help, each(|counts| counts.overflowed))?;
    let help = "Requests that were refused, since there was no room for their key";
    writer.counters("tollgate_limit_turned_away", help, each(|counts| counts.refused))?;
    let lockouts: Vec<_> = engine.strike_counts().collect();
    let each = |value: fn(&StrikeCounts) -> u64| -> Vec<Sample<'_>> {
        lockouts.iter().map(|(name, counts)| (vec![("lockout", *name)], value(counts) as f64)).collect()
    };
    writer.gauges("tollgate_lockout_keys", "Keys that a lockout knows", each(|counts| counts.live as u64))?;
    writer.gauges("tollgate_lockout_locked_keys", "Keys that are locked", each(|counts| counts.locked as u64))?;
    let help = "Keys whose attempts were forgotten, for want of room";
    writer.counters("tollgate_lockout_forgiven", help, each(|counts| counts.forgiven))?;
    let help = "Attempts that were denied, since every place was locked";
    writer.counters("tollgate_lockout_turned_away", help, each(|counts| counts.turned_away))
}

fn of_outcomes(writer: &mut Writer<'_, '_>, engine: &Engine) -> Result<(), Error> {
    let outcomes = engine.outcome_counts().read();
    let kinds = outcomes.map(|(settled, count)| (vec![("result", settled.as_str())], count as f64));
    writer.counters(
        "tollgate_outcomes",
        "Outcomes that Envoy told, by what became of them: one for each rule that waited",
        kinds,
    )?;
    writer.counter(
        "tollgate_reservations",
        "Requests that went on and whose outcome a rule waits for",
        engine.reservations(),
    )?;
    let help = "Those of them whose outcome was told in time";
    writer.counter("tollgate_reservations_settled", help, engine.outcome_counts().in_time())?;
    let counted = engine.policy().counts.read();
    writer.counter(
        "tollgate_missing_costs",
        "Requests that cost the default, since they did not say what they cost",
        counted.missing_costs,
    )?;
    let help = "Requests that came without a readable address of their client, where some rule may ask for it";
    writer.counter("tollgate_unknown_clients", help, counted.unknown_clients)
}

/// Writes metrics in the form of whoever asks.
struct Writer<'w, 'e>(&'w mut DescriptorEncoder<'e>);

impl Writer<'_, '_> {
    fn gauge(&mut self, name: &str, help: &str, value: u64) -> Result<(), Error> {
        self.gauges(name, help, [(vec![], value as f64)])
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) -> Result<(), Error> {
        self.counters(name, help, [(vec![], value as f64)])
    }

    fn gauges<'s>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'s>>,
    ) -> Result<(), Error> {
        self.write(name, help, MetricType::Gauge, samples)
    }

    fn counters<'s>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = Sample<'s>>,
    ) -> Result<(), Error> {
        self.write(name, help, MetricType::Counter, samples)
    }

    fn write<'s>(
        &mut self,
        name: &str,
        help: &str,
        kind: MetricType,
        samples: impl IntoIterator<Item = Sample<'s>>,
    ) -> Result<(), Error> {
        let mut descriptor = self.0.encode_descriptor(name, help, None, kind)?;
        for (labels, value) in samples {
            let metric = descriptor.encode_family(&labels)?;
            match kind {
                MetricType::Counter => ConstCounter::new(value).encode(metric)?,
                _ => ConstGauge::new(value).encode(metric)?,
            }
        }
        Ok(())
    }
}

impl Debug for Scrape {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scrape").finish_non_exhaustive()
    }
}
