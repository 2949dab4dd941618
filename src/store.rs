//! Where allowances live: the arithmetic of one, and the table of all callers.

pub(crate) mod caller;
#[cfg(feature = "server")]
pub(crate) mod fixed_window;
pub(crate) mod gcra;
#[cfg(feature = "server")]
pub(crate) mod group;
pub(crate) mod key;
pub(crate) mod limit;
pub(crate) mod memory;
pub(crate) mod meter;
pub(crate) mod swept;
