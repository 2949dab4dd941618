//! Workers: threads that each serve the connections dealt to them on a runtime of their own.

use crate::server::connection::Connection;
use crate::server::listener::Socket;
use crate::server::services::{InFlight, Services};
use crate::server::status::{Opened, Status};
use std::io;
use std::num::NonZeroUsize;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::transport::Server;

/// How long a connection may be silent before it is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

/// How long there must be no request in flight, after the GOAWAYs, for connections that stay to be given up: long enough
/// for what was sent before a GOAWAY arrived.
const CALM: Duration = Duration::from_secs(1);

/// The most requests in flight on one connection. Envoy opens another connection for more; without a limit one
/// client could hold memory without end.
const STREAMS: u32 = 1024;

/// The running workers.
pub struct Workers {
    ended: mpsc::UnboundedReceiver<Ended>,
    in_flight: Vec<InFlight>,
}

/// What a worker says at its end.
struct Ended;

/// Says so when it is dropped, be it by a panic.
struct SayEnded(mpsc::UnboundedSender<Ended>);

/// Starts `count` workers that serve until `stopped` is closed, and gives the way to deal connections to them. A
/// connection that has reached `max_age` gets a GOAWAY.
///
/// # Errors
///
/// An I/O error, if a thread or a runtime cannot be made.
pub fn start(
    count: NonZeroUsize,
    services: &Services,
    max_age: Option<Duration>,
    stopped: &watch::Receiver<()>,
    status: &Status,
) -> io::Result<(impl FnMut(Socket) + use<>, Workers)> {
    let (ended, workers) = mpsc::unbounded_channel();
    let (counted, in_flight): (Vec<_>, Vec<_>) = (0..count.get()).map(|_| services.counted()).unzip();
    let spawn = |(number, services)| spawn(number, services, max_age, stopped.clone(), SayEnded(ended.clone()));
    let queues = counted.into_iter().enumerate().map(spawn).collect::<io::Result<Vec<_>>>()?;
    let (mut turn, connections) = ((0..count.get()).cycle(), status.connections.clone());
    let deal = move |socket| {
        // A worker is only gone when the process stops; a connection dealt to it is closed.
        let _ = turn.next().map(|next| queues[next].send((socket, connections.open_one())));
    };
    Ok((deal, Workers { ended: workers, in_flight }))
}

fn spawn(
    number: usize,
    services: Services,
    max_age: Option<Duration>,
    stopped: watch::Receiver<()>,
    ended: SayEnded,
) -> io::Result<mpsc::UnboundedSender<(Socket, Opened)>> {
    let (queue, sockets) = mpsc::unbounded_channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name(format!("worker-{number}")).spawn(move || {
        let _ended = ended;
        runtime.block_on(serve(services, sockets, max_age, stopped));
    })?;
    Ok(queue)
}

/// Serves the connections of `sockets`. Once `stopped` is closed, each gets a GOAWAY and ends when its requests
/// in flight are answered.
async fn serve(
    services: Services,
    sockets: mpsc::UnboundedReceiver<(Socket, Opened)>,
    max_age: Option<Duration>,
    mut stopped: watch::Receiver<()>,
) {
    let patient = stopped.clone();
    let adopt = move |(socket, opened)| Connection::adopt(socket, opened, patient.clone());
    let connections = UnboundedReceiverStream::new(sockets).map(adopt);
    let stop = async move { while stopped.changed().await.is_ok() {} };
    let mut server = Server::builder();
    if let Some(max_age) = max_age {
        // Without a grace: tonic's is no time for requests in flight, it cuts them and sends no GOAWAY.
        server = server.max_connection_age(max_age);
    }
    let served = server
        .http2_keepalive_interval(Some(KEEPALIVE))
        .max_concurrent_streams(STREAMS)
        .serve_with_incoming_shutdown(services, connections, stop)
        .await;
    if let Err(error) = served {
        tracing::error!(%error, "a worker ended");
    }
}

impl Workers {
    /// Waits until some worker has ended.
    pub async fn one_ended(&mut self) {
        let _ = self.ended.recv().await;
    }

    /// Waits until every worker has ended, or has had no request in flight for a while. A worker ends when its
    /// connections do, and a client that does not answer the ping behind its GOAWAY never ends its own.
    pub async fn all_done(mut self) {
        let mut look = tokio::time::interval(CALM / 10);
        let mut calm = 0;
        while calm <= 10 {
            tokio::select! {
                ended = self.ended.recv() => if ended.is_none() { return },
                _ = look.tick() => calm = if self.in_flight() == 0 { calm + 1 } else { 0 },
            }
        }
    }

    /// Requests that are not answered yet.
    pub fn in_flight(&self) -> usize {
        self.in_flight.iter().map(InFlight::count).sum()
    }
}

impl Drop for SayEnded {
    fn drop(&mut self) {
        let _ = self.0.send(Ended);
    }
}
