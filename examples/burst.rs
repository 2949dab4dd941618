//! A client that sends a burst with one token, and prints what it is told:
//!
//! ```sh
//! cargo run --example burst -- http://localhost:8000/ TOKEN [COUNT] [--wait]
//! ```
//!
//! With `--wait`, it then waits as the last answer told, and shows that the next request is let through.

#[path = "demo/http.rs"]
mod http;
#[path = "demo/table.rs"]
mod table;

use http::{Answer, Client};
use std::net::ToSocketAddrs;
use std::process::ExitCode;
use std::time::Duration;
use table::{head, print, row};

const USAGE: &str = "usage: cargo run --example burst -- URL TOKEN [COUNT] [--wait]
  URL     where Envoy listens, such as http://localhost:8000/
  TOKEN   sent as the bearer token
  COUNT   how many requests, 7 if left out
  --wait  wait as the last answer told, and ask once more";

/// What to send, and how often.
struct Burst {
    url: String,
    token: String,
    count: usize,
    waits: bool,
}

fn main() -> ExitCode {
    let Some(burst) = Burst::parse(std::env::args().skip(1).collect()) else {
        eprintln!("{USAGE}");
        return ExitCode::from(2);
    };
    match burst.run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

impl Burst {
    fn parse(mut arguments: Vec<String>) -> Option<Self> {
        let waits = arguments.pop_if(|last| last == "--wait").is_some();
        let mut words = arguments.into_iter();
        let (url, token) = (words.next()?, words.next()?);
        let count = words.next().map_or(Some(7), |count| count.parse().ok().filter(|count| *count > 0))?;
        words.next().is_none().then_some(Self { url, token, count, waits })
    }

    fn run(&self) -> Result<(), String> {
        let (mut client, path) = connect(&self.url)?;
        let bearer = format!("Bearer {}", self.token);
        let mut ask = |number: usize| -> Result<Answer, String> {
            let answer = client.send("GET", &path, &[("authorization", &bearer)])?;
            print(&row(number, &answer)).map(|()| answer)
        };
        print(&format!("{} requests, as fast as they go\n{}", self.count, head()))?;
        let mut last = ask(1)?;
        for number in 2..=self.count {
            last = ask(number)?;
        }
        if !self.waits {
            return Ok(());
        }
        match last.header("retry-after").and_then(|seconds| seconds.parse().ok()) {
            Some(seconds) => {
                print(&format!("waiting {seconds} s, as told"))?;
                pause(Duration::from_secs(seconds));
                ask(self.count + 1).map(drop)
            }
            None => print("not waiting: the last answer has no Retry-After"),
        }
    }
}

/// A connection to the URL's host, and the path to ask for.
fn connect(url: &str) -> Result<(Client, String), String> {
    let wrong = || format!("{url}: not a URL of the form http://HOST:PORT/PATH");
    let rest = url.strip_prefix("http://").ok_or_else(wrong)?;
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let with_port = if host.ends_with(']') || !host.contains(':') { format!("{host}:80") } else { host.to_owned() };
    let addresses = with_port.to_socket_addrs().map_err(|error| format!("{url}: {error}"))?;
    // A name such as localhost has an IPv6 address too, where nobody may listen.
    let mut tried = addresses.map(Client::connect);
    let first = tried.next().ok_or_else(wrong)?;
    let client = first.or_else(|error| tried.find_map(Result::ok).ok_or(error))?;
    Ok((client, format!("/{path}")))
}

#[allow(clippy::disallowed_methods, reason = "a client waits in real time")]
fn pause(time: Duration) {
    std::thread::sleep(time);
}
