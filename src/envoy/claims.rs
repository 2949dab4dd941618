//! `google.protobuf.Struct` from the wire to claims, borrowed: the form in which Envoy sends metadata.

use crate::claims::{Claim, Claims, DEPTH};
use crate::envoy::wire::{Field, Unreadable, each_field, each_in, text};

/// Room for the claims of most tokens.
const MEMBERS: usize = 16;

/// The least bytes that a member or an item takes, so that no room is made for what cannot be there.
const SMALLEST: usize = 2;

/// Reads a `google.protobuf.Struct`.
///
/// # Errors
///
/// [`Unreadable`], if `message` is none.
pub fn read_struct(message: &[u8]) -> Result<Claims<'_>, Unreadable> {
    members(message, DEPTH)
}

fn members(message: &[u8], depth: usize) -> Result<Claims<'_>, Unreadable> {
    let mut members = Vec::with_capacity(MEMBERS.min(message.len() / SMALLEST));
    each_in(message, 1, |entry| {
        members.push(member(entry, depth)?);
        Ok(())
    })?;
    Ok(Claims::new(members))
}

/// An entry of a Struct's map from names to Values.
fn member(entry: &[u8], depth: usize) -> Result<(&str, Claim<'_>), Unreadable> {
    let (mut name, mut claim) = ("", Claim::Null);
    each_field(entry, |number, field| {
        match (number, field) {
            (1, Field::Bytes(bytes)) => name = text(bytes)?,
            (2, Field::Bytes(message)) => claim = value(message, depth)?,
            _ => {}
        }
        Ok(())
    })?;
    Ok((name, claim))
}

/// A `google.protobuf.Value`; one without any kind is null.
fn value(message: &[u8], depth: usize) -> Result<Claim<'_>, Unreadable> {
    let Some(depth) = depth.checked_sub(1) else { return Ok(Claim::TooDeep) };
    let mut claim = Claim::Null;
    each_field(message, |number, field| {
        claim = match (number, field) {
            (1, Field::Varint(_)) => Claim::Null,
            (2, Field::Fixed64(bits)) => Claim::Number(f64::from_bits(bits)),
            (3, Field::Bytes(bytes)) => Claim::Text(text(bytes)?),
            (4, Field::Varint(bit)) => Claim::Bool(bit != 0),
            (5, Field::Bytes(message)) => Claim::Object(members(message, depth)?),
            (6, Field::Bytes(message)) => Claim::List(items(message, depth)?),
            _ => return Ok(()),
        };
        Ok(())
    })?;
    Ok(claim)
}

/// A `google.protobuf.ListValue`.
fn items(message: &[u8], depth: usize) -> Result<Vec<Claim<'_>>, Unreadable> {
    let mut items = Vec::with_capacity(MEMBERS.min(message.len() / SMALLEST));
    each_in(message, 1, |item| {
        items.push(value(item, depth)?);
        Ok(())
    })?;
    Ok(items)
}
