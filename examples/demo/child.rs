//! A child process with a folder of its own: it is stopped, and its files removed, when its owner drops it.
#![allow(dead_code, reason = "the demo and the tests use a part each")]
#![allow(clippy::disallowed_methods, reason = "other processes live in real time")]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

/// How long a start or a stop may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(20);

pub struct Running {
    name: &'static str,
    child: Child,
    folder: tempfile::TempDir,
}

/// A folder for one run, and a file in it.
pub fn folder(name: &str, file: &str, text: &str) -> Result<(tempfile::TempDir, PathBuf), String> {
    let made = tempfile::Builder::new().prefix(&format!("tollgate-{name}-")).tempdir();
    let made = made.map_err(|error| format!("{name}: cannot make a temporary folder: {error}; is TMPDIR writable?"))?;
    let path = made.path().join(file);
    fs::write(&path, text).map_err(|error| format!("{}: cannot write this file: {error}", path.display()))?;
    Ok((made, path))
}

/// Asks `ready` until it has an answer.
pub fn wait_until<T>(what: &str, mut ready: impl FnMut() -> Result<Option<T>, String>) -> Result<T, String> {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(value) = ready()? {
            return Ok(value);
        }
        if Instant::now() > end {
            return Err(format!("{what}: not within {} seconds", PATIENCE.as_secs()));
        }
        thread::sleep(Duration::from_millis(5));
    }
}

impl Running {
    /// Runs the command; the folder lives as long as the process.
    pub fn start(name: &'static str, command: &mut Command, folder: tempfile::TempDir) -> Result<Self, String> {
        let child = command
            .spawn()
            .map_err(|error| format!("{name}: cannot run {}: {error}", command.get_program().to_string_lossy()))?;
        Ok(Self { name, child, folder })
    }

    pub fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    pub fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    /// The status of a process that has ended.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>, String> {
        self.child.try_wait().map_err(|error| format!("{}: cannot be waited for: {error}", self.name))
    }

    /// Sends a signal by name, such as `TERM`.
    pub fn signal(&self, signal: &str) -> Result<(), String> {
        let line = format!("kill -{signal} {}", self.child.id());
        match Command::new("sh").args(["-c", &line]).status() {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{}: `{line}` failed: {status}", self.name)),
            Err(error) => Err(format!("{}: cannot run `{line}`: {error}", self.name)),
        }
    }

    /// Waits for the end.
    pub fn wait(&mut self) -> Result<ExitStatus, String> {
        let what = format!("{} ends", self.name);
        wait_until(&what, || self.ended())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if !matches!(self.ended(), Ok(None)) {
            return;
        }
        // At TERM a Tollgate takes requests for a while yet; Envoy makes no difference.
        let stopped = self.signal("INT").and_then(|()| self.wait());
        if stopped.is_err() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
