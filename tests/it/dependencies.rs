//! The licences, bans and sources of `deny.toml`, held against the dependency tree.

use serde_json::Value;
use std::process::Command;

fn packages() -> Vec<Value> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let mut metadata = Command::new(cargo);
    metadata.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    let output = metadata.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let Value::Array(packages) = metadata["packages"].take() else { panic!("no packages") };
    packages
}

fn rules() -> toml::Table {
    std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/deny.toml")).unwrap().parse().unwrap()
}

fn list<'a>(rules: &'a toml::Table, section: &str, key: &str) -> Vec<&'a str> {
    rules[section][key].as_array().unwrap().iter().map(|item| item.as_str().unwrap()).collect()
}

#[test]
fn every_licence_is_allowed() {
    let rules = rules();
    let allowed = list(&rules, "licenses", "allow");
    for package in packages() {
        let text = package["license"].as_str().unwrap_or_else(|| panic!("{} names no licence", package["name"]));
        let licence = spdx::Expression::parse_mode(text, spdx::ParseMode::LAX).unwrap();
        let is_allowed = |requirement: &spdx::LicenseReq| allowed.contains(&requirement.to_string().as_str());
        assert!(licence.evaluate(is_allowed), "{}: {text}", package["name"]);
    }
}

#[test]
fn no_banned_package_and_no_other_source() {
    let rules = rules();
    let banned = list(&rules, "bans", "deny");
    for package in packages() {
        let name = package["name"].as_str().unwrap();
        assert!(!banned.contains(&name), "{name} is banned");
        let source = package["source"].as_str();
        let is_ours = source.is_none() && name == "tollgate";
        assert!(
            is_ours || source == Some("registry+https://github.com/rust-lang/crates.io-index"),
            "{name}: {source:?}"
        );
    }
}
