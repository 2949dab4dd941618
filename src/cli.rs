//! Reads the command line and runs one command.

pub mod check;
pub mod health;
pub mod replay;
pub mod schema;
pub mod serve;
mod service;
pub mod token;

use clap::{Parser, Subcommand};
use std::io::{self, Write};
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

impl Failure {
    /// What could not be done, with the system's word on why.
    pub fn io(error: &io::Error) -> Self {
        Self { code: 1, message: error.to_string(), hint: None }
    }

    /// Standard output could not be written.
    pub fn output(error: &io::Error) -> Self {
        Self { code: 1, message: format!("standard output: {error}"), hint: None }
    }
}

/// External authorization and rate limits for Envoy: a caller is held to the rates that its token carries.
///
/// Envoy's jwt_authn filter verifies the token, its ext_authz filter asks Tollgate, and Tollgate answers: go on,
/// 429 with Retry-After, 403 or 401.
#[derive(Parser)]
#[command(name = "tollgate", version, arg_required_else_help = true, after_help = FIRST_STEPS)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const FIRST_STEPS: &str = "\
First steps:
  echo 'token: { prefixes: [\"prefix:rate:\"] }' > tollgate.yaml
  tollgate check tollgate.yaml
  tollgate serve --config tollgate.yaml";

#[derive(Subcommand)]
enum Command {
    Serve(serve::Arguments),
    Check(check::Arguments),
    Health(health::Arguments),
    Replay(replay::Arguments),
    Schema(schema::Arguments),
    Token(token::Arguments),
}

/// Runs the command line `args` (the program's name first) and gives the exit code.
pub fn main(args: impl IntoIterator<Item = std::ffi::OsString>) -> ExitCode {
    match run(Arguments::parse_from(args).command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let hint = failure.hint.map_or_else(String::new, |hint| format!("hint: {hint}\n"));
            // Where standard error is closed, the exit code alone has to say it.
            let _ = write!(io::stderr(), "error: {}\n{hint}", failure.message);
            ExitCode::from(failure.code)
        }
    }
}

fn run(command: Command) -> Result<(), Failure> {
    match command {
        Command::Serve(arguments) => serve::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Health(arguments) => health::run(arguments),
        Command::Replay(arguments) => replay::run(arguments),
        Command::Schema(arguments) => schema::run(&arguments),
        Command::Token(arguments) => token::run(arguments),
    }
}
