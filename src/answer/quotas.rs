//! The headers that tell a client its quotas.
//!
//! - `ietf-10` (draft-ietf-httpapi-ratelimit-headers-10): every quota, in two structured fields (RFC 9651). `q` is what a
//!   full allowance holds and `w` the time in which all of it comes back, so that `q` per `w` is the rate whatever the
//!   burst; `r` is what it holds now and `t` the wait for one unit more, left out if it is full.
//! - `ietf-03` (draft-ietf-httpapi-ratelimit-headers-03) and `x-ratelimit`: the quota with the fewest units left, of those
//!   the one that takes longest to be full; the reset is when it is full. A client may go on sooner, one request for each
//!   unit that comes back; a refused one is told by `Retry-After`, which takes precedence.
//!
//! Times are whole seconds, rounded up, so that a client that waits so long is not too early.

use super::Headers;
use crate::decision::Quota;
use crate::rate::Rate;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::fmt::Write;

/// How clients are told of their quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuotaHeaders {
    /// Not at all.
    Off,
    /// `RateLimit-Policy` and `RateLimit`.
    Ietf10,
    /// `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`.
    Ietf03,
    /// `X-RateLimit-Limit`, `X-RateLimit-Remaining` and `X-RateLimit-Reset`.
    XRateLimit(ResetTime),
}

/// How `X-RateLimit-Reset` tells its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResetTime {
    /// In seconds since the Unix epoch.
    Unix,
    /// In seconds from now.
    Seconds,
}

/// The names of all of these headers.
pub(super) const NAMES: [&str; 8] = [POLICY, STATE, IETF_03[0], IETF_03[1], IETF_03[2], X[0], X[1], X[2]];

const POLICY: &str = "ratelimit-policy";
const STATE: &str = "ratelimit";
const IETF_03: [&str; 3] = ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"];
const X: [&str; 3] = ["x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"];

/// The most quotas that one answer tells of: those with the fewest units left. A token may carry hundreds of rates.
const MOST: usize = 32;

/// The largest integer of a structured field.
const LARGEST: u128 = 999_999_999_999_999;

const SECOND: u64 = 1_000_000_000;
const MILLISECOND: u64 = 1_000_000;

impl QuotaHeaders {
    /// The headers about `quotas`; none if there are none. `calendar` tells the nanoseconds since the Unix epoch.
    pub(super) fn of(self, quotas: &[Quota], calendar: impl FnOnce() -> u64) -> Headers {
        match (self, quotas.iter().min_by_key(|quota| scarcity(quota))) {
            (Self::Off, _) | (_, None) => Headers::new(),
            (Self::Ietf10, Some(_)) => structured(quotas),
            (Self::Ietf03, Some(quota)) => one(IETF_03, quota, seconds(quota.reading.full_in)),
            (Self::XRateLimit(ResetTime::Seconds), Some(quota)) => one(X, quota, seconds(quota.reading.full_in)),
            (Self::XRateLimit(ResetTime::Unix), Some(quota)) => one(X, quota, reset_at(quota, calendar())),
        }
    }
}

/// What a client knows a quota by: the name of the limit, or the text of the rate, in ASCII (`us` is `µs`).
pub(super) fn name(limit: Option<&str>, rate: Rate) -> Cow<'_, str> {
    limit.map_or_else(|| rate.to_string().replace('µ', "u").into(), Cow::Borrowed)
}

/// The fewest whole units come first, then the longest wait.
fn scarcity(quota: &Quota) -> (u64, Reverse<u64>) {
    (quota.reading.remaining, Reverse(quota.reading.full_in))
}

fn structured(quotas: &[Quota]) -> Headers {
    let mut told: Vec<&Quota> = quotas.iter().collect();
    if told.len() > MOST {
        told.sort_by_key(|quota| scarcity(quota));
        told.truncate(MOST);
    }
    let (mut policies, mut states) = (String::new(), String::new());
    for quota in told {
        let comma = if policies.is_empty() { "" } else { ", " };
        let name = string(&name(quota.name.as_deref(), quota.rate));
        // Writing to a string cannot fail.
        let _ = write!(policies, "{comma}{name};q={};w={}", integer(quota.most), window(quota));
        let _ = write!(states, "{comma}{name};r={}", integer(quota.reading.remaining));
        if quota.reading.next_unit > 0 {
            let _ = write!(states, ";t={}", integer(seconds(quota.reading.next_unit)));
        }
    }
    vec![(POLICY.into(), policies), (STATE.into(), states)]
}

fn one([limit, remaining, reset]: [&str; 3], quota: &Quota, at: u64) -> Headers {
    let header = |name: &str, value: u64| (name.to_owned(), value.to_string());
    vec![header(limit, quota.most), header(remaining, quota.reading.remaining), header(reset, at)]
}

/// The seconds in which all that a full allowance holds comes back, at least 1.
fn window(quota: &Quota) -> u128 {
    let nanos = u128::from(quota.most) * quota.rate.window().as_nanos() / u128::from(quota.rate.count());
    nanos.div_ceil(u128::from(SECOND)).clamp(1, LARGEST)
}

/// The second of the calendar at which it is full. The calendar was asked a moment after the quota was read, which must
/// not turn the start of a minute into the second after it.
fn reset_at(quota: &Quota, calendar: u64) -> u64 {
    let full_at = calendar.saturating_add(quota.reading.full_in);
    (full_at / MILLISECOND).div_ceil(SECOND / MILLISECOND)
}

fn seconds(nanos: u64) -> u64 {
    nanos.div_ceil(SECOND)
}

/// A String of a structured field, which holds printable ASCII. Names and rates do; anything else would be a `?`.
fn string(text: &str) -> String {
    let mut quoted = String::from('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => quoted.extend(['\\', char]),
            ' '..='~' => quoted.push(char),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

/// An Integer of a structured field.
fn integer(number: u64) -> u128 {
    u128::from(number).min(LARGEST)
}
