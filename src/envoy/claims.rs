//! `google.protobuf.Struct` from the wire to claims, borrowed: the form in which Envoy sends metadata.

use crate::claims::{Claim, Claims};
use prost::DecodeError;
use prost::encoding::{DecodeContext, WireType, decode_key, decode_varint, skip_field};

/// The deepest nesting of objects and lists that is read; what lies deeper is [`Claim::TooDeep`].
const DEPTH: usize = 64;

/// Metadata that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    /// It is no protobuf.
    #[error("the metadata is no google.protobuf.Struct")]
    Wire,
    /// A text is not UTF-8.
    #[error("a text in the metadata is not UTF-8")]
    Text(#[from] std::str::Utf8Error),
}

/// One field of a message: its number and its value.
enum Field<'r> {
    Varint(u64),
    Fixed64(u64),
    Bytes(&'r [u8]),
}

/// Decodes a `google.protobuf.Struct`.
///
/// # Errors
///
/// [`Unreadable`], if `message` is none.
pub fn decode_struct(message: &[u8]) -> Result<Claims<'_>, Unreadable> {
    members(message, DEPTH)
}

fn members(message: &[u8], depth: usize) -> Result<Claims<'_>, Unreadable> {
    let mut claims = Vec::new();
    each_field(message, |field| {
        if let (1, Field::Bytes(entry)) = field {
            claims.push(member(entry, depth)?);
        }
        Ok(())
    })?;
    Ok(claims.into_iter().collect())
}

/// An entry of a Struct's map from names to Values.
fn member(entry: &[u8], depth: usize) -> Result<(&str, Claim<'_>), Unreadable> {
    let (mut name, mut claim) = ("", Claim::Null);
    each_field(entry, |field| {
        match field {
            (1, Field::Bytes(text)) => name = str::from_utf8(text)?,
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
    each_field(message, |field| {
        claim = match field {
            (1, Field::Varint(_)) => Claim::Null,
            (2, Field::Fixed64(bits)) => Claim::Number(f64::from_bits(bits)),
            (3, Field::Bytes(text)) => Claim::Text(str::from_utf8(text)?),
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
    let mut list = Vec::new();
    each_field(message, |field| {
        if let (1, Field::Bytes(item)) = field {
            list.push(value(item, depth)?);
        }
        Ok(())
    })?;
    Ok(list)
}

/// Hands the fields of `message` to `take`, in order; those of a wire type that no Struct has are skipped.
fn each_field<'r>(
    mut message: &'r [u8],
    mut take: impl FnMut((u32, Field<'r>)) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    while !message.is_empty() {
        let (number, wire) = decode_key(&mut message)?;
        let field = match wire {
            WireType::Varint => Field::Varint(decode_varint(&mut message)?),
            WireType::SixtyFourBit => Field::Fixed64(u64::from_le_bytes(*chunk(&mut message)?)),
            WireType::LengthDelimited => Field::Bytes(delimited(&mut message)?),
            other => {
                skip_field(other, number, &mut message, DecodeContext::default())?;
                continue;
            }
        };
        take((number, field))?;
    }
    Ok(())
}

fn chunk<'r>(message: &mut &'r [u8]) -> Result<&'r [u8; 8], Unreadable> {
    let (chunk, rest) = message.split_first_chunk().ok_or(Unreadable::Wire)?;
    *message = rest;
    Ok(chunk)
}

fn delimited<'r>(message: &mut &'r [u8]) -> Result<&'r [u8], Unreadable> {
    let length = usize::try_from(decode_varint(message)?).map_err(|_| Unreadable::Wire)?;
    let (text, rest) = message.split_at_checked(length).ok_or(Unreadable::Wire)?;
    *message = rest;
    Ok(text)
}

impl From<DecodeError> for Unreadable {
    fn from(_: DecodeError) -> Self {
        Self::Wire
    }
}
