//! What a claim can hold must not break out of the header line it is shown in.

use super::mesh::{Mesh, PLAIN, WARNING};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

#[test]
fn a_capability_with_quotes_and_controls_is_one_escaped_line() {
    let capability = "prefix:rate:a\"b\\c\r\nx-injected: 1\r\n\r\n<html>\0d\te\u{7f}ü€\u{85}";
    let expected =
        format!("{WARNING}: malformed; kind=rate; cap=\"prefix:rate:a\\\"b\\\\c  x-injected: 1    <html> d e ü€ \"");
    // Without `validate_mutations` Envoy sends a CR LF as it is, so that nothing but Tollgate stands in its way.
    for patches in [&[][..], &[("              validate_mutations: true\n", "")]] {
        let mesh = Mesh::patched(PLAIN, patches);
        let token = mesh.token("mallory", &[capability, "prefix:rate:1/24h"]);
        for status in ["HTTP/1.1 200 OK", "HTTP/1.1 429 Too Many Requests"] {
            let answer = raw_get(mesh.edge, &token);
            let (head, _) = answer.split_once("\r\n\r\n").unwrap();
            let mut lines = head.split("\r\n");
            assert_eq!(lines.next(), Some(status), "{answer:?}");
            let lines: Vec<&str> = lines.collect();
            assert!(!lines.iter().any(|line| line.contains(char::is_control)), "{lines:?}");
            let warnings: Vec<&&str> = lines.iter().filter(|line| line.starts_with(WARNING)).collect();
            assert_eq!(warnings, [&&*expected]);
            assert!(!lines.iter().any(|line| line.starts_with("x-injected")), "{lines:?}");
        }
    }
}

/// The answer as it came: the client of the other tests takes a lone LF for a line's end and trims values.
fn raw_get(edge: SocketAddr, token: &str) -> String {
    let mut stream = TcpStream::connect(edge).unwrap();
    let request = format!("GET / HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).unwrap();
    String::from_utf8(answer).unwrap()
}
