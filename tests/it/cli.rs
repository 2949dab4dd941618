//! The command line as people and scripts meet it: help, versions, addresses, exit codes, tokens.

mod health;

use crate::envoy::wait_until;
use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{DecodingKey, Validation};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

fn tollgate(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.args(arguments).env_remove("TOLLGATE_LISTEN").env_remove("TOLLGATE_CONFIG");
    command
}

fn run(arguments: &[&str]) -> Output {
    tollgate(arguments).stdin(Stdio::null()).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// A configuration that listens on a port of its own.
fn config(folder: &Path) -> PathBuf {
    let file = folder.join("tollgate.yaml");
    std::fs::write(&file, "listen: { grpc: \"127.0.0.1:0\" }\ntoken: { prefixes: [\"r:\"] }\n").unwrap();
    file
}

#[test]
fn help_and_version_say_what_is_there() {
    assert_eq!(text(&run(&["--version"]).stdout), format!("tollgate {}\n", env!("CARGO_PKG_VERSION")));
    for (command, holds) in [
        ("serve", "--listen <ADDRESS>"),
        ("check", "show every mistake in it"),
        ("health", "--listen <ADDRESS>"),
        ("replay", "never decreasing"),
        ("token", "--capability <TEXT>"),
    ] {
        let help = text(&run(&[command, "--help"]).stdout);
        assert!(help.contains(holds), "{help}");
    }
    assert_eq!(run(&[]).status.code(), Some(2));
    assert_eq!(run(&["serve"]).status.code(), Some(2));
}

/// The address in the first log line of `serve`, which is then killed.
fn listens_on(mut command: Command) -> String {
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stderr.take().unwrap()).read_line(&mut line).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let line: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
    line["address"].as_str().unwrap().to_owned()
}

#[test]
fn the_address_is_the_flags_or_the_environments_before_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let file = config(folder.path());
    let serve = ["serve", "--config", file.to_str().unwrap()];
    let flag = format!("unix:{}", folder.path().join("flag.sock").display());
    let variable = format!("unix:{}", folder.path().join("variable.sock").display());

    let with_flag = [&serve[..], &["--listen", &flag]].concat();
    let mut both = tollgate(&with_flag);
    both.env("TOLLGATE_LISTEN", &variable);
    assert_eq!(listens_on(both), flag);

    let mut environment = tollgate(&serve);
    environment.env("TOLLGATE_LISTEN", &variable);
    assert_eq!(listens_on(environment), variable);

    // Set but empty, as a compose file leaves it, is not set.
    let mut empty = tollgate(&serve);
    empty.env("TOLLGATE_LISTEN", "");
    assert!(listens_on(empty).starts_with("127.0.0.1:"));
}

#[track_caller]
fn check_failure(command: &mut Command, code: i32, holds: &[&str]) {
    let mut child = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    // One that serves where it should have failed would never end.
    let ended = wait_until("the command ends", || child.try_wait().map_err(|error| error.to_string()));
    child.kill().unwrap();
    let output = child.wait_with_output().unwrap();
    let error = text(&output.stderr);
    assert_eq!(ended.map(|status| status.code()), Ok(Some(code)), "{error}");
    for part in holds {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[test]
fn what_serve_cannot_do_it_says() {
    let folder = tempfile::tempdir().unwrap();
    let file = config(folder.path());
    let serve = ["serve", "--config", file.to_str().unwrap()];
    let on = |address: &str| tollgate(&[&serve[..], &["--listen", address]].concat());

    check_failure(&mut on("nowhere"), 2, &["--listen or TOLLGATE_LISTEN is \"nowhere\"", "hint: write host:port"]);
    let not_a_socket = format!("unix:{}", file.display());
    check_failure(&mut on(&not_a_socket), 1, &["cannot listen on unix:", "exists and is not a socket"]);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    check_failure(&mut on(&address), 1, &[&format!("cannot listen on {address}"), "in use"]);
    check_failure(&mut tollgate(&["serve", "--config", "nowhere.yaml"]), 1, &["nowhere.yaml"]);

    // A socket that somebody holds stays, even one that no stream connects to.
    let (stream, datagram) = (folder.path().join("stream.sock"), folder.path().join("datagram.sock"));
    let _held = (UnixListener::bind(&stream).unwrap(), UnixDatagram::bind(&datagram).unwrap());
    for socket in [stream, datagram] {
        check_failure(&mut on(&format!("unix:{}", socket.display())), 1, &["cannot listen on unix:", "in use"]);
        assert!(socket.exists(), "{}", socket.display());
    }

    // Its snapshot would take the place of the file.
    let (state, part) = (folder.path().join("state"), folder.path().join("state.part"));
    for (config, snapshot) in [(&file, &file), (&state, &state), (&part, &state)] {
        let over = format!("token: {{ prefixes: [\"r:\"] }}\nstore: {{ memory: {{ snapshot: {snapshot:?} }} }}\n");
        std::fs::write(config, over).unwrap();
        let says = ["would take the place of this very file", "write another path"];
        check_failure(&mut tollgate(&["serve", "--config", config.to_str().unwrap()]), 2, &says);
        check_failure(&mut tollgate(&["check", config.to_str().unwrap()]), 2, &says);
    }

    std::fs::write(&file, "token: { prefixes: [\"r:\"], mising: deny }").unwrap();
    check_failure(&mut tollgate(&serve), 2, &[":1:28", "did you mean `missing`?"]);
}

/// The claims of `token`, verified by the JWKS in `file`.
fn verified(token: &str, file: &Path) -> Value {
    let keys: JwkSet = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let header = jsonwebtoken::decode_header(token).unwrap();
    let mut rules = Validation::new(header.alg);
    rules.set_audience(&["api"]);
    let key = DecodingKey::from_jwk(keys.find(&header.kid.unwrap()).unwrap()).unwrap();
    jsonwebtoken::decode::<Value>(token, &key, &rules).unwrap().claims
}

#[test]
fn tokens_are_verified_by_their_jwks() {
    let folder = tempfile::tempdir().unwrap();
    for alg in ["ES256", "RS256"] {
        let (key, jwks) = (folder.path().join(format!("{alg}.pem")), folder.path().join(format!("{alg}.json")));
        let arguments = [
            "token",
            "--alg",
            alg,
            "--key",
            key.to_str().unwrap(),
            "--jwks",
            jwks.to_str().unwrap(),
            "--sub",
            "alice",
            "--aud",
            "api",
            "--capability",
            "r:5/1m",
            "--claim",
            "plan=\"pro\"",
        ];
        let first = text(&run(&arguments).stdout);
        let again = text(&run(&arguments).stdout);
        for token in [first, again] {
            let claims = verified(token.trim(), &jwks);
            assert_eq!(
                (&claims["sub"], &claims["capabilities"][0], &claims["plan"]),
                (&"alice".into(), &"r:5/1m".into(), &"pro".into())
            );
            assert_eq!(claims["exp"].as_u64().unwrap() - claims["iat"].as_u64().unwrap(), 3600);
        }
    }
    let key = folder.path().join("ES256.pem");
    let key = key.to_str().unwrap();
    check_failure(&mut tollgate(&["token", "--key", key, "--jwks", key]), 2, &["name the same file"]);
    assert!(std::fs::read_to_string(key).unwrap().contains("PRIVATE KEY"));
}
