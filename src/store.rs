//! Where allowances and strikes live: the arithmetic of one, and the tables of all.

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
pub(crate) mod ranks;
pub(crate) mod strikes;
pub(crate) mod swept;
#[cfg(feature = "server")]
pub(crate) mod written;
