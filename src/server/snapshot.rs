//! The file that the state is written to from time to time, and read from at the start: whole or not at all.

use crate::config::Snapshot;
use crate::engine::Engine;
use crate::engine::snapshot::Restored;
use crate::reload::Live;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tracing::{info, warn};

/// Goes on with the snapshot that there is, if there is one. One that is not to be used is left out, and the log says why.
pub fn restore(snapshot: &Snapshot, engine: &mut Engine) {
    let path = snapshot.path.display();
    let bytes = match fs::read(&snapshot.path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return info!(%path, "there is no snapshot yet: all allowances are full");
        }
        Err(error) => return refuse(&snapshot.path, &error),
    };
    match engine.restore(&bytes) {
        Ok(Restored { callers, age, left_out }) => {
            let seconds = Duration::from_nanos(age).as_secs_f64();
            let left_out = (!left_out.is_empty()).then(|| left_out.join(", "));
            info!(%path, callers, seconds, left_out, "the snapshot of so many seconds ago was restored");
        }
        Err(unusable) => refuse(&snapshot.path, &unusable),
    }
}

fn refuse(path: &Path, cause: &dyn std::fmt::Display) {
    let path = path.display();
    let hint = "all allowances are full; the next snapshot takes its place";
    warn!(%path, %cause, hint, "the snapshot was not restored");
}

/// Writes a snapshot every now and then, for ever.
pub async fn keep(snapshot: &Snapshot, live: &Arc<Live>) -> std::convert::Infallible {
    live.awaits_snapshots();
    let mut every = tokio::time::interval(snapshot.interval);
    every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    every.tick().await;
    loop {
        every.tick().await;
        write(snapshot, live).await;
    }
}

/// Writes a snapshot, on a thread that may wait; the log says where that fails.
pub async fn write(snapshot: &Snapshot, live: &Arc<Live>) {
    let (to, writing) = (snapshot.clone(), Arc::clone(live));
    let save = move || writing.write_snapshot(|judge| save(&to, |out| judge.engine.write_snapshot(out)));
    // A panic is reported as such; the next snapshot may do better.
    let written = tokio::task::spawn_blocking(save).await.unwrap_or_else(|panic| Err(io::Error::other(panic)));
    live.wrote_snapshot(written.is_ok());
    if let Err(error) = written {
        let path = snapshot.path.display();
        warn!(%path, %error, "the snapshot was not written; the one before it stays");
    }
}

/// Writes a file beside the one that is there, and then in its place: who is killed leaves the one or the other.
fn save(snapshot: &Snapshot, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    let (path, part) = (&snapshot.path, snapshot.part());
    let mut options = OpenOptions::new();
    // It holds the secrets of the keys in it: a new file, which is nobody else's and no link.
    options.write(true).create_new(true).mode(0o600);
    match fs::remove_file(&part) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut out = BufWriter::with_capacity(1 << 18, options.open(&part)?);
    write(&mut out)?;
    out.flush()?;
    out.get_ref().sync_all()?;
    fs::rename(&part, path)?;
    match path.parent() {
        Some(folder) => File::open(folder)?.sync_all(),
        None => Ok(()),
    }
}
