//! The three callers, and what they are told.

use crate::go_on;
use crate::http::{Answer, Client};
use crate::stage::Stage;
use std::io::{self, Write};

const REQUESTS: usize = 7;
const WARNING: &str = "x-webpa-capability-warning";

struct Caller {
    name: &'static str,
    capabilities: &'static [&'static str],
    headline: &'static str,
}

const CALLERS: [Caller; 3] = [
    Caller {
        name: "alice",
        capabilities: &["prefix:rate:5/1m"],
        headline: "five calls a minute: five at once, then one every 12 seconds",
    },
    Caller { name: "bob", capabilities: &["orders:read"], headline: "no rate in the token: unrestricted" },
    Caller {
        name: "carol",
        capabilities: &["prefix:rate:fast", "prefix:rate:3/1m"],
        headline: "a malformed rate beside a valid one: the valid one holds, and every answer has a warning",
    },
];

/// Sends a burst with each caller's token and prints a line an answer.
pub fn all(stage: &Stage) -> Result<(), String> {
    print(&format!("Envoy verifies each token and asks Tollgate; {REQUESTS} requests a caller, as fast as they go."))?;
    CALLERS.iter().try_for_each(|caller| burst(stage, caller))
}

fn burst(stage: &Stage, caller: &Caller) -> Result<(), String> {
    print(&format!("\n{} {}\n  {}", caller.name, caller.capabilities.join(" "), caller.headline))?;
    print(&line("#", "status", "Retry-After", "warning"))?;
    let bearer = format!("Bearer {}", stage.token(caller.name, caller.capabilities)?);
    let mut client = Client::connect(stage.edge())?;
    for number in 1..=REQUESTS {
        go_on()?;
        let answer = client.send("GET", "/", &[("authorization", &bearer)])?;
        print(&row(number, &answer))?;
    }
    Ok(())
}

fn row(number: usize, answer: &Answer) -> String {
    let warnings: Vec<&str> = answer.all(WARNING).collect();
    let warning = if warnings.is_empty() { "-".into() } else { warnings.join(" | ") };
    let retry_after = answer.header("retry-after").unwrap_or("-");
    line(&number.to_string(), &answer.status.to_string(), retry_after, &warning)
}

fn line(number: &str, status: &str, retry_after: &str, warning: &str) -> String {
    format!("  {number:>2}  {status:<6}  {retry_after:<11}  {warning}")
}

/// Unlike `println!`, ends the demo in order when nobody reads on.
fn print(text: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{text}").map_err(|error| format!("standard output: {error}"))
}
