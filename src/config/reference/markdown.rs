//! The reference as Markdown tables.
