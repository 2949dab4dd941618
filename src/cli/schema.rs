//! `tollgate schema`: prints what a configuration file may hold.

use super::Failure;
use crate::config::Reference;
use std::io::{self, Write};

/// Print the JSON Schema of the configuration file, for editors
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Arguments {
    /// Print tables of every key instead, in Markdown
    #[arg(long)]
    markdown: bool,
}

const EXAMPLE: &str = "\
Example: completion in editors that run yaml-language-server

  tollgate schema > tollgate.schema.json
  # and as the first line of tollgate.yaml
  # yaml-language-server: $schema=tollgate.schema.json";

/// Prints the schema or the tables.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let reference = Reference::new();
    let text = match arguments.markdown {
        true => reference.to_markdown(),
        false => format!("{:#}\n", reference.to_schema()),
    };
    io::stdout().write_all(text.as_bytes()).map_err(|error| Failure::output(&error))
}
