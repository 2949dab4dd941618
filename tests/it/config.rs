//! The configuration file: what good ones mean, and the exact words for bad ones.

mod fields;
mod limits;

use fields::FULL;
use proptest::prelude::*;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tollgate::answer::{BodyFormat, QuotaHeaders};
use tollgate::config::{
    Config, ConfigError, InvalidAddress, ListenAddress, LogFormat, LogLevel, LogPrincipal, SIZE_LIMIT, Shutdown,
};
use tollgate::policy::{MissingToken, Mode};
use tollgate::token::ClaimPath;
use tollgate::{DefaultResolver, Prefixes, WindowBounds};

const BAD: &str = "tests/it/config/bad";
const SMALLEST: &str = "token:\n  prefixes: [\"prefix:rate:\"]\n";

fn files(extension: &str) -> Vec<PathBuf> {
    let files = fs::read_dir(BAD).expect(BAD).map(|entry| entry.expect(BAD).path());
    let mut files: Vec<_> = files.filter(|path| path.extension().is_some_and(|end| end == extension)).collect();
    files.sort();
    files
}

fn message(path: &Path) -> String {
    match Config::load(path) {
        Ok(_) => format!("{} has no mistake", path.display()),
        Err(error) => error.to_string().replace(&path.display().to_string(), "tollgate.yaml") + "\n",
    }
}

