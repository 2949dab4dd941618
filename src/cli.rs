//! Reads the command line and runs one command.

pub mod token;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// What a command that did not succeed tells the person who ran it.
#[derive(Debug)]
pub struct Failure {
    /// 1: it could not be done; 2: the input (arguments, configuration, a line) is wrong.
    pub code: u8,
    /// The place and the cause, ready to print.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

#[derive(Parser)]
#[command(name = "tollgate", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Mint a signed JWT, and the JWKS that verifies it, for demos and tests
    Token(token::Arguments),
}

/// Runs the command line `args` (the program's name first) and gives the exit code.
pub fn main(args: impl IntoIterator<Item = std::ffi::OsString>) -> ExitCode {
    match run(Arguments::parse_from(args).command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {}", failure.message);
            if let Some(hint) = &failure.hint {
                eprintln!("hint: {hint}");
            }
            ExitCode::from(failure.code)
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Token(arguments) => token::run(arguments),
    }
}
