//! The messages of a Check on a gRPC stream.

use crate::envoy::check_request::CheckRequest;
use crate::envoy::check_response::CheckResponse;
use prost::Message;
use tonic::Status;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};

/// Reads CheckRequests and writes CheckResponses.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckCodec;

impl Codec for CheckCodec {
    type Encode = CheckResponse;
    type Decode = CheckRequest;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for CheckCodec {
    type Item = CheckResponse;
    type Error = Status;

    fn encode(&mut self, response: CheckResponse, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        response.encode(buffer).map_err(|error| Status::internal(error.to_string()))
    }
}

impl Decoder for CheckCodec {
    type Item = CheckRequest;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<CheckRequest>, Status> {
        let request = CheckRequest::decode(buffer);
        request.map(Some).map_err(|error| Status::invalid_argument(format!("this is no CheckRequest: {error}")))
    }
}
