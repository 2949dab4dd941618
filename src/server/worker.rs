//! Workers: threads that each serve the connections dealt to them on a runtime of their own.

use crate::server::connection::Connection;
use crate::server::listener::Socket;
use crate::server::services::Services;
use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Server;

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
    let patient = stopped.clone();
    let adopt = move |socket| Connection::adopt(socket, patient.clone());
    let connections = UnboundedReceiverStream::new(sockets).map(adopt);
    let stop = async move { while stopped.changed().await.is_ok() {} };
    let served = Server::builder()
        .http2_keepalive_interval(Some(KEEPALIVE))
        .serve_with_incoming_shutdown(services, connections, stop)
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "a worker ended");
    }
}
