//! The load: gRPC calls over h2c connections, so many at a time on each, and what they cost.
#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use crate::child::PATIENCE;
use crate::message;
use crate::server::{Server, cpu};
use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use http::{Method, Request, header};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// No window update is ever due: the window is the largest that HTTP/2 has.
const WINDOW: u32 = (1 << 31) - 1;

/// How many calls are in flight.
#[derive(Clone, Copy)]
pub struct Shape {
    pub connections: usize,
    pub streams: usize,
}

/// Open connections to one server.
pub struct Load {
    connections: Vec<SendRequest<Bytes>>,
    streams: usize,
    process: u32,
}

/// One round: its calls and the CPU time that they took.
pub struct Round {
    calls: usize,
    time: Duration,
    server: Duration,
    loader: Duration,
}

impl Load {
    pub async fn connect(server: &Server, shape: Shape) -> Self {
        let mut connections = Vec::new();
        for _ in 0..shape.connections {
            connections.push(connect(server.address).await);
        }
        Self { connections, streams: shape.streams, process: server.process }
    }

    /// Calls until `time` is over. Every answer is asserted to have arrived, with the status OK.
    pub async fn run(&self, time: Duration) -> Round {
        let loader = std::process::id();
        let (start, server_before, loader_before) = (Instant::now(), cpu(self.process), cpu(loader));
        let calls = timeout(time + PATIENCE, self.calls(start + time)).await.expect("every call is answered in time");
        let (server, loader) = (cpu(self.process) - server_before, cpu(loader) - loader_before);
        Round { calls, time: start.elapsed(), server, loader }
    }

    async fn calls(&self, end: Instant) -> usize {
        let mut streams = JoinSet::new();
        for connection in &self.connections {
            for _ in 0..self.streams {
                streams.spawn(call_until(connection.clone(), end));
            }
        }
        streams.join_all().await.into_iter().sum()
    }
}

impl Round {
    /// Microseconds of the server's CPU time a call.
    pub fn server_micros(&self) -> f64 {
        self.server.as_secs_f64() * 1e6 / self.calls as f64
    }

    /// Microseconds of this process's CPU time a call.
    pub fn loader_micros(&self) -> f64 {
        self.loader.as_secs_f64() * 1e6 / self.calls as f64
    }

    /// Calls a second.
    pub fn per_second(&self) -> f64 {
        self.calls as f64 / self.time.as_secs_f64()
    }
}

/// An HTTP/2 connection in the clear, with prior knowledge, served beside its calls.
pub async fn connect(address: SocketAddr) -> SendRequest<Bytes> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut builder = Builder::new();
    builder.initial_window_size(WINDOW).initial_connection_window_size(WINDOW);
    let (requests, connection) = builder.handshake(stream).await.unwrap();
    tokio::spawn(connection);
    requests
}

async fn call_until(mut connection: SendRequest<Bytes>, end: Instant) -> usize {
    let message = message::captured();
    let mut calls = 0;
    while Instant::now() < end {
        connection = connection.ready().await.unwrap();
        call(&mut connection, message.clone()).await;
        calls += 1;
    }
    calls
}

/// Sends one framed message, and gives the framed answer.
pub async fn call(connection: &mut SendRequest<Bytes>, message: Bytes) -> Bytes {
    let (answer, mut request) = connection.send_request(head(), false).unwrap();
    request.send_data(message, true).unwrap();
    let mut body = answer.await.unwrap().into_body();
    let mut answer = Bytes::new();
    while let Some(chunk) = body.data().await {
        assert!(answer.is_empty(), "the answer came in pieces");
        answer = chunk.unwrap();
        body.flow_control().release_capacity(answer.len()).unwrap();
    }
    let trailers = body.trailers().await.unwrap();
    let status = trailers.as_ref().and_then(|trailers| trailers.get("grpc-status"));
    assert_eq!(status.map(|status| status.as_bytes()), Some(b"0".as_slice()), "a call failed: {trailers:?}");
    answer
}

fn head() -> Request<()> {
    Request::builder()
        .method(Method::POST)
        .uri("http://tollgate/envoy.service.auth.v3.Authorization/Check")
        .header(header::TE, "trailers")
        .header(header::CONTENT_TYPE, "application/grpc")
        .body(())
        .unwrap()
}
