//! An HTTP/2 client that hides nothing: it holds a request half sent, and shows trailers and a GOAWAY.

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::{ResponseFuture, SendRequest};
use h2::{RecvStream, SendStream};
use http::{HeaderMap, Request};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::runtime::{Builder, Runtime};
use tokio::time::{sleep, timeout};

const PATIENCE: Duration = Duration::from_secs(20);

/// One connection. It lives while one of these methods runs.
pub struct Http2 {
    runtime: Runtime,
    requests: SendRequest<Bytes>,
}

/// A request whose body is not whole yet.
pub struct Pending {
    body: SendStream<Bytes>,
    response: ResponseFuture,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// `None` if the headers, or the body, were the end.
    pub trailers: Option<HeaderMap>,
}

impl Http2 {
    /// Connects to `host:port` or `unix:/path`.
    pub fn connect(address: &str) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let requests = runtime.block_on(within(async {
            match address.strip_prefix("unix:") {
                Some(path) => handshake(UnixStream::connect(path).await.unwrap()).await,
                None => handshake(TcpStream::connect(address).await.unwrap()).await,
            }
        }));
        Self { runtime, requests }
    }

    /// Sends the headers and `start` of the body.
    pub fn begin(&mut self, request: Request<()>, start: Bytes) -> Pending {
        self.open(request, start, false)
    }

    /// Sends a whole request.
    pub fn ask(&mut self, request: Request<()>, body: Bytes) -> Pending {
        self.open(request, body, true)
    }

    fn open(&mut self, request: Request<()>, start: Bytes, is_whole: bool) -> Pending {
        let requests = self.requests.clone();
        self.runtime.block_on(within(async {
            let (response, mut body) = requests.ready().await.unwrap().send_request(request, false).unwrap();
            body.send_data(start, is_whole).unwrap();
            Pending { body, response }
        }))
    }

    /// Sends the end of the body and reads the answer.
    pub fn finish(&mut self, mut pending: Pending, end: Bytes) -> Reply {
        self.runtime.block_on(async { pending.body.send_data(end, true).unwrap() });
        self.read(pending)
    }

    /// Reads the answer to its end.
    pub fn read(&mut self, pending: Pending) -> Reply {
        let Pending { body: _sent, response } = pending;
        self.runtime.block_on(within(async {
            let (head, mut body) = response.await.unwrap().into_parts();
            let mut whole = BytesMut::new();
            while let Some(data) = body.data().await {
                let data = data.unwrap();
                body.flow_control().release_capacity(data.len()).unwrap();
                whole.put(data);
            }
            let trailers = body.trailers().await.unwrap();
            Reply { status: head.status.as_u16(), headers: head.headers, body: whole.freeze(), trailers }
        }))
    }

    /// Reads the head of the answer; its body may go on.
    pub fn head(&mut self, pending: Pending) -> RecvStream {
        self.runtime.block_on(within(async { pending.response.await.unwrap().into_body() }))
    }

    /// The next piece of a body; nothing at its end.
    pub fn next(&mut self, body: &mut RecvStream) -> Option<Bytes> {
        self.runtime.block_on(within(async { body.data().await.map(Result::unwrap) }))
    }

    pub fn send(&mut self, request: Request<()>, body: Bytes) -> Reply {
        let pending = self.ask(request, body);
        self.read(pending)
    }

    /// Waits for the server's GOAWAY, which must be of the orderly kind.
    pub fn until_goaway(&mut self) {
        let requests = self.requests.clone();
        self.runtime.block_on(within(async {
            let error = loop {
                match requests.clone().ready().await {
                    Ok(_) => sleep(Duration::from_millis(2)).await,
                    Err(error) => break error,
                }
            };
            let orderly = error.is_go_away() && error.is_remote() && error.reason() == Some(h2::Reason::NO_ERROR);
            assert!(orderly, "not a GOAWAY with NO_ERROR: {error}");
        }));
    }
}

impl Reply {
    /// A header or a trailer.
    pub fn field(&self, name: &str) -> Option<&str> {
        let trailers = self.trailers.iter().flat_map(|trailers| trailers.get_all(name));
        self.headers.get_all(name).iter().chain(trailers).next().map(|value| value.to_str().unwrap())
    }

    /// The message of a gRPC answer.
    pub fn message(&self) -> Bytes {
        self.body.slice(5..)
    }
}

/// A gRPC call of `path`.
pub fn grpc(path: &str) -> Request<()> {
    let request = Request::post(format!("http://tollgate.test{path}"));
    request.header("content-type", "application/grpc").header("te", "trailers").body(()).unwrap()
}

/// The body of a gRPC call with one message.
pub fn framed(message: &[u8]) -> Bytes {
    let mut body = BytesMut::new();
    body.put_u8(0);
    body.put_u32(message.len().try_into().unwrap());
    body.put(message);
    body.freeze()
}

async fn handshake(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> SendRequest<Bytes> {
    let (requests, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    requests
}

async fn within<T>(act: impl Future<Output = T>) -> T {
    timeout(PATIENCE, act).await.expect("an answer in time")
}
