//! `tollgate replay`: decides requests from standard input in virtual time, one JSON line in, one out.

mod input;
mod output;

use crate::answer::ResponseRules;
use crate::cli::{Failure, check};
use crate::engine::Engine;
use crate::time::ManualClock;
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Decide requests from standard input in virtual time, one JSON line each
///
/// A line is an object: `at`, the time since the start as a duration ("1m30s") or in nanoseconds, never
/// decreasing; then `principal` and `capabilities`, or `claims`, or `token`: "missing" or "failed", the latter with a
/// `code` of Envoy's (3: expired, 26: another signature); and optionally `method`, `path`, `host`, `headers`, `client`,
/// `context`, `body` and `cost`. Each line is answered by one with the decision.
///
/// A line with `outcome`, an HTTP status or "aborted", and `of`, the number of an earlier line, says how that request
/// ended; optionally with `grpc_status` and `headers`. It is answered by what rules did with it.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLE)]
pub struct Arguments {
    /// The configuration file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// What the calendar says at the start, in seconds since the Unix epoch: for limits with fixed windows
    /// and headers that tell an instant
    #[arg(long, value_name = "SECONDS", default_value_t = 0)]
    start: u64,
}

const EXAMPLE: &str = r#"Example:
  echo '{"at": "0s", "principal": "alice", "capabilities": ["prefix:rate:5/1m"]}' | tollgate replay --config tollgate.yaml"#;

/// What decides the lines.
struct Replay {
    engine: Engine,
    response: ResponseRules,
    clock: Arc<ManualClock>,
    /// The time of the last line, in nanoseconds.
    last: u64,
    /// The reservations of requests that went on, by their lines.
    reservations: HashMap<u64, String>,
}

/// What a line is answered by.
#[derive(Serialize)]
#[serde(untagged)]
enum Answered {
    Request(Box<output::Line>),
    Outcome(output::Ended),
}

/// Replays standard input to standard output. The first line that cannot be read ends it.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let config = check::load(&arguments.config)?;
    let clock = Arc::new(ManualClock::default());
    clock.set_calendar(Duration::from_secs(arguments.start));
    let engine = Engine::new(config.token, config.prefixes, config.policy, Arc::clone(&clock));
    let mut replay = Replay { engine, response: config.response, clock, last: 0, reservations: HashMap::new() };
    // Standard output is written line by line, so that a program may ask, read and ask again.
    replay.lines(io::stdin().lock(), &mut io::stdout().lock())
}

impl Replay {
    fn lines(&mut self, input: impl BufRead, out: &mut impl Write) -> Result<(), Failure> {
        for (number, line) in (1..).zip(input.split(b'\n')) {
            let line =
                line.map_err(|error| Failure { message: format!("standard input: {error}"), ..Failure::io(&error) })?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let answer = self.line(number, &line).map_err(|cause| bad_line(number, &cause))?;
            serde_json::to_writer(&mut *out, &answer).map_err(|error| Failure::output(&error.into()))?;
            writeln!(out).map_err(|error| Failure::output(&error))?;
        }
        Ok(())
    }

    fn line(&mut self, number: u64, line: &[u8]) -> Result<Answered, String> {
        match input::Ending::parse(line) {
            Some(ending) => self.end(number, &ending?).map(Answered::Outcome),
            None => self.decide(number, &input::Line::parse(line)?).map(|line| Answered::Request(Box::new(line))),
        }
    }

    fn go_to(&mut self, at: &input::At) -> Result<(), String> {
        let at = at.nanos()?;
        if at < self.last {
            return Err(format!("`at` is {at} ns, which is before the line before it at {} ns", self.last));
        }
        self.last = at;
        self.clock.set(Duration::from_nanos(at));
        Ok(())
    }

    fn decide(&mut self, number: u64, line: &input::Line) -> Result<output::Line, String> {
        self.go_to(&line.at)?;
        let request = line.request(self.engine.token());
        let identity = match line.given_identity()? {
            Some(identity) => identity,
            None => self.engine.token().identify(&request),
        };
        let decision = self.engine.check_cost(line.cost, &request, &identity);
        self.reservations.extend(decision.reservation().map(|reservation| (number, reservation.to_owned())));
        let answer = self.response.answer(&decision, request.protocol(), || self.engine.calendar());
        Ok(output::Line::new(number, &decision, answer))
    }

    fn end(&mut self, number: u64, ending: &input::Ending) -> Result<output::Ended, String> {
        self.go_to(&ending.at)?;
        let of = ending.of;
        let reservation = self.reservations.get(&of);
        let reservation = reservation.ok_or_else(|| format!("no rule waits for the outcome of line {of}"))?;
        let settlement = self.engine.settle(reservation, &ending.outcome());
        Ok(output::Ended::new(number, of, &settlement))
    }
}

fn bad_line(number: u64, cause: &str) -> Failure {
    Failure {
        code: 2,
        // A name in the line may hold what a terminal would obey.
        message: format!("line {number} of standard input: {}", cause.replace(char::is_control, " ")),
        hint: Some("see `tollgate replay --help` for what a line holds".to_owned()),
    }
}
