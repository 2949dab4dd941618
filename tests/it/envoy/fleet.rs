//! Two Tollgates behind one Envoy: one that stops, or is gone, costs no request and changes no answer.

use super::child::wait_until;
use super::http::Client;
use super::mesh::{Mesh, PLAIN, must, program};
use super::process::Tollgate;
use super::stops::logged;
use serde_json::json;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

const CALLERS: usize = 200;

/// The value of the authorization header, if there is one, and the status of the answer.
type Case = (Option<String>, u16);

/// Two that Envoy calls.
type Fleet = Mesh<[Tollgate; 2]>;

/// Each of the two is restarted twice, the other serving meanwhile.
#[test]
fn a_rolling_restart_costs_no_request() {
    let mut fleet = fleet(["127.0.0.9:0", "127.0.0.10:0"], &[]);
    let (edge, cases, done) = (fleet.edge, cases(&fleet), &AtomicBool::new(false));
    let (rolled, counts) = thread::scope(|scope| {
        let spawn = |case| scope.spawn(move || call_until(done, edge, case));
        let callers: Vec<_> = cases.iter().cycle().take(CALLERS).map(spawn).collect();
        let rolled = [0, 1, 0, 1].into_iter().try_for_each(|number| restart(&mut fleet, number));
        done.store(true, Ordering::SeqCst);
        let mut counts = [0; 4];
        for (number, caller) in callers.into_iter().enumerate() {
            counts[number % cases.len()] += must(caller.join().unwrap());
        }
        (rolled, counts)
    });
    must(rolled);
    assert!(counts.iter().all(|&count| count >= CALLERS), "{counts:?}");
    assert_eq!(fleet.upstream.requests(), counts[0], "what was allowed, and nothing else, went further");
}

/// Before any health check says so: a request that finds nobody at an address is tried again, at the other.
#[test]
fn a_tollgate_that_is_gone_costs_no_request() {
    let unaware =
        ("- interval: 1s\n      no_traffic_interval: 1s", "- interval: 600s\n      no_traffic_interval: 600s");
    let mut fleet = fleet(["127.0.0.11:0", "127.0.0.12:0"], &[unaware]);
    let (edge, cases) = (fleet.edge, cases(&fleet));
    must(fleet.tollgate[0].signal("KILL"));
    must(fleet.tollgate[0].wait());
    thread::scope(|scope| {
        let spawn = |case| scope.spawn(move || call(&mut Client::connect(edge)?, case));
        let callers: Vec<_> = cases.iter().cycle().take(CALLERS).map(spawn).collect();
        for caller in callers {
            must(caller.join().unwrap());
        }
    });
    let failed = [0, 1].map(|number| must(stat::<u64>(&fleet, number, "cx_connect_fail")));
    assert!(failed[0] > 0 && failed[1] == 0, "{failed:?}");
}

/// The addresses are loopback ones that no other test uses: a port stays free while its Tollgate is restarted.
fn fleet(listen: [&str; 2], patches: &[(&str, &str)]) -> Fleet {
    let tollgate = listen.map(|listen| must(start(listen)));
    let addresses = [0, 1].map(|number: usize| tollgate[number].address().to_owned());
    Mesh::around(tollgate, &addresses.each_ref().map(String::as_str), "127.0.0.1", patches)
}

/// The delay is long enough for Envoy's health checks, which are a second apart, on a machine that stands still in between.
fn start(listen: &str) -> Result<Tollgate, String> {
    let yaml = format!("{}shutdown: {{ delay: 8s }}\n", PLAIN.replace("127.0.0.1:0", listen));
    Tollgate::start(program(), &[], &yaml)
}

/// Stops one by SIGTERM and starts it again on its port. It is sent requests before and after.
fn restart(fleet: &mut Fleet, number: usize) -> Result<(), String> {
    until_served(fleet, number)?;
    fleet.tollgate[number].signal("TERM")?;
    wait_until("Envoy finds it NOT_SERVING", || {
        let flags: String = stat(fleet, number, "health_flags")?;
        Ok(flags.contains("/failed_active_hc").then_some(()))
    })?;
    let tollgate = &mut fleet.tollgate[number];
    let in_time = !logged(tollgate, "draining");
    let status = tollgate.wait()?;
    if !in_time || logged(tollgate, "cut off") || !status.success() {
        return Err(format!("{status}; NOT_SERVING found in time: {in_time}; {:?}", tollgate.log().last()));
    }
    *tollgate = start(tollgate.address())?;
    until_served(fleet, number)
}

/// Waits until Envoy has sent it more requests.
fn until_served(fleet: &Fleet, number: usize) -> Result<(), String> {
    let sent = || stat::<u64>(fleet, number, "rq_total");
    let before = sent()?;
    wait_until("Envoy sends it requests", || Ok((sent()? > before).then_some(())))
}

fn stat<T: FromStr>(fleet: &Fleet, number: usize, name: &str) -> Result<T, String> {
    fleet.envoy.stat(fleet.tollgate[number].address(), name)
}

/// Answers that depend on the request alone, whichever Tollgate gives them.
fn cases(fleet: &Fleet) -> [Case; 4] {
    let bearer = |claims| Some(format!("Bearer {}", fleet.sign(claims)));
    [
        (bearer(json!({ "sub": "alice" })), 200),
        (bearer(json!({ "sub": "bob", "capabilities": 7 })), 403),
        (bearer(json!({ "sub": "carol", "capabilities": ["prefix:rate:fast"] })), 429),
        (None, 401),
    ]
}

/// Sends requests on one connection, and counts them; the first that fails or is answered wrongly is the last.
fn call_until(done: &AtomicBool, edge: SocketAddr, case: &Case) -> Result<usize, String> {
    let mut client = Client::connect(edge)?;
    let mut count = 0;
    while !done.load(Ordering::SeqCst) {
        call(&mut client, case)?;
        count += 1;
    }
    Ok(count)
}

fn call(client: &mut Client, (authorization, status): &Case) -> Result<(), String> {
    let headers: Vec<(&str, &str)> = authorization.iter().map(|value| ("authorization", &**value)).collect();
    let answer = client.send("GET", "/", &headers)?;
    let right = answer.status == *status && answer.header("retry-after").is_none();
    if right { Ok(()) } else { Err(format!("{answer:?} in the place of {status}")) }
}
