//! Workers: threads that each serve the connections dealt to them on a runtime of their own.

use crate::server::listener::Socket;
use crate::server::services::Services;
use std::io;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Server;
use tonic::transport::server::Connected;

/// How long a connection may be silent before it is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// A running worker: done once its connections are closed.
pub type Worker = oneshot::Receiver<()>;

/// Starts `count` workers that serve until `stopped` is closed, and gives the way to deal connections to them.
///
/// # Errors
///
/// An I/O error, if a thread or a runtime cannot be made.
pub fn start(
    count: NonZeroUsize,
    services: &Services,
    stopped: &watch::Receiver<()>,
) -> io::Result<(impl FnMut(Socket) + use<>, Vec<Worker>)> {
    let mut queues = Vec::new();
    let mut workers = Vec::new();
    for number in 0..count.get() {
        let (queue, sockets) = mpsc::unbounded_channel();
        let (ended, worker) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let serve = serve(services.clone(), sockets, stopped.clone());
        std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
            runtime.block_on(serve);
            let _ = ended.send(());
        })?;
        queues.push(queue);
        workers.push(worker);
    }
    let mut turn = (0..count.get()).cycle();
    let deal = move |socket| {
        // A worker only goes when the process stops; a connection dealt to one that is gone is closed.
        let _ = turn.next().map(|next| queues[next].send(socket));
    };
    Ok((deal, workers))
}

/// Waits until all `workers` have ended.
pub async fn join(workers: Vec<Worker>) {
    for worker in workers {
        let _ = worker.await;
    }
}

/// Serves the connections of `sockets`. Once `stopped` is closed, each gets a GOAWAY and ends when its requests
/// in flight are answered.
async fn serve(services: Services, sockets: mpsc::UnboundedReceiver<Socket>, mut stopped: watch::Receiver<()>) {
    let connections = UnboundedReceiverStream::new(sockets).map(Connection::adopt);
    let stop = async move { while stopped.changed().await.is_ok() {} };
    let served = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .serve_with_incoming_shutdown(services, connections, stop)
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "a worker ended");
    }
}

/// A connection in a worker's runtime.
enum Connection {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Connection {
    fn adopt(socket: Socket) -> io::Result<Self> {
        match socket {
            Socket::Tcp(stream) => TcpStream::from_std(stream).map(Self::Tcp),
            Socket::Unix(stream) => UnixStream::from_std(stream).map(Self::Unix),
        }
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

/// Calls a method on whichever stream a connection is.
macro_rules! each {
    ($connection:expr, $method:ident($($argument:expr),*)) => {
        match $connection.get_mut() {
            Connection::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            Connection::Unix(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_read(cx, buffer))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_flush(cx))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_shutdown(cx))
    }
}
