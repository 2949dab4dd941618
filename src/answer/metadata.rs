//! What Envoy is told of a decision beside the answer: dynamic metadata, for its access log and later filters.

use super::Words;
use crate::decision::{Decision, Verdict};

/// Which decisions Envoy is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionMetadata {
    /// Refusals, also those that are only observed.
    Refused,
    /// Every decision.
    All,
    /// None.
    Off,
}

/// Keys and what stands under them.
pub type Metadata = Vec<(&'static str, MetadataValue)>;

/// One value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MetadataValue {
    /// A text.
    Text(String),
    /// A whole number.
    Number(u64),
}

impl DecisionMetadata {
    /// What is told of `decision`. No text of a claim or a header is in it; a rate is written by its numbers.
    pub(super) fn of(self, decision: &Decision<'_>) -> Metadata {
        let (decision, verdict) = match decision.observed().filter(|_| decision.is_allowed()) {
            Some(refusal) => (refusal, "would-be-refused"),
            None if decision.is_allowed() => (decision, "allowed"),
            None => (decision, "refused"),
        };
        match (self, Words::of(decision)) {
            (Self::Off, _) | (Self::Refused, None) => Metadata::new(),
            (Self::All, None) => vec![("verdict", text(verdict))],
            (Self::Refused | Self::All, Some(words)) => refusal(decision, verdict, &words),
        }
    }
}

fn refusal(decision: &Decision<'_>, verdict: &str, words: &Words) -> Metadata {
    let mut metadata = vec![
        ("verdict", text(verdict)),
        ("reason", text(&decision.reason().to_string())),
        ("status", MetadataValue::Number(words.status.into())),
    ];
    metadata.extend(decision.refused_by().map(|rule| ("refused_by", text(rule))));
    if let Verdict::RateExceeded { limit, .. } = decision.verdict() {
        metadata.extend(limit.rate().map(|rate| ("limit", text(&rate.to_string()))));
    }
    metadata.extend(words.retry_after.map(|seconds| ("retry_after", MetadataValue::Number(seconds))));
    metadata
}

/// By what the outcome of a request is to be told: Envoy's access log brings it back.
pub(super) fn reservation(reservation: &str) -> (&'static str, MetadataValue) {
    ("reservation", text(reservation))
}

fn text(text: &str) -> MetadataValue {
    MetadataValue::Text(text.to_owned())
}
