//! The service as a real process behind a real Envoy: what goes over the wire, and what the log says of it.

#[path = "../../examples/demo/child.rs"]
mod child;
#[path = "../../examples/demo/envoy_binary.rs"]
mod envoy_binary;
#[path = "../../examples/demo/envoy_config.rs"]
mod envoy_config;
#[path = "../../examples/demo/http.rs"]
mod http;
#[path = "../../examples/demo/tollgate.rs"]
mod process;
#[path = "../../examples/demo/envoy.rs"]
mod proxy;
#[path = "../../examples/demo/upstream.rs"]
mod upstream;

mod answers;
mod checks;
mod hostile;
mod log;
mod mesh;
mod networks;
mod panics;
mod protocols;
mod rates;
mod services;
mod stops;
mod warnings;
mod wire;
mod wiring;
