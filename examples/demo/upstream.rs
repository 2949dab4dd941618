//! A toy application behind Envoy: it answers every request with 200, "ok" and what it was asked, and counts. Needs the
//! sibling module `http`.
#![allow(dead_code, reason = "the demo and the tests use a part each")]

use super::http;
use std::io::{self, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Serves until the process ends.
pub struct Upstream {
    address: SocketAddr,
    requests: Arc<AtomicUsize>,
}

impl Upstream {
    /// Starts on a free port of `host`, an IP address.
    pub fn start(host: &str) -> Result<Self, String> {
        let failed = |error| format!("the toy upstream cannot listen on {host}: {error}");
        let listener = TcpListener::bind((host, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let requests = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&requests);
        thread::spawn(move || accept(&listener, &counter));
        Ok(Self { address, requests })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// How many requests reached it.
    pub fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

fn accept(listener: &TcpListener, requests: &Arc<AtomicUsize>) {
    for stream in listener.incoming().flatten() {
        let requests = Arc::clone(requests);
        thread::spawn(move || serve(&stream, &requests));
    }
}

/// Answers on one connection until the other side leaves.
fn serve(stream: &TcpStream, requests: &AtomicUsize) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let request = http::line(&mut reader)?;
        let headers = http::headers(&mut reader)?;
        http::body(&mut reader, &headers)?;
        requests.fetch_add(1, Ordering::SeqCst);
        let mut writer = stream;
        writer.write_all(answer(&request, &headers).as_bytes())?;
    }
}

/// The whole answer. A gRPC call succeeds with no message: its status is a header, which ends it ("Trailers-Only").
fn answer(request: &str, headers: &[(String, String)]) -> String {
    let asked = request.strip_suffix(" HTTP/1.1").unwrap_or(request);
    let grpc = headers.iter().any(|(name, value)| name == "content-type" && value.starts_with("application/grpc"));
    let (fields, body) = match grpc {
        true => ("content-type: application/grpc\r\ngrpc-status: 0", String::new()),
        false => ("content-type: text/plain", format!("ok {asked}\n")),
    };
    let sent = if asked.starts_with("HEAD ") { "" } else { &body };
    format!("HTTP/1.1 200 OK\r\n{fields}\r\ncontent-length: {}\r\n\r\n{sent}", body.len())
}
