//! The images: pinned, not root, and Tollgate's own built of what is there.

use super::files::{compose, instructions, mounts, option, read, root, service, text, texts};
use super::port;
use crate::envoy::envoy_binary::PACKAGE;
use serde_json::Value;
use std::path::Path;

/// Not root: a number, since a name means nothing outside the image.
fn is_plain_user(user: &str) -> bool {
    user.split(':').count() == 2 && user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0))
}

#[test]
fn every_image_is_pinned() {
    let version = PACKAGE.split_once("==").unwrap().1;
    let (envoy, own) =
        (format!("envoyproxy/envoy:v{version}"), concat!("tollgate:", env!("CARGO_PKG_VERSION")).to_owned());
    for (name, image) in [("envoy", &envoy), ("app", &envoy), ("tokens", &own), ("tollgate", &own)] {
        assert_eq!(service(name)["image"], **image, "{name}");
    }
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let rust = manifest["package"]["rust-version"].as_str().unwrap();
    let [build, last] = &instructions("FROM")[..] else { panic!("not two stages") };
    assert_eq!(*build, format!("rust:{rust}.0-slim-bookworm AS build"));
    // Debian 12 is bookworm: both have the same glibc.
    let digest = last.strip_prefix("gcr.io/distroless/cc-debian12:nonroot@sha256:").unwrap();
    assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()), "{digest}");
}

#[test]
fn nobody_is_root_and_nobody_has_more_than_is_needed() {
    let [user] = &instructions("USER")[..] else { panic!("not one USER") };
    assert!(is_plain_user(user), "{user}");
    for (name, service) in compose()["services"].as_object().unwrap() {
        assert!(service["user"].as_str().map_or(service["image"] == own_image(), is_plain_user), "{name}");
        assert_eq!(service["read_only"], true, "{name}");
        assert_eq!(texts(&service["cap_drop"]), ["ALL"], "{name}");
        assert_eq!(texts(&service["security_opt"]), ["no-new-privileges:true"], "{name}");
    }
    // The private key in the volume is its owner's, and Envoy is somebody else.
    assert_ne!(text(&service("envoy")["user"]), *user);
    // The volume takes its owner from the folder of the image.
    let folder = Path::new(&option("tokens", "--key")).parent().unwrap().display().to_string();
    assert!(instructions("COPY").contains(&format!("--from=build --chown={user} {folder} {folder}")), "{folder}");
}

fn own_image() -> Value {
    service("tollgate")["image"].clone()
}

#[test]
fn what_is_mounted_is_there_and_is_what_is_read() {
    for name in ["tollgate", "app", "envoy"] {
        for mount in mounts(name) {
            assert!(mount.is_read_only, "{name}: {}", mount.source);
            assert!(mount.file().is_none_or(|file| root(&file).is_file()), "{name}: {}", mount.source);
        }
        let target = &mounts(name)[0].target;
        match name {
            "tollgate" => assert_eq!(instructions("ENV"), [format!("TOLLGATE_CONFIG={target}")]),
            _ => assert_eq!(texts(&service(name)["command"]), ["--config-path", target], "{name}"),
        }
    }
    assert_eq!(instructions("EXPOSE"), [port("tollgate").to_string()]);
}

/// Words of the exec form: there is no shell in the image.
pub fn words(instruction: &str) -> Vec<String> {
    let [rest] = &instructions(instruction)[..] else { panic!("not one {instruction}") };
    serde_json::from_str(&rest[rest.find('[').unwrap()..]).unwrap()
}

#[test]
fn the_image_runs_the_program_that_is_copied() {
    let program = "/usr/local/bin/tollgate";
    assert!(instructions("COPY").contains(&format!("--from=build /build/target/release/tollgate {program}")));
    assert_eq!(words("ENTRYPOINT"), [program]);
    assert_eq!(words("CMD"), ["serve"]);
    assert_eq!(words("HEALTHCHECK")[0], program);
}

/// The file of every target that the manifest names: cargo builds nothing where one is missing.
fn targets() -> Vec<String> {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let folders = [("bench", "benches"), ("example", "examples"), ("test", "tests")];
    let named = |(kind, folder): (&str, &'static str)| {
        let all = manifest[kind].as_array().unwrap().clone();
        all.into_iter().map(move |target| file(&target, folder))
    };
    folders.into_iter().flat_map(named).collect()
}

fn file(target: &toml::Value, folder: &str) -> String {
    if let Some(path) = target.get("path") {
        return path.as_str().unwrap().to_owned();
    }
    let name = target["name"].as_str().unwrap();
    let alone = format!("{folder}/{name}.rs");
    if root(&alone).is_file() { alone } else { format!("{folder}/{name}/main.rs") }
}

#[test]
fn the_layer_of_dependencies_has_a_file_for_every_target() {
    let runs = instructions("RUN");
    let touched: Vec<&str> =
        runs[0].split("&& ").find_map(|command| command.strip_prefix("touch ")).unwrap().split_whitespace().collect();
    for target in targets() {
        assert!(touched.contains(&&*target), "the Dockerfile does not make {target}");
    }
}

#[test]
fn what_is_copied_is_not_ignored() {
    let kept = read(".dockerignore");
    let copied = instructions("COPY").into_iter().filter(|copy| !copy.starts_with("--from")).collect::<Vec<_>>();
    assert_eq!(copied, ["Cargo.toml Cargo.lock ./", "src src"]);
    for source in ["Cargo.toml", "Cargo.lock", "src"] {
        assert!(kept.lines().any(|line| line == format!("!/{source}")), "{source} is ignored");
    }
}
