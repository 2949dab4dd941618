//! The reference as JSON Schema.
