//! What Envoy's access log does: it tells how each request ended that carries a reservation.

use bytes::Bytes;
use envoy_types::ext_authz::v3::pb::CheckResponse;
use envoy_types::pb::envoy::config::core::v3::Metadata;
use envoy_types::pb::envoy::data::accesslog::v3::{
    AccessLogCommon, AccessLogType, HttpAccessLogEntry, HttpResponseProperties,
};
use envoy_types::pb::envoy::service::accesslog::v3::StreamAccessLogsMessage;
use envoy_types::pb::envoy::service::accesslog::v3::stream_access_logs_message::{HttpAccessLogEntries, LogEntries};
use envoy_types::pb::google::protobuf::{Struct, UInt32Value, Value};
use h2::SendStream;
use h2::client::SendRequest;
use http::{Method, Request, header};
use prost::Message;

const PATH: &str = "http://tollgate/envoy.service.accesslog.v3.AccessLogService/StreamAccessLogs";

/// A stream of outcomes, open for as long as the run.
pub struct Log(SendStream<Bytes>);

impl Log {
    pub async fn open(connection: &mut SendRequest<Bytes>) -> Self {
        let request = Request::builder().method(Method::POST).uri(PATH);
        let request = request.header(header::CONTENT_TYPE, "application/grpc").header(header::TE, "trailers");
        *connection = connection.clone().ready().await.unwrap();
        let (_, stream) = connection.send_request(request.body(()).unwrap(), false).unwrap();
        Self(stream)
    }

    /// Tells that the request of `reservation` ended with this status.
    pub async fn tell(&mut self, reservation: Value, status: u32) {
        let framed = super::framed(&message(reservation, status));
        self.0.reserve_capacity(framed.len());
        while self.0.capacity() < framed.len() {
            std::future::poll_fn(|context| self.0.poll_capacity(context)).await.unwrap().unwrap();
        }
        self.0.send_data(framed, false).unwrap();
    }
}

/// The reservation in the answer to a Check, if there is one.
pub fn reservation(answer: &[u8]) -> Option<Value> {
    CheckResponse::decode(&answer[5..]).unwrap().dynamic_metadata?.fields.remove("reservation")
}

fn message(reservation: Value, status: u32) -> StreamAccessLogsMessage {
    let told = Struct { fields: [("reservation".to_owned(), reservation)].into() };
    let metadata =
        Metadata { filter_metadata: [("envoy.filters.http.ext_authz".to_owned(), told)].into(), ..Metadata::default() };
    let entry = HttpAccessLogEntry {
        common_properties: Some(AccessLogCommon {
            metadata: Some(metadata),
            access_log_type: AccessLogType::DownstreamEnd.into(),
            ..AccessLogCommon::default()
        }),
        response: Some(HttpResponseProperties {
            response_code: Some(UInt32Value { value: status }),
            ..HttpResponseProperties::default()
        }),
        ..HttpAccessLogEntry::default()
    };
    let entries = LogEntries::HttpLogs(HttpAccessLogEntries { log_entry: vec![entry] });
    StreamAccessLogsMessage { log_entries: Some(entries), ..StreamAccessLogsMessage::default() }
}
