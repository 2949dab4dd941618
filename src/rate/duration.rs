//! Go's duration text: what a window is written in.

use std::fmt;

/// 2^63, the limit that Go's parser compares against.
const LIMIT: u64 = 1 << 63;

const SECOND: u64 = 1_000_000_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Reads a Go duration that is not negative, in nanoseconds: at most 2^63 - 1.
///
/// A sum is kept in 64 bits and compared with 2^63 after each pair, as Go does it, so that a text which wraps
/// round exactly (2^63 ns twice) means here what it means there.
pub fn parse_duration(text: &[u8]) -> Option<u64> {
    let mut rest = text.strip_prefix(b"+").unwrap_or(text);
    let mut sum = 0u64;
    loop {
        let (nanos, after) = pair(rest)?;
        sum = sum.wrapping_add(nanos);
        if sum > LIMIT {
            return None;
        }
        if after.is_empty() {
            return (sum != LIMIT).then_some(sum);
        }
        rest = after;
    }
}

/// One number and its unit, in nanoseconds, and what follows them.
fn pair(text: &[u8]) -> Option<(u64, &[u8])> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix(b".") {
        Some(rest) => digits(rest),
        None => (&rest[..0], rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let (unit, rest) = unit(rest)?;
    let nanos = integer(whole)?.checked_mul(unit)?.checked_add(fractional(fraction, unit))?;
    (nanos <= LIMIT).then_some((nanos, rest))
}

fn digits(text: &[u8]) -> (&[u8], &[u8]) {
    text.split_at(text.iter().take_while(|byte| byte.is_ascii_digit()).count())
}

fn integer(digits: &[u8]) -> Option<u64> {
    digits
        .iter()
        .try_fold(0u64, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit - b'0')).filter(|&n| n <= LIMIT))
}

/// The nanoseconds of `0.digits` units: the product in doubles, as Go computes it, truncated.
fn fractional(digits: &[u8], unit: u64) -> u64 {
    let (mut numerator, mut scale) = (0u64, 1f64);
    for digit in digits {
        // Digits beyond what 63 bits hold are left out: they are worth less than a nanosecond.
        if numerator > (LIMIT - 1) / 10 {
            break;
        }
        let next = numerator * 10 + u64::from(digit - b'0');
        if next > LIMIT {
            break;
        }
        numerator = next;
        scale *= 10.0;
    }
    (numerator as f64 * (unit as f64 / scale)) as u64
}

fn unit(text: &[u8]) -> Option<(u64, &[u8])> {
    const UNITS: [(&[u8], u64); 8] = [
        (b"ns", 1),
        (b"us", 1_000),
        ("µs".as_bytes(), 1_000),
        ("μs".as_bytes(), 1_000),
        (b"ms", 1_000_000),
        (b"s", SECOND),
        (b"m", MINUTE),
        (b"h", HOUR),
    ];
    UNITS.iter().find_map(|&(name, nanos)| Some((nanos, text.strip_prefix(name)?)))
}

/// Writes `nanos` as Go does, without its trailing zero units: `1m`, `24h`, `1h0m30s`, `1.5s`, `2.5ms`.
///
/// # Errors
///
/// Those of `f`.
pub fn format_duration(f: &mut impl fmt::Write, nanos: u64) -> fmt::Result {
    match nanos {
        0..1_000 => write!(f, "{nanos}ns"),
        1_000..1_000_000 => decimal(f, nanos, 1_000, "µs"),
        1_000_000..SECOND => decimal(f, nanos, 1_000_000, "ms"),
        SECOND.. => clock(f, nanos),
    }
}

fn clock(f: &mut impl fmt::Write, nanos: u64) -> fmt::Result {
    let (hours, minutes, seconds) = (nanos / HOUR, nanos % HOUR / MINUTE, nanos % MINUTE);
    if hours > 0 {
        write!(f, "{hours}h")?;
    }
    if minutes > 0 || (hours > 0 && seconds > 0) {
        write!(f, "{minutes}m")?;
    }
    if seconds > 0 { decimal(f, seconds, SECOND, "s") } else { Ok(()) }
}

/// Writes `nanos / unit` with the fraction's trailing zeros dropped.
fn decimal(f: &mut impl fmt::Write, nanos: u64, unit: u64, name: &str) -> fmt::Result {
    write!(f, "{}", nanos / unit)?;
    let mut fraction = nanos % unit;
    if fraction > 0 {
        let mut width = unit.ilog10() as usize;
        while fraction.is_multiple_of(10) {
            fraction /= 10;
            width -= 1;
        }
        write!(f, ".{fraction:0width$}")?;
    }
    f.write_str(name)
}
