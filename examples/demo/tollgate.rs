//! Tollgate as a real child process. Needs the sibling module `child`.
#![allow(dead_code, reason = "the demo and the tests use a part each")]

use super::child::{self, Running};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use tempfile::TempDir;

pub struct Tollgate {
    running: Running,
    config: PathBuf,
    address: String,
    log: Arc<Mutex<Vec<String>>>,
}

impl Tollgate {
    /// Runs `exe prefix_args... serve --config FILE` and waits until it listens.
    pub fn start(exe: &Path, prefix_args: &[&str], config_yaml: &str) -> Result<Self, String> {
        let (folder, config) = child::folder("serve", "tollgate.yaml", config_yaml)?;
        Self::with(exe, prefix_args, folder, config)
    }

    /// The same with the configuration file `config`; `folder` is kept as long as it runs.
    pub fn with(exe: &Path, prefix_args: &[&str], folder: TempDir, config: PathBuf) -> Result<Self, String> {
        let mut command = Command::new(exe);
        command.args(prefix_args).args(["serve", "--config"]).arg(&config).stdin(Stdio::null()).stderr(Stdio::piped());
        let mut running = Running::start("tollgate", &mut command, folder)?;
        let log = Arc::default();
        keep_lines(&mut running, &log);
        let address = wait_for_address(&mut running, &log)?;
        Ok(Self { running, config, address, log })
    }

    /// Where it listens: `127.0.0.1:43211`, `[::1]:4000` or `unix:/path`.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its configuration file.
    pub fn config(&self) -> &Path {
        &self.config
    }

    /// Every line it logged so far.
    pub fn log(&self) -> Vec<String> {
        lines(&self.log)
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, signal: &str) -> Result<(), String> {
        self.running.signal(signal)
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> Result<ExitStatus, String> {
        self.running.wait()
    }

    /// Asks it to end, and waits for that.
    pub fn stop(&mut self) -> Result<ExitStatus, String> {
        self.signal("TERM")?;
        self.wait()
    }
}

type Log = Arc<Mutex<Vec<String>>>;

fn keep_lines(running: &mut Running, log: &Log) {
    let log = Arc::clone(log);
    if let Some(stderr) = running.child().stderr.take() {
        thread::spawn(move || {
            for line in BufReader::new(stderr).lines().map_while(Result::ok) {
                log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
    }
}

fn lines(log: &Log) -> Vec<String> {
    log.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

fn wait_for_address(running: &mut Running, log: &Log) -> Result<String, String> {
    let found = child::wait_until("tollgate listens", || {
        if let Some(address) = lines(log).iter().find_map(|line| listening(line)) {
            return Ok(Some(address));
        }
        running.ended()?.map_or(Ok(None), |status| Err(format!("tollgate ended before it listened: {status}")))
    });
    found.map_err(|error| format!("{error}\n{}", lines(log).join("\n")))
}

/// The address in the log line that says so, be it JSON or text.
fn listening(line: &str) -> Option<String> {
    if let Some((_, rest)) = line.split_once(" listening address=") {
        return rest.split(' ').next().map(str::to_owned);
    }
    let line: serde_json::Value = serde_json::from_str(line).ok()?;
    (line["message"] == "listening").then(|| line["address"].as_str().map(str::to_owned))?
}
