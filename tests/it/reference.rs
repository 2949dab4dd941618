//! The reference of the configuration: documentation, JSON Schema and examples say what is so.

use crate::replay::decisions;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;
use tollgate::config::{Config, Reference};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(file: &Path) -> String {
    std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

#[test]
#[cfg_attr(feature = "otlp", ignore = "the page is of the build without traces")]
fn the_page_holds_the_table_of_every_key() {
    let page = read(&root().join("docs/configuration.md"));
    let (_, tables) = page.split_once("<!-- `tollgate schema --markdown` -->\n\n").unwrap();
    assert!(tables == Reference::new().to_markdown(), "write the output of `tollgate schema --markdown` there");
    let output = |arguments: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_tollgate")).arg("schema").args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(output(&["--markdown"]), tables);
    assert_eq!(serde_json::from_str::<Value>(&output(&[])).unwrap(), Reference::new().to_schema());
}

/// The YAML files of the repository that are configurations, and the YAML blocks in its pages that are.
fn configurations() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for folder in ["examples/policies", "examples/compose"] {
        for entry in std::fs::read_dir(root().join(folder)).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "yaml") {
                found.push((path.display().to_string(), read(&path)));
            }
        }
    }
    for page in ["README.md", "docs/configuration.md", "docs/operations.md"] {
        let text = read(&root().join(page));
        for block in text.split("```yaml\n").skip(1) {
            found.push((page.to_owned(), block.split("```").next().unwrap().to_owned()));
        }
    }
    found.retain(|(_, text)| text.lines().any(|line| line.starts_with("token:")));
    found
}

#[test]
fn every_configuration_loads_and_fits_the_schema() {
    let schema = Reference::new().to_schema();
    let all = configurations();
    assert!(all.len() >= 10, "{}", all.len());
    for (name, text) in all {
        let config = Config::parse(&name, &text).unwrap_or_else(|mistakes| panic!("{mistakes}"));
        assert!(config.warnings.is_none(), "{}", config.warnings.unwrap());
        let value = serde_saphyr::from_str::<Value>(&text).unwrap();
        fits(&schema, &schema, &value).unwrap_or_else(|why| panic!("{name}: {why}"));
    }
}

#[test]
fn the_schema_finds_mistakes() {
    let schema = Reference::new().to_schema();
    let with = |text: &str| format!("token: {{ prefixes: [\"r:\"] }}\n{text}");
    for bad in [
        "{}".to_owned(),
        "token: {}".to_owned(),
        with("callers: { rule: [] }"),
        with("callers: { rules: [{ ceilling: [5/1m] }] }"),
        with("callers: { rules: [{ reject: 403 }] }"),
        with("callers: { rules: [{ allow_nothing: false }] }"),
        with("callers: { rules: [{ when: {}, deny: x }] }"),
        with("callers: { rules: [{ when: { not: { not: { hosts: x } } }, deny: x }] }"),
        with("callers: { rules: [{ when: { claim.x: { absent: 1 } }, deny: x }] }"),
        with("callers: { rules: [{ when: { header.x: 5 }, deny: x }] }"),
        with("costs: [{ cost: -1 }]"),
        with("costs: [{ cost: { default: 1 } }]"),
        with("limits: [{ key: [], rate: 1/1s }]"),
        with("limits: [{ name: A, key: [], rate: 1/1s }]"),
        with("limits: [{ name: a, rate: 1/1s }]"),
        with("limits: [{ name: a, key: 5, rate: 1/1s }]"),
        with("limits: [{ name: a, key: [], rate: 1/1s, burst: 0 }]"),
        with("limits: [{ name: a, key: [], rate: 1/1s, charge: { entry: 0 } }]"),
        with("limits: [{ name: a, key: [], rate: 1/1s, when_full: drop }]"),
        with("limits: [{ name: a, key: [], rate: 1/1s, charge: { outcome: [] } }]"),
        with("lockouts: [{ name: a, key: [], threshold: 0, window: 1m }]"),
        with("lockouts: [{ name: a, key: [], threshold: 5 }]"),
        with("lockouts: [{ name: a, key: [], threshold: 5, window: 1m, on: token }]"),
        with("lockouts: [{ name: a, key: [], threshold: 5, window: 1m, failures: [late] }]"),
        with("lockouts: [{ name: a, key: [], threshold: 5, window: 1m, outcome: { reset: [true] } }]"),
        with("mode: watch"),
        with("listen: { grpc: 5 }"),
    ] {
        let value = serde_saphyr::from_str::<Value>(&bad).unwrap();
        assert!(fits(&schema, &schema, &value).is_err(), "{bad}");
        assert!(Config::parse("tollgate.yaml", &bad).is_err(), "{bad}");
    }
}

