//! What the README shows is what happens: its commands, its configurations, its snippets for Envoy and Istio.

use crate::envoy::validate;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use tollgate::Limiter;
use tollgate::cli::token::{Algorithm, SigningKey};
use tollgate::config::Config;

fn read(file: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap()
}

/// The blocks of the README in `language`, in order.
fn blocks(language: &str) -> Vec<String> {
    let readme = read("README.md");
    let fence = format!("```{language}\n");
    readme.split(&fence).skip(1).map(|rest| rest.split("```").next().unwrap().to_owned()).collect()
}

fn block(language: &str, holding: &str) -> String {
    let mut found = blocks(language).into_iter().filter(|block| block.contains(holding));
    let block = found.next().unwrap_or_else(|| panic!("no {language} block holds {holding}"));
    assert!(found.next().is_none(), "several {language} blocks hold {holding}");
    block
}

#[test]
fn the_mistake_is_shown_as_it_is() {
    let mistakes =
        Config::parse("tollgate.yaml", "token:\n  prefixes: [\"p:\"]\nresponse:\n  warning: false\n").unwrap_err();
    assert_eq!(format!("{mistakes}\n"), block("console", "error:"));
}

/// The demo prints what the README shows, but for the seconds that a slow machine lets go by.
#[test]
fn the_demo_prints_what_is_shown() {
    let command = block("sh", "cargo demo");
    let (program, argument) = command.trim().split_once(' ').unwrap();
    let output = Command::new(program).arg(argument).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let masked = |text: &str| {
        let mask = |line: &str| match line.split_once("429     ") {
            Some((number, rest)) => {
                format!("{number}429 {}", rest.trim_start_matches(|c: char| c.is_ascii_digit()).trim_start())
            }
            None => line.to_owned(),
        };
        text.trim_end().lines().map(mask).collect::<Vec<_>>()
    };
    assert_eq!(masked(&String::from_utf8(output.stdout).unwrap()), masked(&block("console", "7 requests a caller")));
}

/// Every line of the Envoy snippet stands in `envoy/envoy.yaml`, in that order.
#[test]
fn the_envoy_snippet_is_a_part_of_the_whole() {
    let whole = read("envoy/envoy.yaml");
    let mut lines = whole.lines();
    for line in block("yaml", "cluster_name: tollgate }").lines() {
        assert!(lines.any(|other| other == line), "envoy/envoy.yaml does not hold, in this order: {line}");
    }
}

/// The filter of the Istio snippet, in the place of the one in `envoy/envoy.yaml`, is accepted by Envoy.
#[test]
fn the_istio_filter_is_accepted_by_envoy() {
    let yaml = |text: &str| serde_saphyr::from_str::<Value>(text).unwrap();
    let istio = yaml(&block("yaml", "kind: EnvoyFilter"));
    let mut envoy = yaml(&read("envoy/envoy.yaml"));
    let manager = &mut envoy["static_resources"]["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"];
    let keys = SigningKey::generate(Algorithm::Es256).unwrap().jwks().to_string();
    manager["http_filters"][0]["typed_config"]["providers"]["main"]["local_jwks"] = json!({ "inline_string": keys });
    let filter = &mut manager["http_filters"][1];
    assert_eq!(filter["name"], "envoy.filters.http.ext_authz");
    *filter = istio["spec"]["configPatches"][0]["patch"]["value"].clone();
    let cluster = filter["typed_config"]["grpc_service"]["envoy_grpc"]["cluster_name"].clone();
    envoy["static_resources"]["clusters"][0]["name"] = cluster;
    validate(&envoy.to_string()).unwrap();
}

#[test]
fn the_composition_is_started_as_its_file_says() {
    let compose = read("docker-compose.yml");
    for line in block("sh", "docker compose").lines() {
        assert!(compose.contains(&format!("#   {line}\n")), "docker-compose.yml does not say: {line}");
    }
}

#[test]
fn every_command_is_there() {
    let help = Command::new(env!("CARGO_BIN_EXE_tollgate")).arg("--help").output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let readme = read("README.md");
    for command in ["serve", "check", "replay", "schema", "health", "token"] {
        assert!(readme.contains(&format!("| `tollgate {command}")), "{command} is not in the README");
        assert!(help.contains(&format!("\n  {command} ")), "{command} is not in --help");
    }
}

/// The table of rates: what the library makes of the capabilities in each row.
#[test]
fn the_table_of_rates_is_true() {
    let readme = read("README.md");
    let rows: Vec<&str> = readme.split("| the token's capabilities |").nth(1).unwrap().lines().skip(2).collect();
    let rows: Vec<&str> = rows.into_iter().take_while(|line| line.starts_with('|')).collect();
    let expected: [(&[&str], bool, usize, &str); 6] = [
        (&[], true, 0, "no limit"),
        (&["50/1m"], true, 0, "50 calls a minute"),
        (&["50/1m", "1000/24h"], true, 0, "both: a call has to fit into each"),
        (&["600/1m"], true, 0, "600 calls a minute: the window is rescaled into `callers.window_bounds`"),
        (&["fast"], false, 1, "malformed: 429 without `Retry-After`, and a warning"),
        (&["50/1m"], true, 1, "50 calls a minute, and a warning"),
    ];
    assert_eq!(rows.len(), expected.len());
    for (row, (limits, is_allowed, warnings, words)) in rows.iter().zip(expected) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let capabilities: Vec<&str> = cells[1].split('`').filter(|part| part.starts_with("prefix:")).collect();
        let limiter = Limiter::builder(["prefix:rate:"]).build().unwrap();
        let decision = limiter.check(&(), "caller", &capabilities);
        let held: Vec<String> = decision.limits().iter().map(ToString::to_string).collect();
        assert_eq!(
            (&*held, decision.is_allowed(), decision.warnings().len()),
            (&*strings(limits), is_allowed, warnings)
        );
        assert_eq!(cells[2], words);
    }
}

fn strings(texts: &[&str]) -> Vec<String> {
    texts.iter().map(ToString::to_string).collect()
}
