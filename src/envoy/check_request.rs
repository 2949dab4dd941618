//! `envoy.service.auth.v3.CheckRequest` from the wire to the facts of a request, borrowed. What Tollgate does not need
//! is passed over undecoded. The numbers are those of Envoy's message definitions.

use crate::claims::{Claim, Claims};
use crate::envoy::claims::read_struct;
use crate::envoy::wire::{Field, Unreadable, each_field, each_in, entry, text};
use crate::request::Request;

/// More header lines than Envoy sends where `allowed_headers` is set.
const HEADERS: usize = 32;

/// Reads a CheckRequest.
///
/// # Errors
///
/// [`Unreadable`], if `message` is none.
pub fn read(message: &[u8]) -> Result<Request<'_>, Unreadable> {
    let mut request = Request { headers: Vec::with_capacity(HEADERS), ..Request::default() };
    let mut namespaces = Vec::new();
    each_in(message, 1, |context| {
        each_field(context, |number, field| match (number, field) {
            (1, Field::Bytes(source)) => peer(source, &mut request),
            (4, Field::Bytes(part)) => each_in(part, 2, |http| read_http(http, &mut request)),
            (10, Field::Bytes(extension)) => entry(extension).map(|extension| request.context.push(extension)),
            (11, Field::Bytes(metadata)) => each_in(metadata, 1, |entry| {
                namespaces.push(namespace(entry)?);
                Ok(())
            }),
            _ => Ok(()),
        })
    })?;
    request.metadata = Claims::new(namespaces);
    Ok(request)
}

/// `AttributeContext.Peer`: the address of its `config.core.v3.Address`, if that is a socket address.
fn peer<'r>(peer: &'r [u8], request: &mut Request<'r>) -> Result<(), Unreadable> {
    each_in(peer, 1, |address| {
        each_in(address, 1, |socket| {
            each_in(socket, 2, |text| {
                request.peer = text;
                Ok(())
            })
        })
    })
}

/// `AttributeContext.HttpRequest`. The headers come in one of two encodings: a map, or with `encode_raw_headers` lines.
fn read_http<'r>(http: &'r [u8], request: &mut Request<'r>) -> Result<(), Unreadable> {
    each_field(http, |number, field| {
        match (number, field) {
            (2, Field::Bytes(method)) => request.method = method,
            (3, Field::Bytes(header)) => request.headers.push(entry(header)?),
            (4, Field::Bytes(path)) => request.path = path,
            (5, Field::Bytes(host)) => request.host = host,
            // `raw_body`, 12, is what `pack_as_bytes` has in place of `body`, 11.
            (11 | 12, Field::Bytes(body)) if !body.is_empty() => request.body = body,
            (13, Field::Bytes(map)) => each_in(map, 1, |line| {
                request.headers.push(header_line(line)?);
                Ok(())
            })?,
            _ => {}
        }
        Ok(())
    })
}

/// `config.core.v3.HeaderValue`: `raw_value`, 3, is what a raw line has in place of `value`, 2.
fn header_line(line: &[u8]) -> Result<(&[u8], &[u8]), Unreadable> {
    let (key, mut value) = entry(line)?;
    each_in(line, 3, |raw| {
        value = if raw.is_empty() { value } else { raw };
        Ok(())
    })?;
    Ok((key, value))
}

fn namespace(metadata: &[u8]) -> Result<(&str, Claim<'_>), Unreadable> {
    let (name, fields) = entry(metadata)?;
    Ok((text(name)?, Claim::Object(read_struct(fields)?)))
}
