//! The plain server: tonic and envoy-types, the message decoded whole, a constant answer, the system's allocator.

use envoy_types::ext_authz::v3::CheckResponseExt;
use envoy_types::ext_authz::v3::pb::{Authorization, AuthorizationServer, CheckRequest, CheckResponse};
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status};

/// The argument that makes this program the plain server.
pub const ARGUMENT: &str = "plain-server";

struct Allow;

#[tonic::async_trait]
impl Authorization for Allow {
    async fn check(&self, request: Request<CheckRequest>) -> Result<Response<CheckResponse>, Status> {
        std::hint::black_box(request.get_ref());
        Ok(Response::new(CheckResponse::with_status(Status::ok(""))))
    }
}

/// Serves on a free port of loopback, which it logs as Tollgate does, until the process is stopped.
pub async fn serve() -> Result<(), String> {
    let incoming = TcpIncoming::bind(([127, 0, 0, 1], 0).into()).map_err(|error| format!("cannot listen: {error}"))?;
    let address = incoming.local_addr().map_err(|error| format!("no address: {error}"))?;
    eprintln!(r#"{{"message":"listening","address":"{address}"}}"#);
    let served =
        Server::builder().serve_with_incoming(AuthorizationServer::new(Allow), incoming.with_nodelay(Some(true)));
    served.await.map_err(|error| format!("the plain server ended: {error}"))
}
