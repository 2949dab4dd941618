//! The configuration file is followed while requests go on: however it is replaced, whole or not at all.

use super::child::{self, wait_until};
use super::http::{Answer, Client};
use super::mesh::{Mesh, PLAIN, must, program};
use super::process::Tollgate;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// How often a configuration was reloaded, or refused.
fn count(tollgate: &Tollgate, what: &str) -> usize {
    tollgate.log().iter().filter(|line| line.contains(what)).count()
}

const RELOADED: &str = "the configuration was reloaded";
const REFUSED: &str = "the configuration was not reloaded";

/// Changes the file, and waits until the log says that it was seen.
#[track_caller]
fn change(tollgate: &Tollgate, what: &str, change: impl FnOnce()) {
    let before = count(tollgate, what);
    change();
    let seen = || Ok((count(tollgate, what) > before).then_some(()));
    must(wait_until(what, seen));
}

fn replace(path: &Path, text: &str) {
    let next = path.with_extension("next");
    fs::write(&next, text).unwrap();
    fs::rename(next, path).unwrap();
}

fn denying(principal: &str) -> String {
    format!("{PLAIN}callers: {{ rules: [{{ when: {{ principal: {principal} }}, deny: closed }}] }}\n")
}

/// Who of three is denied.
fn denied(mesh: &Mesh) -> Vec<&'static str> {
    ["a", "b", "c"].into_iter().filter(|principal| mesh.get(&mesh.token(principal, &[])).status == 403).collect()
}

#[test]
fn a_file_is_followed_however_it_is_replaced() {
    let mesh = Mesh::start(&denying("a"));
    let (tollgate, path) = (&mesh.tollgate, mesh.tollgate.config().to_owned());
    assert_eq!(denied(&mesh), ["a"]);
    change(tollgate, RELOADED, || fs::write(&path, denying("b")).unwrap());
    assert_eq!(denied(&mesh), ["b"], "written in place");
    change(tollgate, RELOADED, || replace(&path, &denying("c")));
    assert_eq!(denied(&mesh), ["c"], "renamed over");
    // A bad file: the mistakes with their lines, and the earlier policy stays.
    change(tollgate, REFUSED, || replace(&path, &format!("{}\nlogs: {{}}\nmode: watch\n", denying("a"))));
    assert_eq!(denied(&mesh), ["c"]);
    let mistake = mesh.logged("the mistake", |record| record["hint"] == "did you mean `log`?");
    assert_eq!(
        (&mistake["line"], &mistake["message"]),
        (&json!(5), &json!("a mistake in the configuration: unknown key `logs` in the file"))
    );
    let summary = mesh.logged("the summary", |record| record["message"].as_str().unwrap().starts_with(REFUSED));
    assert!(summary["message"].as_str().unwrap().ends_with("tollgate.yaml: 2 mistakes"), "{summary}");
    // To whoever asks it is still bad.
    change(tollgate, "holds what was refused before", || must(tollgate.signal("HUP")));
    // One that is gone for a while is no change; neither is the same text again.
    fs::remove_file(&path).unwrap();
    let reloads = count(tollgate, RELOADED);
    change(tollgate, RELOADED, || replace(&path, &denying("b")));
    replace(&path, &denying("b"));
    change(tollgate, RELOADED, || replace(&path, &denying("a")));
    assert_eq!((denied(&mesh), count(tollgate, RELOADED)), (vec!["a"], reloads + 2));
}

/// A ConfigMap: the file is a link through a link that is swapped.
#[test]
fn a_config_map_is_followed() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().to_owned();
    let put = |number: u32, principal: &str| {
        let data = root.join(format!("..{number}"));
        fs::create_dir(&data).unwrap();
        fs::write(data.join("tollgate.yaml"), denying(principal)).unwrap();
        symlink(format!("..{number}"), root.join("..data_tmp")).unwrap();
        fs::rename(root.join("..data_tmp"), root.join("..data")).unwrap();
    };
    put(1, "a");
    symlink("..data/tollgate.yaml", root.join("tollgate.yaml")).unwrap();
    let tollgate = must(Tollgate::with(program(), &[], folder, root.join("tollgate.yaml")));
    let address = tollgate.address().to_owned();
    let mesh = Mesh::around(tollgate, &[&address], "127.0.0.1", &[]);
    assert_eq!(denied(&mesh), ["a"]);
    change(&mesh.tollgate, RELOADED, || put(2, "b"));
    assert_eq!(denied(&mesh), ["b"]);
}

/// Where the directory says nothing, a signal does; and without one the file is looked at now and then.
#[test]
fn where_the_directory_says_nothing_a_signal_or_the_time_does() {
    let (elsewhere, file) = must(child::folder("elsewhere", "real.yaml", &denying("a")));
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("tollgate.yaml");
    symlink(&file, &link).unwrap();
    let tollgate = must(Tollgate::with(program(), &[], folder, link));
    let address = tollgate.address().to_owned();
    let mesh = Mesh::around(tollgate, &[&address], "127.0.0.1", &[]);
    change(&mesh.tollgate, RELOADED, || {
        fs::write(&file, denying("b")).unwrap();
        must(mesh.tollgate.signal("HUP"));
    });
    assert_eq!(denied(&mesh), ["b"]);
    change(&mesh.tollgate, RELOADED, || fs::write(&file, denying("c")).unwrap());
    assert_eq!(denied(&mesh), ["c"]);
    // What it was told to read, it says; also that there is nothing.
    change(&mesh.tollgate, "holds what is live", || must(mesh.tollgate.signal("HUP")));
    // A directory in which much happens does not keep it from looking.
    let before = count(&mesh.tollgate, "cannot be read; the live configuration stays");
    drop(elsewhere);
    let seen = || {
        fs::write(mesh.tollgate.config().with_extension("noise"), "").unwrap();
        Ok((count(&mesh.tollgate, "cannot be read; the live configuration stays") > before).then_some(()))
    };
    must(wait_until("a look by the time", seen));
    change(&mesh.tollgate, "cannot be read; the live configuration stays", || must(mesh.tollgate.signal("HUP")));
    assert_eq!(denied(&mesh), ["c"]);
}

