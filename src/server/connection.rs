//! A connection in a worker's runtime, over whichever socket it came.

use crate::server::listener::Socket;
use crate::server::status::Opened;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};
use tokio::sync::watch;
use tonic::transport::server::Connected;

/// How long a client may take to send its preface.
const PATIENCE: Duration = Duration::from_secs(10);

/// RFC 9113, section 3.4.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// A connection to a client.
pub struct Connection {
    stream: Stream,
    handshake: Option<Handshake>,
    _opened: Opened,
}

enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A client that has not sent the whole preface. The HTTP stack waits for it without end and cannot send it a GOAWAY,
/// so a client that says nothing, a port check for one, would hold up every stop: its stream ends here instead.
struct Handshake {
    /// Bytes of the preface that are still to come.
    left: usize,
    /// Done, and then gone, when they are waited for no longer.
    give_up: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Connection {
    /// Takes a socket into this runtime. `stopped` is closed when the process stops.
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    pub fn adopt(socket: Socket, opened: Opened, mut stopped: watch::Receiver<()>) -> io::Result<Self> {
        let stream = match socket {
            Socket::Tcp(stream) => TcpStream::from_std(stream).map(Stream::Tcp),
            Socket::Unix(stream) => UnixStream::from_std(stream).map(Stream::Unix),
        }?;
        let give_up = Box::pin(async move {
            let stop = async { while stopped.changed().await.is_ok() {} };
            let _ = tokio::time::timeout(PATIENCE, stop).await;
        });
        Ok(Self { stream, handshake: Some(Handshake { left: PREFACE.len(), give_up: Some(give_up) }), _opened: opened })
    }

    /// Counts `read` bytes of the preface.
    fn hear(&mut self, read: usize) {
        if let Some(handshake) = &mut self.handshake {
            handshake.left = handshake.left.saturating_sub(read);
            if handshake.left == 0 {
                self.handshake = None;
            }
        }
    }
}

impl Handshake {
    fn has_given_up(&mut self, cx: &mut Context<'_>) -> bool {
        if self.give_up.as_mut().is_some_and(|give_up| give_up.as_mut().poll(cx).is_ready()) {
            self.give_up = None;
        }
        self.give_up.is_none()
    }
}

impl Connected for Connection {
    type ConnectInfo = ();

    fn connect_info(&self) {}
}

/// Calls a method on whichever stream a connection has.
macro_rules! each {
    ($connection:expr, $method:ident($($argument:expr),*)) => {
        match &mut $connection.stream {
            Stream::Tcp(stream) => Pin::new(stream).$method($($argument),*),
            Stream::Unix(stream) => Pin::new(stream).$method($($argument),*),
        }
    };
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if let Some(handshake) = &mut self.handshake
            && handshake.has_given_up(cx)
        {
            return Poll::Ready(Ok(())); // To read nothing is to reach the end of the stream.
        }
        let before = buffer.filled().len();
        let read = each!(self, poll_read(cx, buffer));
        self.hear(buffer.filled().len() - before);
        read
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        each!(self, poll_write(cx, bytes))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        each!(self, poll_write_vectored(cx, slices))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_flush(cx))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        each!(self, poll_shutdown(cx))
    }
}
