//! The house rules of `docs/ARCHITECTURE.md`, held against the sources.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const BUDGET: usize = 400;
const CORE_BUDGET: usize = 3_000;
const STRIKES_BUDGET: usize = 800;

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The source files, with their paths below `src`.
fn sources() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut folders = vec![root().join("src")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root().join("src")).unwrap().to_str().unwrap().to_owned();
                found.insert(name, read(&path));
            }
        }
    }
    found
}

/// The rooms that the architecture page lists, from the top down.
fn rooms() -> Vec<String> {
    let page = read(&root().join("docs/ARCHITECTURE.md"));
    let list = page.split("```rooms\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a list of rooms");
    list.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect()
}

fn room(file: &str) -> &str {
    file.split(['/', '.']).next().unwrap()
}

/// The code of a file: without its comments.
fn code(text: &str) -> String {
    text.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
}

/// The rooms that `crate::` paths of `code` begin with, groups in braces included.
fn used(code: &str) -> Vec<String> {
    let name = |text: &str| text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>();
    let after = |path: &str| match path.strip_prefix('{') {
        Some(group) => group.split('}').next().unwrap().split(',').map(name).filter(|name| !name.is_empty()).collect(),
        None => vec![name(path)],
    };
    code.split("crate::").skip(1).flat_map(after).collect()
}

#[test]
fn the_page_lists_every_room() {
    let mut listed = rooms();
    let mut built: Vec<String> =
        sources().keys().map(|file| room(file).to_owned()).filter(|room| room != "lib").collect();
    listed.sort();
    built.sort();
    built.dedup();
    assert_eq!(listed, built);
}

#[test]
fn rooms_use_only_rooms_below() {
    let rooms = rooms();
    let place = |name: &str| rooms.iter().position(|room| room == name);
    for (file, text) in sources().iter().filter(|(file, _)| *file != "lib.rs" && *file != "main.rs") {
        let own = place(room(file)).unwrap();
        for name in used(&code(text)) {
            let used = place(&name).unwrap_or_else(|| panic!("{file} uses crate::{name}, which is no room"));
            assert!(used >= own, "{file} uses {name}, which is above it");
        }
        let depth = file.matches('/').count();
        let ups = code(text).lines().map(|line| line.matches("super::").count()).max().unwrap_or(0);
        assert!(ups <= depth, "{file} climbs out of its room by super::");
    }
}

#[test]
fn files_have_a_caption_and_keep_their_budget() {
    for (file, text) in sources() {
        let caption: Vec<&str> = text.lines().take_while(|line| line.starts_with("//!")).collect();
        let sentence = caption.join(" ").replace("//!", "");
        assert!(sentence.trim().len() > 20 && sentence.contains('.'), "{file}: no caption");
        let lines = text.split("#[cfg(test)]").next().unwrap().lines().count();
        assert!(lines <= BUDGET, "{file}: {lines} lines");
    }
    let core = [
        "capability",
        "decision",
        "held",
        "keyed",
        "limiter",
        "plan",
        "rate",
        "resolver",
        "store",
        "time",
        "warning",
        "lib",
    ];
    // Built for the service alone.
    let of_service = ["store/fixed_window.rs", "store/group.rs"];
    let is_of_service =
        |file: &str| of_service.contains(&file) || file.ends_with("written.rs") || file.ends_with("/service.rs");
    let strikes =
        ["attempts.rs", "store/ranks.rs", "store/strikes.rs", "store/strikes/ends.rs", "store/strikes/window.rs"];
    let is_core = |file: &str| core.contains(&room(file)) && !is_of_service(file) && !strikes.contains(&file);
    let lines = |counts: &dyn Fn(&str) -> bool| -> usize {
        sources().iter().filter(|(file, _)| counts(file)).map(|(_, text)| text.lines().count()).sum()
    };
    let (of_limiter, of_strikes) = (lines(&is_core), lines(&|file| strikes.contains(&file)));
    assert!(of_limiter <= CORE_BUDGET, "the library's core has {of_limiter} lines");
    assert!(of_strikes <= STRIKES_BUDGET, "the strike counter has {of_strikes} lines");
    let gcra = sources()["store/gcra.rs"].lines().count();
    assert!(gcra < 100, "gcra.rs has {gcra} lines");
}

#[test]
fn words_stay_in_their_rooms() {
    let rooms = rooms();
    let below = |file: &str, name: &str| {
        let place = |name: &str| rooms.iter().position(|room| room == name);
        place(room(file)) > place(name)
    };
    for (file, text) in sources().iter().filter(|(file, _)| *file != "lib.rs") {
        let code = code(text);
        let names = |words: &[&str]| words.iter().any(|word| code.contains(word));
        assert!(!(below(file, "envoy") && names(&["tonic::", "prost::", "protobuf"])), "{file} names gRPC");
        // A client's JSON is read with the library, into no tree and no type of its own.
        let reads_json = file == "body.rs" && !names(&["serde_saphyr", "derive", "yaml::"]);
        assert!(reads_json || !(below(file, "config") && names(&["serde", "yaml::"])), "{file} names serde or YAML");
        assert!(file == "time.rs" || !names(&["Instant::now", "SystemTime::now"]), "{file} asks the time");
        assert!(file == "config/yaml.rs" || !names(&["serde_saphyr"]), "{file} names the YAML library");
    }
}
