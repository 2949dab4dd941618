//! `cargo bench --bench wire`: what a Check costs on the wire, in turn with a plain tonic + envoy-types server.
//!
//! Both servers are processes of their own on loopback, and get the same message: 15 headers, a token of 900 bytes,
//! 12 claims, 8 capabilities, two of them rates. Rounds of both alternate in one run, and the ratio is that of the
//! medians: on a shared machine only a ratio of neighbours means anything. The loader needs CPU of its own, printed
//! beside theirs: a server that needs less than the loader is not seen to answer more.

#[path = "../examples/demo/child.rs"]
mod child;
#[path = "wire/load.rs"]
mod load;
#[path = "wire/message.rs"]
mod message;
#[path = "wire/plain.rs"]
mod plain;
#[path = "wire/server.rs"]
mod server;

use load::{Load, Round, Shape};
use server::Server;
use std::time::Duration;

const ROUNDS: usize = 9;
const ROUND: Duration = Duration::from_millis(1500);
const WARM_UP: Duration = Duration::from_millis(500);
const SHAPES: [Shape; 2] = [Shape { connections: 1, streams: 32 }, Shape { connections: 8, streams: 32 }];

fn main() -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    if std::env::args().any(|argument| argument == plain::ARGUMENT) {
        return runtime.block_on(plain::serve());
    }
    let servers = [Server::tollgate()?, Server::plain()?];
    runtime.block_on(compare(&servers))
}

async fn compare(servers: &[Server; 2]) -> Result<(), String> {
    message::prove(servers[0].address).await;
    let size = message::captured().len();
    println!("a Check of {size} bytes, {ROUNDS} rounds of {} s each, in turn", ROUND.as_secs_f64());
    println!("{:<28} {:>12} {:>12} {:>7}", "", "tollgate", "plain", "ratio");
    for shape in SHAPES {
        let [tollgate, plain] = rounds(servers, shape).await;
        print(shape, &tollgate, &plain);
    }
    Ok(())
}

/// The rounds of each server.
async fn rounds(servers: &[Server; 2], shape: Shape) -> [Vec<Round>; 2] {
    let mut loads = Vec::new();
    for server in servers {
        loads.push(Load::connect(server, shape).await);
    }
    for load in &loads {
        load.run(WARM_UP).await;
    }
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (load, rounds) in loads.iter().zip(&mut rounds) {
            rounds.push(load.run(ROUND).await);
        }
    }
    rounds
}

fn print(shape: Shape, tollgate: &[Round], plain: &[Round]) {
    let Shape { connections, streams } = shape;
    let row = |name: &str, unit: &str, figure: fn(&Round) -> f64, digits: usize| {
        let label = format!("{connections} x {streams}, {name}");
        let (ours, theirs) = (median(tollgate, figure), median(plain, figure));
        let cell = |value: f64| format!("{value:.digits$}{unit}");
        println!("{label:<28} {:>12} {:>12} {:>7.2}", cell(ours), cell(theirs), ours / theirs);
    };
    row("CPU per Check", " us", Round::server_micros, 2);
    row("requests/s", "", Round::per_second, 0);
    row("loader's CPU", " us", Round::loader_micros, 2);
}

fn median(rounds: &[Round], figure: fn(&Round) -> f64) -> f64 {
    let mut figures: Vec<f64> = rounds.iter().map(figure).collect();
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