#[test]
fn every_bad_file_has_its_exact_message() {
    let bad = files("yaml");
    assert_eq!(bad.len(), 207);
    assert_eq!(bad.iter().map(|path| path.with_extension("txt")).collect::<Vec<_>>(), files("txt"));
    let wrong: Vec<_> = bad
        .iter()
        .map(|path| (path, message(path)))
        .filter(|(path, message)| fs::read_to_string(path.with_extension("txt")).ok().as_ref() != Some(message))
        .map(|(path, message)| format!("{} says:\n{message}", path.display()))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn good(text: &str) -> Config {
    Config::parse("tollgate.yaml", text).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}

fn path(names: &[&str]) -> ClaimPath {
    ClaimPath(names.iter().map(ToString::to_string).collect())
}

#[test]
fn the_smallest_file_means_the_documented_defaults() {
    let Config { listen, token, prefixes, policy, response, shutdown, log, .. } = good(SMALLEST);
    assert_eq!((listen.grpc.to_string().as_str(), listen.trusted_network), ("127.0.0.1:10003", false));
    assert_eq!(listen.max_connection_age, Some(Duration::from_secs(600)));
    assert_eq!(shutdown, Shutdown { delay: Duration::from_secs(5), timeout: Duration::from_secs(30) });
    assert_eq!(token.namespace, "envoy.filters.http.jwt_authn");
    assert_eq!(token.payload, ["payload", "jwt_payload"]);
    assert_eq!(token.failure, "jwt_failure");
    assert_eq!(token.principal, [path(&["sub"])]);
    assert_eq!(token.capabilities, [path(&["capabilities"])]);
    assert_eq!(policy.missing, MissingToken::Deny);
    assert_eq!(prefixes, Prefixes::new(["prefix:rate:"]).unwrap());
    assert_eq!(policy.callers.base(), DefaultResolver::default());
    assert_eq!(response.warning_header.as_deref(), Some("x-webpa-capability-warning"));
    assert_eq!(response.body, BodyFormat::Problem);
    assert_eq!(response.realm, "tollgate");
    let off = (QuotaHeaders::Off, false, false);
    assert_eq!((response.quota_headers, response.expose_headers, policy.tells_quotas), off);
    assert_eq!((log.format, log.level, log.principal), (LogFormat::Json, LogLevel::Info, LogPrincipal::Plain));
}

/// The default resolver with these bounds in seconds.
fn within(min: u64, max: u64) -> DefaultResolver {
    let bounds = WindowBounds::within(Duration::from_secs(min), Duration::from_secs(max));
    DefaultResolver::default().with_window_bounds(bounds.unwrap())
}

#[test]
fn where_everything_is_observed_no_caller_is_warned() {
    let Config { policy, response, .. } = good(&format!("{SMALLEST}mode: observe\n"));
    assert_eq!((policy.mode, response.warning_header), (Mode::Observe, None));
}

#[test]
fn ten_thousand_overrides_are_read_and_a_second_one_for_a_principal_is_found() {
    let rule =
        |principal: usize| format!("    - {{ when: {{ principal: caller-{principal:05} }}, override: [5/1m] }}\n");
    let rules = (0..10_000).chain([4_321]).map(rule).collect::<String>();
    let mistakes = Config::parse("tollgate.yaml", &format!("{SMALLEST}callers:\n  rules:\n{rules}")).unwrap_err();
    assert_eq!(mistakes.summary(), "tollgate.yaml: 1 mistake");
    let text = mistakes.to_string();
    assert!(text.contains("\n     --> tollgate.yaml:10005:7\n"), "{text}");
    assert!(text.ends_with("\nhint: remove it, or place it before the rule in line 4326"), "{text}");
}

#[test]
fn part_of_a_section_leaves_the_rest_at_its_defaults() {
    let with = |text: &str| good(&format!("{SMALLEST}{text}"));
    assert_eq!(with("listen:\nlog:\ncallers:\nresponse:\n").response.realm, "tollgate");
    assert_eq!(with("callers: { window_bounds: }").policy.callers.base(), DefaultResolver::default());
    let off = DefaultResolver::default().with_window_bounds(WindowBounds::OFF);
    assert_eq!(with("callers: { window_bounds: off }").policy.callers.base(), off);
    assert_eq!(with("callers: { window_bounds: { max: 1h } }").policy.callers.base(), within(60, 3_600));
    assert_eq!(with("response: { warnings: false }").response.warning_header, None);
    assert_eq!(with("response: { warning_header: X-Notes, warnings: false }").response.warning_header, None);
}

#[test]
fn a_file_may_have_a_byte_order_mark_carriage_returns_and_aliases() {
    let config =
        good("\u{feff}token:\r\n  principal: &claims [sub]\r\n  capabilities: *claims\r\n  prefixes: ['a']\r\n");
    assert_eq!(config.token.capabilities, config.token.principal);
    assert_eq!(config.prefixes, Prefixes::new(["a"]).unwrap());
}

#[test]
fn addresses_read_back_as_they_were_written() {
    for text in ["127.0.0.1:10003", "0.0.0.0:0", "[::]:65535", "[fe80::1%2]:1", "unix:/run/tollgate/grpc.sock"] {
        assert_eq!(text.parse::<ListenAddress>().map(|address| address.to_string()).as_deref(), Ok(text));
    }
    assert_eq!("localhost:80".parse::<ListenAddress>().unwrap().to_string(), "127.0.0.1:80");
    let socket = |length| format!("unix:/{}", "s".repeat(length)).parse::<ListenAddress>().map(|_| ());
    assert_eq!((socket(106), socket(107)), (Ok(()), Err(InvalidAddress::LongPath)));
}

#[test]
fn a_text_that_is_no_address_says_why() {
    use InvalidAddress::{NoHost, RelativePath, Tcp};
    let bad: [(_, &[&str]); 3] = [
        (Tcp, &["", "10003", "127.0.0.1", "127.0.0.1:", "host:80", "localhost:x", "127.0.0.1:65536", "[::]", "::1:80"]),
        (NoHost, &[":80", ":0"]),
        (RelativePath, &["a", "", "a/b", "/", "//", "/a/", "/a/..", "./a", "/a\0b"]),
    ];
    for (error, texts) in bad {
        let scheme = if error == RelativePath { "unix:" } else { "" };
        for text in texts {
            assert_eq!(format!("{scheme}{text}").parse::<ListenAddress>(), Err(error), "{text}");
        }
    }
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let missing = directory.path().join("missing.yaml");
    let error = Config::load(&missing).unwrap_err().to_string();
    assert!(error.starts_with(&format!("{}: cannot read this file: ", missing.display())), "{error}");
    assert!(matches!(Config::load(directory.path()), Err(ConfigError::Unreadable { .. })));
}

#[test]
fn a_file_may_have_ten_mebibytes_and_no_more() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let filler = usize::try_from(SIZE_LIMIT).unwrap() - SMALLEST.len() - 1;
    fs::write(&file, format!("{SMALLEST}#{}", "x".repeat(filler))).unwrap();
    assert!(Config::load(file.path()).is_ok());
    fs::write(&file, format!("{SMALLEST}#{}", "x".repeat(filler + 1))).unwrap();
    assert!(matches!(Config::load(file.path()), Err(ConfigError::TooLarge { .. })));
}

