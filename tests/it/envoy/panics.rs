//! A panic in one Check: that Check is an error, and no other is harmed.

use super::checks::{check, hold, verdict};
use super::wire::Http2;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use tokio::runtime::Builder;
use tokio::sync::oneshot;
use tollgate::config::Config;
use tollgate::envoy::ext_authz::ExtAuthz;
use tollgate::reload::{Hash, Live};
use tollgate::server::scrape::registry;
use tollgate::server::status::Status;
use tollgate::server::{self, Ends, Listeners, Stop};
use tollgate::{Clock, Now};

/// A clock that stands still, and panics when it is next asked by a worker after it was armed.
#[derive(Default)]
struct Trap {
    armed: AtomicBool,
}

impl Clock for Trap {
    fn now(&self) -> Now {
        let worker = thread::current().name().is_some_and(|name| name.starts_with("worker-"));
        assert!(!(worker && self.armed.swap(false, Ordering::SeqCst)), "the trap of a test");
        Now::after(std::time::Duration::ZERO)
    }
}

#[test]
fn a_panic_ends_one_check_and_no_other() {
    const INTERNAL: &str = "13";
    let trap = Arc::new(Trap::default());
    let (address, live, stop, served) = serve(Arc::clone(&trap));
    let rate = "prefix:rate:2/24h";
    let mut connection = Http2::connect(&address);
    let mut other = Http2::connect(&address);
    assert_eq!(verdict(&check(&mut connection, "alice", rate)), 200);
    let held = hold(&mut connection, "bob", rate);

    trap.armed.store(true, Ordering::SeqCst);
    let failed = check(&mut connection, "alice", rate);
    assert_eq!((failed.status, failed.field("grpc-status")), (200, Some(INTERNAL)), "{failed:?}");
    assert!(failed.body.is_empty(), "no CheckResponse, least of all an empty one, which allows: {failed:?}");
    assert!(!trap.armed.load(Ordering::SeqCst));

    assert_eq!(verdict(&held.finish(&mut connection)), 200, "the one in flight");
    // The failed Check spent nothing.
    let after = [&mut connection, &mut other].map(|connection| verdict(&check(connection, "alice", rate)));
    assert_eq!(after, [200, 429], "the same caller, on this connection and another");
    let mut scrape = String::new();
    prometheus_client::encoding::prometheus_text::encode(&mut scrape, &registry(&live, Status::default())).unwrap();
    assert!(scrape.contains("tollgate_check_errors_total{kind=\"panic\"} 1\n"), "{scrape}");
    drop((connection, other));
    stop.send(()).unwrap();
    served.join().unwrap();
}

/// Serves in this process until told to stop.
fn serve(clock: Arc<Trap>) -> (String, Arc<Live>, oneshot::Sender<()>, thread::JoinHandle<()>) {
    let (bound, bound_to) = mpsc::channel();
    let (stop, stopped) = oneshot::channel();
    let served = thread::spawn(move || {
        let Ok(config) = Config::parse("test", super::mesh::PLAIN) else { panic!("a good configuration") };
        let ends = Ends { max_connection_age: config.listen.max_connection_age, shutdown: config.shutdown };
        let address = config.listen.grpc.clone();
        let live = Arc::new(Live::new(ExtAuthz::new(config, clock), Hash::of(b"")));
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let grpc = server::bind(&address).await.unwrap();
            bound.send((grpc.address().to_string(), Arc::clone(&live))).unwrap();
            let listeners = Listeners { grpc, metrics: None };
            let stop = async { stopped.await.map(|()| Stop::Now).unwrap() };
            server::run(listeners, live, ends, stop).await.unwrap();
        });
    });
    let (address, live) = bound_to.recv().unwrap();
    (address, live, stop, served)
}
