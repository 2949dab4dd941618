//! Reads where state lives.

use super::Snapshot;
use super::kinds::{A_TEXT, DURATION, Kind};
use super::section::Section;
use super::value::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FILE: Kind<PathBuf> = Kind::Is("the absolute path of a file", A_TEXT, file);

/// The shortest time from one snapshot to the next.
const SHORTEST: Duration = Duration::from_millis(10);

/// The section `store`.
pub fn store(store: &mut Section<'_, '_>) -> Option<Option<Snapshot>> {
    store.section("memory", "state in this process", memory)
}

fn memory(memory: &mut Section<'_, '_>) -> Option<Option<Snapshot>> {
    let path = memory.optional(
        "snapshot",
        "/var/lib/tollgate/state",
        &FILE,
        "the file that allowances, remembered rates and lockouts are written to, and read from at the start",
    );
    let interval = memory.field("interval", "30s", &DURATION, "how often; and at SIGTERM");
    let (path, interval) = (path?, interval?);
    match path {
        None if memory.has("interval") => {
            let cause = "`store.memory.interval` is for a snapshot, and there is none".to_owned();
            memory.clash(&["interval"], cause, "remove it, or add `snapshot:` with a file")
        }
        None => Some(None),
        Some(_) if interval < SHORTEST => {
            let cause = "with so short an interval, snapshots would be all that is written".to_owned();
            memory.clash(&["interval"], cause, "write at least `10ms`; half a minute is usual")
        }
        Some(path) => Some(Some(Snapshot { path, interval })),
    }
}

fn file(value: &mut Value<'_, '_>) -> Option<PathBuf> {
    let text = value.text()?;
    let path = Path::new(text);
    if path.is_absolute() && path.file_name().is_some() && !text.ends_with('/') {
        return Some(path.into());
    }
    value.wrong("write the whole path of a file, such as `/var/lib/tollgate/state`")
}
