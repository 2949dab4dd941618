//! The integration tests, one binary: the library's rules here, the service's from `config` on.

mod conformance;
mod decisions;
