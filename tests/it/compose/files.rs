//! The files of the composition, read: services, mounts, options and the Dockerfile's instructions.

use serde_json::Value;
use std::path::{Path, PathBuf};

pub fn root(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file)
}

pub fn read(file: &str) -> String {
    std::fs::read_to_string(root(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub fn yaml(file: &str) -> Value {
    serde_saphyr::from_str(&read(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

pub fn compose() -> Value {
    yaml("docker-compose.yml")
}

pub fn envoy() -> Value {
    yaml("envoy/envoy.yaml")
}

pub fn service(name: &str) -> Value {
    let service = compose()["services"][name].take();
    assert!(service.is_object(), "there is no service {name}");
    service
}

pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a text: {value}")).to_owned()
}

pub fn texts(value: &Value) -> Vec<String> {
    value.as_array().unwrap_or_else(|| panic!("not a list: {value}")).iter().map(text).collect()
}

/// The value of `name` in a service's command, as in `--name=value`.
pub fn option(service_name: &str, name: &str) -> String {
    let command = texts(&service(service_name)["command"]);
    let mut found = command.iter().filter_map(|word| word.strip_prefix(name)?.strip_prefix('='));
    let value = found.next().unwrap_or_else(|| panic!("{service_name} has no {name}"));
    assert!(found.next().is_none(), "{service_name} has several {name}");
    value.to_owned()
}

/// One entry of a service's `volumes`.
pub struct Mount {
    pub source: String,
    pub target: String,
    pub is_read_only: bool,
}

impl Mount {
    /// The file of the repository, unless it is a volume.
    pub fn file(&self) -> Option<String> {
        self.source.strip_prefix("./").map(str::to_owned)
    }
}

pub fn mounts(name: &str) -> Vec<Mount> {
    service(name)["volumes"].as_array().unwrap().iter().map(mount).collect()
}

/// An entry in its long form, or `source:target[:ro]`.
fn mount(entry: &Value) -> Mount {
    let Some(short) = entry.as_str() else {
        let is_read_only = entry["read_only"] == true;
        return Mount { source: text(&entry["source"]), target: text(&entry["target"]), is_read_only };
    };
    let parts: Vec<&str> = short.split(':').collect();
    let (source, target) = (parts[0].to_owned(), parts[1].to_owned());
    Mount { source, target, is_read_only: parts.get(2) == Some(&"ro") }
}

/// The Dockerfile's instructions: the word in capitals, and the rest with its lines joined.
pub fn dockerfile() -> Vec<(String, String)> {
    let text = read("Dockerfile");
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    let joined = lines.join("\n").replace("\\\n", " ");
    joined.lines().map(|line| line.split_once(' ').unwrap()).map(|(word, rest)| (word.into(), rest.into())).collect()
}

/// What follows each `word` in the Dockerfile.
pub fn instructions(word: &str) -> Vec<String> {
    dockerfile().into_iter().filter(|(one, _)| one == word).map(|(_, rest)| rest).collect()
}
