//! A toy application behind Envoy: it answers every request with 200, "ok" and what it was asked, or as it is told, and
//! counts. Needs the sibling module `http`.
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

/// What is asked: the request line without the protocol, the headers and the body.
pub struct Asked {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

/// Makes the whole answer to what is asked, as it goes on the wire.
type Answering = dyn Fn(&Asked) -> String + Send + Sync;

impl Upstream {
    /// Starts on a free port of `host`, an IP address.
    pub fn start(host: &str) -> Result<Self, String> {
        Self::answering(host, answer)
    }

    /// The same, with answers of one's own.
    pub fn answering(host: &str, answer: impl Fn(&Asked) -> String + Send + Sync + 'static) -> Result<Self, String> {
        let failed = |error| format!("the toy upstream cannot listen on {host}: {error}");
        let listener = TcpListener::bind((host, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let requests = Arc::new(AtomicUsize::new(0));
        let (counter, answer): (_, Arc<Answering>) = (Arc::clone(&requests), Arc::new(answer));
        thread::spawn(move || accept(&listener, &counter, &answer));
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

fn accept(listener: &TcpListener, requests: &Arc<AtomicUsize>, answer: &Arc<Answering>) {
    for stream in listener.incoming().flatten() {
        let (requests, answer) = (Arc::clone(requests), Arc::clone(answer));
        thread::spawn(move || serve(&stream, &requests, &*answer));
    }
}

/// Answers on one connection until the other side leaves.
fn serve(stream: &TcpStream, requests: &AtomicUsize, answer: &Answering) -> io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let line = http::line(&mut reader)?;
        let line = line.strip_suffix(" HTTP/1.1").unwrap_or(&line).to_owned();
        let headers = http::headers(&mut reader)?;
        let body = http::body(&mut reader, &headers)?;
        requests.fetch_add(1, Ordering::SeqCst);
        let mut writer = stream;
        writer.write_all(answer(&Asked { line, headers, body }).as_bytes())?;
    }
}

/// A gRPC call succeeds with no message: its status is a header, which ends it ("Trailers-Only").
fn answer(Asked { line, headers, .. }: &Asked) -> String {
    let grpc = headers.iter().any(|(name, value)| name == "content-type" && value.starts_with("application/grpc"));
    let (fields, body) = match grpc {
        true => ("content-type: application/grpc\r\ngrpc-status: 0", String::new()),
        false => ("content-type: text/plain", format!("ok {line}\n")),
    };
    let sent = if line.starts_with("HEAD ") { "" } else { &body };
    format!("HTTP/1.1 200 OK\r\n{fields}\r\ncontent-length: {}\r\n\r\n{sent}", body.len())
}
