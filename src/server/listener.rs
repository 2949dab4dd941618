//! The listening socket, TCP or Unix, and the connections that it accepts.

use crate::config::ListenAddress;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::net::{TcpListener, UnixListener};

/// The pause after an error of accepting, so that a shortage is not met by a busy loop.
const PAUSE: Duration = Duration::from_millis(50);

/// A socket that clients connect to. A Unix socket's file goes when it is dropped.
pub enum Listener {
    /// A TCP socket.
    Tcp(TcpListener, ListenAddress),
    /// A Unix socket. Its file comes first, so that it goes before the socket is closed.
    Unix(SocketFile, UnixListener),
}

/// The file of a Unix socket that this process made.
pub struct SocketFile {
    path: PathBuf,
    /// Tells the file from another that a later process put in its place.
    inode: u64,
}

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
                let listener = UnixListener::bind(path)?;
                Ok(Self::Unix(SocketFile { path: path.clone(), inode: std::fs::metadata(path)?.ino() }, listener))
            }
        }
    }

    /// The address that is bound; where the system chose the port, that port.
    pub fn address(&self) -> ListenAddress {
        match self {
            Self::Tcp(_, address) => address.clone(),
            Self::Unix(file, _) => ListenAddress::Unix(file.path.clone()),
        }
    }

    /// Hands every connection to `deal`. Ends only by an error that says the socket itself is of no use.
    pub async fn accept_all(&self, deal: &mut impl FnMut(Socket)) -> io::Error {
        loop {
            match self.accept().await {
                Ok(socket) => deal(socket),
                Err(error) if is_final(&error) => return error,
                // A connection's own error, or a shortage of files or memory, which passes.
                Err(error) => {
                    tracing::warn!(%error, "a connection could not be accepted");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    async fn accept(&self) -> io::Result<Socket> {
        match self {
            Self::Tcp(listener, _) => {
                let (stream, _) = listener.accept().await?;
                // It fails where the client has gone already, which shows soon enough.
                let _ = stream.set_nodelay(true);
                stream.into_std().map(Socket::Tcp)
            }
            Self::Unix(_, listener) => listener.accept().await?.0.into_std().map(Socket::Unix),
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if std::fs::metadata(&self.path).is_ok_and(|metadata| metadata.ino() == self.inode) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Removes the socket file of a process that is gone, where a connection is refused. Any other stays, and binding
/// reports it.
async fn remove_stale(path: &Path) -> io::Result<()> {
    let Ok(metadata) = std::fs::symlink_metadata(path) else { return Ok(()) };
    if !metadata.file_type().is_socket() {
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, "this file exists and is not a socket"));
    }
    let refused = |error: &io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if tokio::net::UnixStream::connect(path).await.is_err_and(|error| refused(&error)) {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

/// `accept(2)`: the descriptor is closed, is no socket, or does not listen.
fn is_final(error: &io::Error) -> bool {
    const EBADF: i32 = 9;
    const EINVAL: i32 = 22;
    const ENOTSOCK: i32 = 88;
    matches!(error.raw_os_error(), Some(EBADF | EINVAL | ENOTSOCK))
}
