//! The protobuf wire format, as far as reading needs it: the fields of a message, borrowed, in their order.

/// A message that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// It is no protobuf.
    #[error("the message is no protobuf")]
    Wire,
    /// A text in it is not UTF-8.
    #[error("a text in the message is not UTF-8")]
    Text,
}

/// The value of a field, by its wire type.
#[derive(Clone, Copy, Debug)]
pub enum Field<'r> {
    /// An integer or a boolean.
    Varint(u64),
    /// A double, or another number of eight bytes.
    Fixed64(u64),
    /// A text, some bytes, or a message.
    Bytes(&'r [u8]),
    /// A number of four bytes: no message that is read here has one.
    Fixed32,
}

/// Hands the fields of `message` to `take`, number and value, in order. A field that `take` does not know, or that has
/// another type than it should, it leaves alone. Of one that is repeated where it should not be, the last counts; a
/// full decoder would merge messages, but no encoder repeats them.
///
/// # Errors
///
/// [`Unreadable::Wire`] if `message` is no protobuf, and the errors of `take`.
#[inline(always)]
pub fn each_field<'r>(
    mut message: &'r [u8],
    mut take: impl FnMut(u64, Field<'r>) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    while !message.is_empty() {
        let key = varint(&mut message)?;
        if key >> 3 == 0 {
            return Err(Unreadable::Wire);
        }
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut message)?),
            1 => Field::Fixed64(u64::from_le_bytes(*chunk(&mut message)?)),
            2 => Field::Bytes(delimited(&mut message)?),
            5 => chunk::<4>(&mut message).map(|_| Field::Fixed32)?,
            // Groups, which no message of Envoy has, and types that do not exist.
            _ => return Err(Unreadable::Wire),
        };
        take(key >> 3, field)?;
    }
    Ok(())
}

/// Hands every message or text in the field `number` of `message` to `take`.
///
/// # Errors
///
/// As [`each_field`].
#[inline(always)]
pub fn each_in<'r>(
    message: &'r [u8],
    number: u64,
    mut take: impl FnMut(&'r [u8]) -> Result<(), Unreadable>,
) -> Result<(), Unreadable> {
    each_field(message, |at, field| match field {
        Field::Bytes(bytes) if at == number => take(bytes),
        _ => Ok(()),
    })
}

/// The key and the value of an entry of a map from texts to texts or messages.
///
/// # Errors
///
/// As [`each_field`].
pub fn entry(entry: &[u8]) -> Result<(&[u8], &[u8]), Unreadable> {
    let (mut key, mut value): (&[u8], &[u8]) = (&[], &[]);
    each_field(entry, |number, field| {
        match (number, field) {
            (1, Field::Bytes(bytes)) => key = bytes,
            (2, Field::Bytes(bytes)) => value = bytes,
            _ => {}
        }
        Ok(())
    })?;
    Ok((key, value))
}

/// A text that has to be UTF-8.
///
/// # Errors
///
/// [`Unreadable::Text`] if it is not.
#[inline(always)]
pub fn text(bytes: &[u8]) -> Result<&str, Unreadable> {
    str::from_utf8(bytes).map_err(|_| Unreadable::Text)
}

/// Most integers on the wire are lengths and keys of one byte.
#[inline(always)]
fn varint(message: &mut &[u8]) -> Result<u64, Unreadable> {
    match *message {
        [byte @ 0..0x80, rest @ ..] => {
            *message = rest;
            Ok(u64::from(*byte))
        }
        _ => long_varint(message),
    }
}

#[inline(never)]
fn long_varint(message: &mut &[u8]) -> Result<u64, Unreadable> {
    let mut number = 0;
    for (at, byte) in message.iter().enumerate().take(10) {
        // The tenth byte holds the 64th bit, and has no room for more.
        if at == 9 && *byte > 1 {
            return Err(Unreadable::Wire);
        }
        number |= u64::from(byte & 0x7f) << (7 * at);
        if *byte < 0x80 {
            *message = &message[at + 1..];
            return Ok(number);
        }
    }
    Err(Unreadable::Wire)
}

#[inline(always)]
fn delimited<'r>(message: &mut &'r [u8]) -> Result<&'r [u8], Unreadable> {
    let length = usize::try_from(varint(message)?).map_err(|_| Unreadable::Wire)?;
    let (bytes, rest) = message.split_at_checked(length).ok_or(Unreadable::Wire)?;
    *message = rest;
    Ok(bytes)
}

#[inline(always)]
fn chunk<'r, const N: usize>(message: &mut &'r [u8]) -> Result<&'r [u8; N], Unreadable> {
    let (chunk, rest) = message.split_first_chunk().ok_or(Unreadable::Wire)?;
    *message = rest;
    Ok(chunk)
}
