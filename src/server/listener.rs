//! The listening socket, TCP or Unix, and the connections that it accepts.

use crate::config::ListenAddress;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};

/// A socket that clients connect to. A Unix socket's file goes when it is dropped.
pub enum Listener {
    /// A TCP socket.
    Tcp(TcpListener, ListenAddress),
    /// A Unix socket.
    Unix(UnixListener, SocketFile),
}

/// The file of a Unix socket that this process made.
pub struct SocketFile(PathBuf);

/// A connection on its way to a worker.
pub enum Socket {
    /// A TCP connection.
    Tcp(std::net::TcpStream),
    /// A connection on a Unix socket.
    Unix(std::os::unix::net::UnixStream),
}

impl Listener {
    /// Binds `address`. The file of a Unix socket that nobody listens on any more is replaced.
    ///
    /// # Errors
    ///
    /// An I/O error of the system.
    pub async fn bind(address: &ListenAddress) -> io::Result<Self> {
        match address {
            ListenAddress::Tcp(address) => {
                let listener = TcpListener::bind(address).await?;
                let bound = ListenAddress::Tcp(listener.local_addr()?);
                Ok(Self::Tcp(listener, bound))
            }
            ListenAddress::Unix(path) => {
                remove_stale(path).await?;
                Ok(Self::Unix(UnixListener::bind(path)?, SocketFile(path.clone())))
            }
        }
    }

    /// The address that is bound; where the system chose the port, that port.
    pub fn address(&self) -> ListenAddress {
        match self {
            Self::Tcp(_, address) => address.clone(),
            Self::Unix(_, file) => ListenAddress::Unix(file.0.clone()),
        }
    }

    /// Hands every connection to `deal`, and ends only by an error that is not the connection's own.
    pub async fn accept_all(&self, mut deal: impl FnMut(Socket)) -> io::Error {
        loop {
            match self.accept().await {
                Ok(socket) => deal(socket),
                Err(error) if is_transient(&error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                Err(error) => return error,
            }
        }
    }

    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                stream.set_nodelay(true)?;
                stream.into_std().map(Socket::Tcp)
            }
            Self::Unix(listener, _) => listener.accept().await?.0.into_std().map(Socket::Unix),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Removes the socket file of a process that is gone. One that answers, or a file of another kind, stays, and
/// binding reports it.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|metadata| metadata.file_type().is_socket());
    if is_socket && tokio::net::UnixStream::connect(path).await.is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// Errors of one connection, or a shortage that passes: too many open files, or no memory.
fn is_transient(error: &io::Error) -> bool {
    const EMFILE: i32 = 24;
    const ENFILE: i32 = 23;
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::NotConnected
            | io::ErrorKind::OutOfMemory
    ) || matches!(error.raw_os_error(), Some(EMFILE | ENFILE))
}
