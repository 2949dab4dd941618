//! The integration tests, one binary: the library's rules here, the service's from `config` on.

#[cfg(feature = "server")]
mod asking;
mod attempts;
#[cfg(feature = "server")]
mod body;
#[cfg(feature = "server")]
mod burst;
#[cfg(feature = "server")]
mod captures;
#[cfg(feature = "server")]
mod cli;
#[cfg(feature = "server")]
mod clients;
#[cfg(feature = "server")]
mod compose;
#[cfg(feature = "server")]
mod config;
mod conformance;
mod decisions;
#[cfg(feature = "server")]
mod dependencies;
#[cfg(feature = "server")]
mod envoy;
mod house;
#[cfg(feature = "server")]
mod identity;
mod keyed;
#[cfg(feature = "server")]
mod limits;
#[cfg(feature = "server")]
mod lockouts;
mod model;
#[cfg(feature = "server")]
mod normalize;
#[cfg(feature = "server")]
mod paths;
#[cfg(feature = "server")]
mod policy;
#[cfg(feature = "server")]
mod promtool;
mod properties;
#[cfg(feature = "server")]
mod quotas;
#[cfg(feature = "server")]
mod readme;
#[cfg(feature = "server")]
mod reference;
#[cfg(feature = "server")]
mod reload;
#[cfg(feature = "server")]
mod replay;
#[cfg(feature = "server")]
mod scenarios;
#[cfg(feature = "server")]
mod snapshot;
mod store;