/// Whether `value` is as `schema` says. A keyword that is not known here fails the test.
fn fits(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let wrong = |why: &str| Err(format!("{why}: {value} by {schema}"));
    let count =
        |schemas: &Value| schemas.as_array().unwrap().iter().filter(|schema| fits(root, schema, value).is_ok()).count();
    for (keyword, of) in schema.as_object().unwrap() {
        let holds = match keyword.as_str() {
            "$schema" | "$defs" | "title" | "description" | "default" => true,
            "$ref" => fits(root, root.pointer(of.as_str().unwrap().strip_prefix('#').unwrap()).unwrap(), value).is_ok(),
            "type" => match of {
                Value::Array(types) => types.iter().any(|of| is_of(of, value)),
                of => is_of(of, value),
            },
            "enum" => of.as_array().unwrap().contains(value),
            "const" => of == value,
            "anyOf" => count(of) > 0,
            "oneOf" => count(of) == 1,
            "pattern" => value.as_str().is_none_or(|text| is_name(of, text)),
            "minLength" => value.as_str().is_none_or(|text| text.len() as u64 >= of.as_u64().unwrap()),
            "minimum" => value.as_f64().is_none_or(|number| number >= of.as_f64().unwrap()),
            "maximum" => value.as_f64().is_none_or(|number| number <= of.as_f64().unwrap()),
            "minItems" => value.as_array().is_none_or(|list| list.len() as u64 >= of.as_u64().unwrap()),
            "maxItems" => value.as_array().is_none_or(|list| list.len() as u64 <= of.as_u64().unwrap()),
            "minProperties" => value.as_object().is_none_or(|map| map.len() as u64 >= of.as_u64().unwrap()),
            "items" => value.as_array().into_iter().flatten().try_for_each(|item| fits(root, of, item)).is_ok(),
            "required" => {
                of.as_array().unwrap().iter().all(|key| value.is_null() || value.get(key.as_str().unwrap()).is_some())
            }
            "properties" => members(root, schema, value).is_ok(),
            "additionalProperties" | "patternProperties" => schema.get("properties").is_some(),
            unknown => panic!("unknown keyword {unknown}"),
        };
        if !holds {
            return wrong(keyword);
        }
    }
    Ok(())
}

/// The one pattern of the schema: a limit's name.
fn is_name(pattern: &Value, text: &str) -> bool {
    assert_eq!(pattern, "^[a-z0-9][a-z0-9_-]{0,63}$");
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-".contains(&byte);
    (1..=64).contains(&text.len()) && text.bytes().all(is_part) && !text.starts_with(['-', '_'])
}

fn is_of(name: &Value, value: &Value) -> bool {
    match name.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        other => panic!("unknown type {other}"),
    }
}

/// The members of an object, of which none may be unknown.
fn members(root: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    assert_eq!(schema["additionalProperties"], false);
    for (key, member) in value.as_object().into_iter().flatten() {
        let by_pattern = || {
            let prefix = |pattern: &str| pattern.trim_start_matches('^').trim_end_matches(".+").replace('\\', "");
            let mut patterns = schema["patternProperties"].as_object().into_iter().flatten();
            patterns
                .find(|(pattern, _)| key.starts_with(&prefix(pattern)) && key.len() > prefix(pattern).len())
                .map(|(_, of)| of)
        };
        let of = schema["properties"].get(key).or_else(by_pattern).ok_or(format!("unknown key {key}"))?;
        fits(root, of, member)?;
    }
    Ok(())
}

/// Each example states requests and what their answers hold.
#[test]
fn the_examples_keep_their_promises() {
    let folder = root().join("examples/policies");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert_eq!(files.len(), 12);
    for file in files {
        let text = read(&file);
        let of = |start: &str| -> Vec<Value> {
            text.lines().filter_map(|line| Some(serde_json::from_str(line.strip_prefix(start)?).unwrap())).collect()
        };
        let (asked, promised) = (of("# ask:    "), of("# answer: "));
        assert!(!asked.is_empty() && asked.len() == promised.len(), "{}", file.display());
        for (decided, promised) in decisions(&text, &asked).iter().zip(promised) {
            for (key, value) in promised.as_object().unwrap() {
                assert_eq!(&decided[key], value, "{}: {key} of {decided}", file.display());
            }
        }
    }
}

/// The page shows the file for outcomes, without its comments.
#[test]
fn the_page_shows_what_envoy_needs_for_outcomes() {
    for name in ["outcomes", "hidden-headers"] {
        let file = read(&root().join(format!("envoy/{name}.yaml")));
        let lines: Vec<&str> = file.lines().filter(|line| !line.trim_start().starts_with('#')).collect();
        let shown = format!("<!-- tested: the lines of envoy/{name}.yaml -->\n```yaml\n{}\n```\n", lines.join("\n"));
        assert!(read(&root().join("docs/configuration.md")).contains(&shown), "{shown}");
    }
}

/// Of the login's two limits, each goes off alone.
#[test]
fn the_login_limits_go_off_one_by_one() {
    let text = read(&root().join("examples/policies/9-login.yaml"));
    let without =
        |name: &str| text.replace(&format!("{name}\n    enabled: true"), &format!("{name}\n    enabled: false"));
    let ask = |client: usize, user: &str| {
        let body = serde_json::json!({ "username": user }).to_string();
        let client = format!("192.0.2.{client}");
        serde_json::json!({"at": "0s", "token": "missing", "client": client, "method": "POST", "path": "/login", "body": body})
    };
    let of_one_user: Vec<_> = (0..6).map(|client| ask(client, "alice")).collect();
    let from_one_address: Vec<_> = (0..101).map(|user| ask(1, &user.to_string())).collect();
    let last = |text: &str, asked: &[Value]| decisions(text, asked).last().unwrap()["refused_by"].clone();
    for (off, by_user, by_address) in [
        ("neither", "login-user".into(), "login-address".into()),
        ("login-user", Value::Null, "login-address".into()),
        ("login-address", "login-user".into(), Value::Null),
    ] {
        let text = without(off);
        assert_eq!((last(&text, &of_one_user), last(&text, &from_one_address)), (by_user, by_address), "{off} is off");
    }
}
