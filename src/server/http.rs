//! The HTTP side for operators: metrics and health. Nothing here changes anything or names a caller.

use crate::server::listener::{Listener, Socket};
use crate::server::status::Status;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use prometheus_client::encoding::prometheus_text;
use prometheus_client::registry::Registry;
use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;

/// How long a client may take to send its headers, and a connection may last.
const PATIENCE: Duration = Duration::from_secs(10);
const LONGEST: Duration = Duration::from_secs(30);

/// Connections at once.
const CONNECTIONS: usize = 64;

/// <https://prometheus.io/docs/instrumenting/exposition_formats>
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// What is served.
pub struct Pages {
    pub registry: Registry,
    pub status: Status,
}

/// Serves until the listener is of no use.
pub async fn serve(listener: &Listener, pages: &Arc<Pages>) -> io::Error {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    let mut take = |socket| {
        // One too many is closed at once.
        let Ok(place) = Arc::clone(&room).try_acquire_owned() else { return };
        let pages = Arc::clone(pages);
        tokio::spawn(async move {
            let _place = place;
            // A connection's own error is its client's.
            let _ = tokio::time::timeout(LONGEST, connection(socket, pages)).await;
        });
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
            return page(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD are answered here\n".into());
        }
        match path {
            "/metrics" => self.metrics(),
            "/livez" => page(StatusCode::OK, "ok\n".into()),
            "/readyz" if self.status.is_ready() => page(StatusCode::OK, "ok\n".into()),
            "/readyz" => page(StatusCode::SERVICE_UNAVAILABLE, "stopping\n".into()),
            _ => page(StatusCode::NOT_FOUND, "here are /metrics, /livez and /readyz\n".into()),
        }
    }

    fn metrics(&self) -> Response<Full<Bytes>> {
        let mut text = String::new();
        match prometheus_text::encode(&mut text, &self.registry) {
            Ok(()) => page(StatusCode::OK, text),
            Err(_) => page(StatusCode::INTERNAL_SERVER_ERROR, "the metrics could not be written\n".into()),
        }
    }
}

fn page(status: StatusCode, text: String) -> Response<Full<Bytes>> {
    let mut page = Response::new(Full::new(Bytes::from(text)));
    *page.status_mut() = status;
    page.headers_mut().insert(http::header::CONTENT_TYPE, http::HeaderValue::from_static(TEXT));
    page
}
