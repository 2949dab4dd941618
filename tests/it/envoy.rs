//! The service as a real process behind a real Envoy: what goes over the wire, and what the log says of it.

#[path = "../../examples/demo/child.rs"]
pub mod child;
#[path = "../../examples/demo/envoy_binary.rs"]
pub mod envoy_binary;
#[path = "../../examples/demo/envoy_config.rs"]
pub mod envoy_config;
#[path = "../../examples/demo/http.rs"]
pub mod http;
#[path = "../../examples/demo/tollgate.rs"]
pub mod process;
#[path = "../../examples/demo/envoy.rs"]
pub mod proxy;
#[path = "../../examples/demo/upstream.rs"]
pub mod upstream;

mod ages;
mod answers;
mod checks;
mod fleet;
mod hostile;
mod limits;
mod log;
pub mod mesh;
mod metrics;
mod networks;
mod outcomes;
mod panics;
mod policy;
mod protocols;
mod quotas;
mod rates;
mod reload;
mod services;
mod snapshots;
#[cfg(feature = "otlp")]
mod spans;
mod stops;
mod warnings;
mod wire;
mod wiring;

pub use checks::request as check_request;
pub use child::wait_until;

/// Whether Envoy accepts the configuration `text`, YAML or JSON.
pub fn validate(text: &str) -> Result<(), String> {
    let (_folder, config) = child::folder("validate", "envoy.yaml", text)?;
    let mut envoy = std::process::Command::new(envoy_binary::find()?);
    let output = envoy.args(["--mode", "validate", "--config-path"]).arg(config).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&output.stderr).into_owned()) }
}
