//! Where allowances live: the arithmetic of one, and the table of all callers.

pub(crate) mod caller;
#[cfg(feature = "server")]
pub(crate) mod fixed_window;
pub(crate) mod gcra;
#[cfg(feature = "server")]
pub(crate) mod group;
pub(crate) mod key;
#[cfg(feature = "server")]
pub mod limit;
pub(crate) mod memory;
#[cfg(feature = "server")]
pub(crate) mod meter;
