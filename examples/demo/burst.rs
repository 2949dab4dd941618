//! The three callers, and what they are told.

use crate::go_on;
use crate::http::Client;
use crate::stage::Stage;
use crate::table::{head, print, row};

const REQUESTS: usize = 7;

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
    print(&head())?;
    let bearer = format!("Bearer {}", stage.token(caller.name, caller.capabilities)?);
    let mut client = Client::connect(stage.edge())?;
    for number in 1..=REQUESTS {
        go_on()?;
        let answer = client.send("GET", "/", &[("authorization", &bearer)])?;
        print(&row(number, &answer))?;
    }
    Ok(())
}
