//! The HTTP side for operators: metrics and health. Nothing here changes anything or names a caller.

use crate::server::listener::{Listener, Socket};
use crate::server::status::Status;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::AbortHandle;

/// How long a client may take to send its headers, and a connection may last.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(30);

/// Connections at once.
const CONNECTIONS: usize = 64;

/// <https://prometheus.io/docs/instrumenting/exposition_formats>
const METRICS: &str = "text/plain; version=0.0.4; charset=utf-8";
const TEXT: &str = "text/plain; charset=utf-8";

/// What is served.
pub struct Pages {
    pub registry: Registry,
    pub status: Status,
}

/// Serves until the listener is of no use.
pub async fn serve(listener: &Listener, pages: &Arc<Pages>) -> io::Error {
    let mut open = VecDeque::<AbortHandle>::new();
    let mut take = |socket| {
        open.retain(|connection| !connection.is_finished());
        // One too many takes the place of the oldest, so that no number of idle ones keeps a probe out.
        if open.len() >= CONNECTIONS {
            open.pop_front().iter().for_each(AbortHandle::abort);
        }
        let pages = Arc::clone(pages);
        // A connection's own error is its client's.
        let speaking = tokio::spawn(tokio::time::timeout(LONGEST, connection(socket, pages)));
        open.push_back(speaking.abort_handle());
    };
    listener.accept_all(&mut take).await
}

async fn connection(socket: Socket, pages: Arc<Pages>) -> io::Result<()> {
    match socket {
        Socket::Tcp(stream) => speak(tokio::net::TcpStream::from_std(stream)?, pages).await,
        Socket::Unix(stream) => speak(tokio::net::UnixStream::from_std(stream)?, pages).await,
    }
}

async fn speak(stream: impl AsyncRead + AsyncWrite + Unpin, pages: Arc<Pages>) -> io::Result<()> {
    let answer = service_fn(move |request: Request<Incoming>| {
        let answer = pages.answer(request.method(), request.uri().path());
        async move { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    http.keep_alive(false).timer(TokioTimer::new()).header_read_timeout(PATIENCE);
    http.serve_connection(TokioIo::new(stream), answer).await.map_err(io::Error::other)
}

impl Pages {
    /// The answer to a request.
    fn answer(&self, method: &Method, path: &str) -> Response<Full<Bytes>> {
        if method != Method::GET && method != Method::HEAD {
            let mut page = page(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here\n");
            page.headers_mut().insert(header::ALLOW, HeaderValue::from_static("GET, HEAD"));
            return page;
        }
        match path {
            "/metrics" => self.metrics(),
            "/livez" => page(StatusCode::OK, "ok\n"),
            "/readyz" if self.status.is_ready() => page(StatusCode::OK, "ok\n"),
            "/readyz" => page(StatusCode::SERVICE_UNAVAILABLE, "stopping\n"),
            _ => page(StatusCode::NOT_FOUND, "here are /metrics, /livez and /readyz\n"),
        }
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let mut text = String::new();
        match prometheus_text::encode(&mut text, &self.registry) {
            Ok(()) => typed(StatusCode::OK, METRICS, text.into()),
            Err(_) => page(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n"),
        }
    }
}

fn page(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    typed(status, TEXT, Bytes::from_static(text.as_bytes()))
}

fn typed(status: StatusCode, kind: &'static str, text: Bytes) -> Response<Full<Bytes>> {
    let mut page = Response::new(Full::new(text));
    *page.status_mut() = status;
    page.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    page
}
