//! A table of answers, a line each. Needs the sibling module `http`.

use super::http::Answer;
use std::io::{self, Write};

const WARNING: &str = "x-webpa-capability-warning";

/// The names of the columns.
pub fn head() -> String {
    line("#", "status", "Retry-After", "warning")
}

/// What one answer said.
pub fn row(number: usize, answer: &Answer) -> String {
    let warnings: Vec<&str> = answer.all(WARNING).collect();
    let warning = if warnings.is_empty() { "-".into() } else { warnings.join(" | ") };
    let retry_after = answer.header("retry-after").unwrap_or("-");
    line(&number.to_string(), &answer.status.to_string(), retry_after, &warning)
}

fn line(number: &str, status: &str, retry_after: &str, warning: &str) -> String {
    format!("  {number:>2}  {status:<6}  {retry_after:<11}  {warning}")
}

/// Unlike `println!`, ends the program in order when nobody reads on.
pub fn print(text: &str) -> Result<(), String> {
    writeln!(io::stdout(), "{text}").map_err(|error| format!("standard output: {error}"))
}
