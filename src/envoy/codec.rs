//! The messages on gRPC streams: what comes is handed on as it is; what goes is a CheckResponse, or nothing.

use crate::envoy::check_response::CheckResponse;
use bytes::{Buf, Bytes};
use tonic::Status;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Room for an answer with a few headers, so that most take one allocation of this size.
const ANSWER: usize = 512;

/// Hands on CheckRequests undecoded, and writes CheckResponses.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckCodec;

impl Codec for CheckCodec {
    type Encode = CheckResponse;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Undecoded;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Undecoded {
        Undecoded
    }
}

impl Encoder for CheckCodec {
    type Item = CheckResponse;
    type Error = Status;

    fn encode(&mut self, response: CheckResponse, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        response.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::new(ANSWER, 32 * 1024)
    }
}

/// Hands on messages undecoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Undecoded;

impl Decoder for Undecoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// Hands on access logs undecoded; the answer, a `StreamAccessLogsResponse`, holds nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogCodec;

impl Codec for LogCodec {
    type Encode = ();
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Undecoded;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Undecoded {
        Undecoded
    }
}

impl Encoder for LogCodec {
    type Item = ();
    type Error = Status;

    fn encode(&mut self, (): (), _: &mut EncodeBuf<'_>) -> Result<(), Status> {
        Ok(())
    }
}
