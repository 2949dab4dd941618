//! `tollgate health`: asks a running service whether it serves, for health checks in an image without a shell.

use super::Failure;
use super::service::Service;
use crate::config::ListenAddress;
use crate::rate;
use crate::server::services::AUTHORIZATION;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, Uri, header};
use prost::Message;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

/// Ask a running service whether it serves: exits 0 if it does
///
/// Asks the gRPC health service on the port that `serve` listens on with the same options; where that is a port of
/// every network, on loopback. For container health checks: it needs no shell and no other program.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    service: Service,
    /// How long the answer may take in all, such as 500ms or 2s
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = parse_timeout)]
    timeout: Duration,
}

/// Why a service is not known to serve.
#[derive(Debug, thiserror::Error)]
enum Unhealthy {
    #[error("cannot connect: {0}")]
    Unreachable(#[from] io::Error),
    #[error("no answer in HTTP/2: {0}")]
    Broken(#[from] h2::Error),
    #[error("no answer within {0:?}")]
    Late(Duration),
    #[error("no health service answers there: HTTP status {}, gRPC status {grpc}", .http.as_u16())]
    Refused { http: StatusCode, grpc: String },
    #[error("the answer cannot be read")]
    Unreadable,
    #[error("it says {}", .0.as_str_name())]
    NotServing(ServingStatus),
}

/// Asks once, and succeeds if the answer is SERVING.
pub fn run(arguments: Arguments) -> Result<(), Failure> {
    let address = reachable(arguments.service.load()?.listen.grpc);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let asked = runtime.map_err(|error| Failure::io(&error))?.block_on(async {
        let asked = tokio::time::timeout(arguments.timeout, ask(&address)).await;
        asked.unwrap_or(Err(Unhealthy::Late(arguments.timeout)))
    });
    asked.map_err(|cause| Failure {
        code: 1,
        message: format!("{address}: {cause}"),
        hint: Some("run `tollgate serve` with this configuration and address, and see its log".to_owned()),
    })
}

/// A listener of every network is asked on loopback.
fn reachable(listen: ListenAddress) -> ListenAddress {
    match listen {
        ListenAddress::Tcp(address) if address.ip().is_unspecified() => {
            let loopback = match address.ip() {
                IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            };
            ListenAddress::Tcp(SocketAddr::new(loopback, address.port()))
        }
        other => other,
    }
}

async fn ask(address: &ListenAddress) -> Result<(), Unhealthy> {
    let status = match address {
        ListenAddress::Tcp(address) => status_over(TcpStream::connect(address).await?).await?,
        ListenAddress::Unix(path) => status_over(UnixStream::connect(path).await?).await?,
    };
    if status == ServingStatus::Serving { Ok(()) } else { Err(Unhealthy::NotServing(status)) }
}

async fn status_over(stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) -> Result<ServingStatus, Unhealthy> {
    let (requests, connection) = h2::client::handshake(stream).await?;
    tokio::spawn(connection);
    let (response, mut sent) = requests.ready().await?.send_request(request(), false)?;
    sent.send_data(question(), true)?;
    let (head, mut body) = response.await?.into_parts();
    let mut answer = Vec::new();
    // The connection's window is never widened, so no server can make this long.
    while let Some(data) = body.data().await {
        answer.extend_from_slice(&data?);
    }
    let trailers = body.trailers().await?.unwrap_or_default();
    require_success(head.status, &head.headers, &trailers)?;
    read(&answer).ok_or(Unhealthy::Unreadable)
}

fn request() -> Request<()> {
    let mut request = Request::new(());
    *request.method_mut() = Method::POST;
    *request.uri_mut() = Uri::from_static("http://tollgate/grpc.health.v1.Health/Check");
    request.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    request.headers_mut().insert(header::TE, HeaderValue::from_static("trailers"));
    request
}

/// The message, after a byte for no compression and four for its length.
fn question() -> Bytes {
    let message = HealthCheckRequest { service: AUTHORIZATION.to_owned() }.encode_to_vec();
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes(), &message].concat().into()
}

/// The gRPC status is a trailer, or a header where there is no message.
fn require_success(http: StatusCode, headers: &HeaderMap, trailers: &HeaderMap) -> Result<(), Unhealthy> {
    let grpc = trailers.get("grpc-status").or_else(|| headers.get("grpc-status"));
    let grpc = grpc.map_or("none".into(), |status| String::from_utf8_lossy(status.as_bytes()).into_owned());
    if http == StatusCode::OK && grpc == "0" { Ok(()) } else { Err(Unhealthy::Refused { http, grpc }) }
}

fn read(answer: &[u8]) -> Option<ServingStatus> {
    HealthCheckResponse::decode(answer.get(5..)?).ok().map(|response| response.status())
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    let nanoseconds = rate::parse_duration(text.as_bytes()).filter(|nanoseconds| *nanoseconds > 0);
    nanoseconds.map(Duration::from_nanos).ok_or_else(|| "not a duration; write one such as 500ms or 2s".to_owned())
}
