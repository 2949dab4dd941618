//! Finds promtool, or takes it out of Debian's package of Prometheus.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// `PROMTOOL`, else `promtool` on the PATH, else the one of Debian's package, fetched once into `tools` of the target folder.
pub fn find() -> PathBuf {
    if let Some(named) = env::var_os("PROMTOOL").filter(|value| !value.is_empty()) {
        return named.into();
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join("promtool")).find(|file| file.is_file());
    on_path.unwrap_or_else(fetched)
}

fn fetched() -> PathBuf {
    let program = env::current_exe().unwrap();
    let target = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file()).unwrap();
    let tools = target.join("tools");
    fs::create_dir_all(&tools).unwrap();
    let lock = File::create(tools.join("prometheus.lock")).unwrap();
    lock.lock().unwrap();
    let (whole, part) = (tools.join("prometheus"), tools.join("prometheus.part"));
    if !whole.join("usr/bin/promtool").is_file() {
        let _ = fs::remove_dir_all(&part);
        fs::create_dir_all(&part).unwrap();
        let fetch = "{ apt-get download prometheus || { apt-get update && apt-get download prometheus; }; } && dpkg -x prometheus_*.deb .";
        let output = Command::new("sh").args(["-c", fetch]).current_dir(&part).output().unwrap();
        let why = "install Prometheus, or name its promtool: PROMTOOL=/path/to/promtool";
        assert!(output.status.success(), "{}\nhint: {why}", String::from_utf8_lossy(&output.stderr));
        let _ = fs::remove_dir_all(&whole);
        fs::rename(&part, &whole).unwrap();
    }
    whole.join("usr/bin/promtool")
}

/// Runs promtool in `folder`, with `input`, and gives what it says; it is to succeed.
#[track_caller]
pub fn run(folder: &Path, arguments: &[&str], input: &str) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(&file, input).unwrap();
    let mut promtool = Command::new(find());
    promtool.args(arguments).current_dir(folder).stdin(File::open(file.path()).unwrap());
    let output = promtool.output().unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    said
}
