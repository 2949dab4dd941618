//! Envoy's side of the border: the only room that knows what is in Envoy's messages.

pub mod access_log;
pub mod check_request;
pub mod check_response;
pub mod claims;
pub mod codec;
pub mod ext_authz;
pub mod wire;
