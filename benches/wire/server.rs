//! The servers under load: child processes that say where they listen, and the CPU time that a process took.

use crate::child::{self, Running};
use crate::plain;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{ChildStderr, Command, Stdio};
use std::time::Duration;
use tempfile::TempDir;

const CONFIG: &str = "listen: { grpc: \"127.0.0.1:0\" }\ntoken: { prefixes: [ \"prefix:rate:\" ] }\n";

/// A server in a process of its own, which ends with it.
pub struct Server {
    pub address: SocketAddr,
    pub process: u32,
    _running: Running,
}

impl Server {
    /// Tollgate, with the claims and prefixes of the message.
    #[allow(dead_code, reason = "one benchmark uses this, another the one below")]
    pub fn tollgate() -> Result<Self, String> {
        let (folder, config) = child::folder("wire", "tollgate.yaml", CONFIG)?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(["serve", "--config"]).arg(config);
        Self::start("tollgate", command, folder)
    }

    /// Tollgate, with the configuration file `config`.
    #[allow(dead_code, reason = "one benchmark uses this, another the one above")]
    pub fn tollgate_with(config: &Path) -> Result<Self, String> {
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(["serve", "--config"]).arg(config);
        Self::start("tollgate", command, folder)
    }

    /// The plain server: this program once more.
    pub fn plain() -> Result<Self, String> {
        let this = std::env::current_exe().map_err(|error| format!("this program has no path: {error}"))?;
        let folder = tempfile::tempdir().map_err(|error| format!("no temporary folder: {error}"))?;
        let mut command = Command::new(this);
        command.arg(plain::ARGUMENT);
        Self::start("plain server", command, folder)
    }

    fn start(name: &'static str, mut command: Command, folder: TempDir) -> Result<Self, String> {
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running::start(name, &mut command, folder)?;
        let log = running.child().stderr.take().ok_or("no log")?;
        let address = address(log).map_err(|lines| format!("{name} ended before it listened\n{lines}"))?;
        Ok(Self { address, process: running.child().id(), _running: running })
    }
}

/// The address in the log line that says so, or all that was logged without it. What follows is read and dropped,
/// so that the server never waits.
fn address(log: ChildStderr) -> Result<SocketAddr, String> {
    let mut lines = BufReader::new(log).lines().map_while(Result::ok);
    let mut before = Vec::new();
    let address = lines.find_map(|line| {
        listening(&line).or_else(|| {
            before.push(line);
            None
        })
    });
    std::thread::spawn(move || lines.for_each(drop));
    address.ok_or_else(|| before.join("\n"))
}

fn listening(line: &str) -> Option<SocketAddr> {
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    (line["message"] == "listening").then(|| line["address"].as_str()?.parse().ok())?
}

/// The CPU time that a process took so far, of the user and of the system (proc(5): fields 14 and 15 of `stat`).
pub fn cpu(process: u32) -> Duration {
    const TICKS_A_SECOND: u64 = 100;
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("a process that runs, on Linux");
    let (_, after_name) = stat.rsplit_once(')').expect("a name in parentheses");
    let fields: Vec<&str> = after_name.split_whitespace().collect();
    let ticks: u64 = fields[11..13].iter().map(|field| field.parse::<u64>().expect("a number of ticks")).sum();
    Duration::from_millis(ticks * 1000 / TICKS_A_SECOND)
}