#[test]
fn what_needs_a_restart_is_said_and_the_log_level_does_not() {
    let mesh = Mesh::start(&denying("a"));
    let (tollgate, path) = (&mesh.tollgate, mesh.tollgate.config().to_owned());
    let other = denying("b").replace("127.0.0.1:0", "127.0.0.1:1");
    change(tollgate, "needs a restart", || {
        replace(&path, &format!("{other}shutdown: {{ delay: 1s }}\nlog: {{ level: debug, format: text }}\n"));
    });
    let record = mesh.logged("the sections", |record| record["sections"].is_string());
    assert_eq!(record["sections"], "listen, shutdown, log.format");
    assert_eq!(denied(&mesh), ["b"]);
    mesh.logged("a line of the new level", |record| record["level"] == "DEBUG" && record["principal"] == "a");
    replace(&path, &format!("{}log: {{ level: error }}\n", denying("c")));
    must(wait_until("the policy of before", || Ok((denied(&mesh) == ["c"]).then_some(()))));
    // Lines are written in their order: a mistake, which is an error, comes after what would be written of this request.
    mesh.get(&mesh.token("nobody-logs-me", &[]));
    change(tollgate, REFUSED, || replace(&path, "mode: watch"));
    assert_eq!(count(tollgate, "nobody-logs-me"), 0, "nothing is logged below the new level");
}

/// Two policies that differ in all that they send.
fn policy(name: &str) -> String {
    let (header, body, quotas) = match name {
        "one" => ("X-One", "json", "ietf-10"),
        _ => ("X-Two", "text", "x-ratelimit"),
    };
    format!(
        "{PLAIN}response: {{ warning_header: {header}, body: {body}, realm: {name}, ratelimit_headers: {quotas} }}\n\
         limits: [{{ name: {name}, key: [], rate: 1000000/24h, advertise: true }}]\n"
    )
}

/// The policies that an answer has something of.
fn policies(answer: &Answer) -> Vec<&'static str> {
    let has = |name: &str| answer.headers.iter().any(|(key, _)| key == name);
    let is = |name: &str, value: &str| answer.header(name).is_some_and(|found| found.contains(value));
    let one = [has("x-one"), has("ratelimit"), is("content-type", "json"), is("www-authenticate", "one")];
    let two = [
        has("x-two"),
        has("x-ratelimit-limit"),
        is("content-type", "text/plain; charset"),
        is("www-authenticate", "two"),
    ];
    let of = |found: &[bool]| found.contains(&true);
    [("one", of(&one)), ("two", of(&two))].into_iter().filter(|(_, of)| *of).map(|(name, _)| name).collect()
}

/// Ends a load when it goes.
struct End<'d>(&'d AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn no_answer_mixes_two_policies() {
    let mesh = Mesh::start(&policy("one"));
    let path = mesh.tollgate.config().to_owned();
    let bearer = format!("Bearer {}", mesh.token("alice", &["prefix:rate:fast", "prefix:rate:1000000/24h"]));
    let poor = format!("Bearer {}", mesh.token("bob", &["prefix:rate:fast"]));
    let done = &AtomicBool::new(false);
    let load = |bearer: Option<&str>, expected: u16, answers: &AtomicUsize| {
        let mut client = must(Client::connect(mesh.edge));
        let headers: Vec<_> = bearer.into_iter().map(|bearer| ("authorization", bearer)).collect();
        while !done.load(Ordering::SeqCst) {
            let answer = must(client.send("GET", "/", &headers));
            assert_eq!((answer.status, policies(&answer).len()), (expected, 1), "{answer:?}");
            answers.fetch_add(1, Ordering::SeqCst);
        }
    };
    let loads = [(Some(&*bearer), 200), (Some(&*poor), 429), (None, 401), (Some(&*bearer), 200)];
    let answers = loads.map(|_| AtomicUsize::new(0));
    thread::scope(|scope| {
        // Also where a check here fails.
        let _end = End(done);
        for ((bearer, status), answers) in loads.into_iter().zip(&answers) {
            let load = &load;
            scope.spawn(move || load(bearer, status, answers));
        }
        for turn in 0..20 {
            let name = ["two", "one"][turn % 2];
            change(&mesh.tollgate, RELOADED, || replace(&path, &policy(name)));
            // Once the log says so, there is nothing left of the other.
            let answer = mesh.send("GET", "/", &[("authorization", &bearer)]);
            assert_eq!(policies(&answer), [name], "{answer:?}");
        }
        let enough = || answers.iter().all(|answers| answers.load(Ordering::SeqCst) > 20);
        must(wait_until("answers for each", || Ok(enough().then_some(()))));
    });
    let hashes: Vec<Value> = mesh
        .tollgate
        .log()
        .iter()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok()?.get("hash").cloned())
        .collect();
    assert_eq!(hashes.len(), 20);
    assert!(hashes.iter().all(|hash| hashes.iter().filter(|other| *other == hash).count() == 10), "{hashes:?}");
}
