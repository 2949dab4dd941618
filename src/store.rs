//! Where allowances live: the arithmetic of one, and the table of all callers.

pub(crate) mod caller;
pub(crate) mod gcra;
pub(crate) mod key;
pub(crate) mod memory;
