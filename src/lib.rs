//! Holds API callers to the rates that their tokens carry.
//!
//! A token has capabilities, flat strings; those that start with a capability prefix carry a rate, as in
//! `prefix:rate:50/1m`. [`Limiter`] holds a caller, named by its principal, to every rate that its tokens carry;
//! a [`Resolver`] has the final say over them. A refused request spends nothing, and the wait it is told is exact.
//!
//! ```
//! use tollgate::{Limiter, Verdict};
//!
//! let limiter = Limiter::builder(["prefix:rate:"]).build()?;
//! for call in 1..=6 {
//!     match limiter.check(&(), "alice", ["prefix:rate:5/1m"]).verdict() {
//!         Verdict::Allowed => assert!(call <= 5),
//!         Verdict::RateExceeded { retry_after, .. } => assert!(retry_after.is_some()),
//!         other => panic!("{other:?}"),
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With the feature `server`, which is on by default, the package also builds the program `tollgate`: the limiter
//! as an external-authorization service for Envoy. Without default features this crate is the limiter alone, with
//! no async runtime.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

#[cfg(feature = "server")]
#[doc(hidden)]
pub mod answer;
pub mod attempts;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod body;
mod capability;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod claims;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod config;
mod decision;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod engine;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod envoy;
mod held;
#[cfg(feature = "server")]
pub mod identity;
mod keyed;
mod limiter;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod network;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod path;
mod plan;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod policy;
mod rate;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod reload;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod request;
mod resolver;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod server;
mod store;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod telemetry;
mod time;
#[cfg(feature = "server")]
#[doc(hidden)]
pub mod token;
mod warning;

pub use attempts::AttemptLimiter;
pub use capability::PrefixError;
#[cfg(feature = "server")]
#[doc(hidden)]
pub use capability::Prefixes;
pub use decision::{Decision, Reason, Unauthenticated, Unavailable, Verdict};
pub use held::{HeldRate, Rates};
pub use keyed::{Exceeded, Held, KeyedLimiter};
pub use limiter::{Builder, Limiter};
pub use rate::{InvalidRate, Rate};
pub use resolver::{DefaultResolver, Denial, DenialStatus, InvalidBounds, MalformedRule, Resolver, WindowBounds};
pub use store::caller::Allowance;
pub use store::limit::{TableCounts, WhenFull};
pub use time::{Clock, ManualClock, Now, SystemClock};
pub use warning::Warning;

/// The README's examples run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
