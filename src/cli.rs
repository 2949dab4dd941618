//! Reads the command line and runs one command.

pub mod check;
pub mod replay;
pub mod serve;
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

impl Failure {
    /// What could not be done, with the system's word on why.
    pub fn io(error: &std::io::Error) -> Self {
        Self { code: 1, message: error.to_string(), hint: None }
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
    /// Run the external-authorization service until SIGTERM or SIGINT
    Serve(serve::Arguments),
    /// Check a configuration file, and show every mistake in it
    Check(check::Arguments),
    /// Decide requests from standard input in virtual time, one JSON line each
    Replay(replay::Arguments),
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
        Command::Serve(arguments) => serve::run(arguments),
        Command::Check(arguments) => check::run(arguments),
        Command::Replay(arguments) => replay::run(arguments),
        Command::Token(arguments) => token::run(arguments),
    }
}