#[test]
fn mistakes_that_are_not_shown_are_counted() {
    let wrong = |count| (0..count).map(|key| format!("wrong_{key}: {key}\n")).collect::<String>();
    let last = |count| {
        let mistakes = Config::parse("tollgate.yaml", &format!("{SMALLEST}{}", wrong(count))).unwrap_err().to_string();
        mistakes.lines().last().map(ToString::to_string)
    };
    assert_eq!(
        last(50).as_deref(),
        Some(
            "hint: known keys here: listen, mode, token, callers, costs, limits, lockouts, outcome_timeout, client, response, store, paths, shutdown, log"
        )
    );
    assert_eq!(last(51).as_deref(), Some("and 1 more mistake"));
    assert_eq!(last(10_052).as_deref(), Some("and 10002 more mistakes"));
}

const WARNING: &str = "\
warning: the cost comes from the header `x-cost`, which clients may write
 --> warned.yaml:4:5
  |
4 |   - cost: { from: header.x-cost }
  |     ^^^^
hint: write `trusted: true` if Envoy removes what clients send in it; until then it can only raise the cost above `default`

";

#[test]
fn the_command_says_ok_or_shows_the_mistakes() {
    let directory = tempfile::tempdir().unwrap();
    let check = |name: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        let output = command.current_dir(&directory).args(["check", name]).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    };
    fs::write(directory.path().join("good.yaml"), SMALLEST).unwrap();
    assert_eq!(check("good.yaml"), (Some(0), "good.yaml: ok\n".into(), String::new()));
    let cost = format!("{SMALLEST}costs:\n  - cost: {{ from: header.x-cost }}\n");
    fs::write(directory.path().join("warned.yaml"), cost).unwrap();
    assert_eq!(check("warned.yaml"), (Some(0), "warned.yaml: ok\n".into(), WARNING.into()));
    fs::write(directory.path().join("bad.yaml"), "tokens: {}").unwrap();
    let mistakes = Config::parse("bad.yaml", "tokens: {}").unwrap_err();
    assert_eq!(check("bad.yaml"), (Some(2), String::new(), format!("{mistakes}\n\nerror: bad.yaml: 2 mistakes\n")));
    let (code, stdout, stderr) = check("missing.yaml");
    assert_eq!((code, stdout.as_str()), (Some(1), ""));
    assert!(stderr.starts_with("error: missing.yaml: cannot read this file: "), "{stderr}");
}

#[test]
fn colours_are_there_only_when_asked_for() {
    let mistakes = Config::parse("tollgate.yaml", "tokens: {}").unwrap_err();
    assert_eq!(mistakes.summary(), "tollgate.yaml: 2 mistakes");
    assert!(!mistakes.to_string().contains('\x1b'));
    let styled = mistakes.to_styled();
    let without: String =
        styled.split('\x1b').map(|part| part.split_once('m').map_or(part, |(_, rest)| rest)).collect();
    assert!(styled.contains('\x1b') && without.contains("hint: did you mean `token`?"), "{without}");
}

proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(text in any::<String>()) {
        let _ = Config::parse("tollgate.yaml", &text).map_err(|mistakes| mistakes.to_string() + &mistakes.to_styled());
    }

    #[test]
    fn no_nearly_good_text_makes_the_reader_panic(
        parts in prop::collection::vec(prop::sample::select(PARTS), 0..40),
    ) {
        let _ = Config::parse("tollgate.yaml", &parts.concat()).map_err(|mistakes| mistakes.to_string());
    }

    #[test]
    fn no_change_of_one_character_makes_the_reader_panic(at in 0..FULL.len(), with in any::<char>()) {
        let text: String = FULL.char_indices().map(|(index, char)| if index == at { with } else { char }).collect();
        let _ = Config::parse("tollgate.yaml", &text).map_err(|mistakes| mistakes.to_string());
    }
}

/// What files are made of, good and bad.
const PARTS: &[&str] = &[
    "token",
    "prefixes",
    "listen",
    "grpc",
    "log",
    "level",
    "principal",
    "window_bounds",
    "callers",
    "metadata",
    ": ",
    ":",
    "\n",
    "\r",
    "\n  ",
    "\n    ",
    "\t",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ", ",
    "\"",
    "'",
    "#",
    "&a ",
    "*a",
    "!!int ",
    "| ",
    ">",
    "? ",
    "<<",
    "---\n",
    "5",
    "off",
    "true",
    "~",
    "é",
    "詳",
    "\u{202e}",
    "\0",
    "\u{feff}",
    "\u{85}",
    "\u{2028}",
    "a..b",
];
