//! Envoy's side of the border: the only room that names protobuf or gRPC types.

pub mod check_request;
pub mod check_response;
pub mod claims;
pub mod ext_authz;
