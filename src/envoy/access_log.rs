//! `envoy.service.accesslog.v3.AccessLogService`: what Envoy logs at the end of a request, as the outcome that its
//! reservation waits for. The numbers are those of Envoy's message definitions.

use crate::claims::Claim;
use crate::engine::Engine;
use crate::engine::outcomes::{Settled, Settlement};
use crate::envoy::claims::read_struct;
use crate::envoy::wire::{Field, Unreadable, each_field, each_in, entry, text};
use crate::policy::outcomes::Outcome;

/// The namespace of dynamic metadata in which the answer of a Check lands.
const EXT_AUTHZ: &str = "envoy.filters.http.ext_authz";

/// The key of a reservation there.
const RESERVATION: &str = "reservation";

/// The namespace whose keys stand for response headers that Envoy took out of the answer, so that no client sees them.
const HIDDEN: &str = "tollgate";

/// `AccessLogType.DownstreamEnd`: the request is over. Entries of other types come while it goes on.
const DOWNSTREAM_END: u64 = 6;

/// One entry of the log, as far as it matters.
#[derive(Debug, Default)]
struct Entry<'r> {
    log_type: u64,
    reservation: Option<&'r str>,
    outcome: Outcome<'r>,
}

/// Settles the outcomes of a `StreamAccessLogsMessage`, and hands on what became of each. Entries without a reservation
/// are passed over, and what cannot be read is counted.
pub fn settle(engine: &Engine, message: &[u8], mut settled: impl FnMut(Settlement)) {
    let is_read = each_in(message, 2, |http_logs| {
        each_in(http_logs, 1, |entry| {
            match read(entry) {
                Ok(Entry { reservation: None, .. }) => {}
                Ok(Entry { reservation: Some(reservation), log_type: DOWNSTREAM_END, outcome }) => {
                    settled(engine.settle(reservation, &outcome));
                }
                Ok(_) => settled(engine.not_settled(Settled::Early)),
                Err(_) => settled(engine.not_settled(Settled::Unreadable)),
            }
            Ok(())
        })
    });
    if is_read.is_err() {
        settled(engine.not_settled(Settled::Unreadable));
    }
}

/// `HTTPAccessLogEntry`.
fn read(message: &[u8]) -> Result<Entry<'_>, Unreadable> {
    let mut read = Entry::default();
    each_field(message, |number, field| match (number, field) {
        (1, Field::Bytes(common)) => read_common(common, &mut read),
        (4, Field::Bytes(response)) => read_response(response, &mut read.outcome),
        _ => Ok(()),
    })?;
    Ok(read)
}

/// `AccessLogCommon`: the dynamic metadata, 17, and the type of the entry, 33.
fn read_common<'r>(common: &'r [u8], into: &mut Entry<'r>) -> Result<(), Unreadable> {
    each_field(common, |number, field| {
        match (number, field) {
            (17, Field::Bytes(metadata)) => each_in(metadata, 1, |namespace| {
                let (name, fields) = entry(namespace)?;
                match str::from_utf8(name) {
                    Ok(EXT_AUTHZ) => into.reservation = read_reservation(fields)?,
                    Ok(HIDDEN) => read_struct(fields)?.iter().for_each(|(key, _)| into.outcome.headers.push(key)),
                    _ => {}
                }
                Ok(())
            })?,
            (33, Field::Varint(log_type)) => into.log_type = log_type,
            _ => {}
        }
        Ok(())
    })
}

fn read_reservation(fields: &[u8]) -> Result<Option<&str>, Unreadable> {
    Ok(match read_struct(fields)?.get(RESERVATION) {
        Some(Claim::Text(reservation)) => Some(reservation),
        _ => None,
    })
}

/// `HTTPResponseProperties`: the status, 1, a `UInt32Value`; headers, 4, and trailers, 5, as far as Envoy is told to log
/// them. The gRPC status is in either.
fn read_response<'r>(response: &'r [u8], outcome: &mut Outcome<'r>) -> Result<(), Unreadable> {
    each_field(response, |number, field| match (number, field) {
        (1, Field::Bytes(status)) => each_field(status, |number, field| {
            if let (1, Field::Varint(status)) = (number, field) {
                outcome.status = u16::try_from(status).map_err(|_| Unreadable::Wire)?;
            }
            Ok(())
        }),
        (4 | 5, Field::Bytes(line)) => {
            let (name, value) = entry(line)?;
            if name == b"grpc-status" {
                outcome.grpc_status = str::from_utf8(value).ok().and_then(|status| status.parse().ok());
            }
            outcome.headers.push(text(name)?);
            Ok(())
        }
        _ => Ok(()),
    })
}
