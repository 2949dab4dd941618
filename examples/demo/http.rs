//! A small HTTP/1.1 client: one connection, one request after another. It shows an answer as it was on the wire.
#![allow(dead_code, reason = "the demo and the tests use a part each")]

use std::io::{self, BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(10);

/// A kept connection to one server.
pub struct Client {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

/// What the server said.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    /// Names in lower case, in the order of the wire; a repeated name is there several times.
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    /// The first value of a header, its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// Every value of a header, its name in lower case.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        self.headers.iter().filter(move |(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

impl Client {
    pub fn connect(address: SocketAddr) -> Result<Self, String> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)
            .and_then(|stream| stream.set_read_timeout(Some(PATIENCE)).and(stream.set_nodelay(true)).map(|()| stream));
        let stream = stream.map_err(|error| format!("cannot connect to {address}: {error}"))?;
        Ok(Self { address, stream: BufReader::new(stream) })
    }

    /// Sends a request without a body and reads the answer, up to its end and no further.
    pub fn send(&mut self, method: &str, path: &str, headers: &[(&str, &str)]) -> Result<Answer, String> {
        self.send_body(method, path, headers, "")
    }

    /// Sends a request with a body, which `headers` announce, and reads the answer.
    pub fn send_body(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Answer, String> {
        let mut request = format!("{method} {path} HTTP/1.1\r\n");
        if headers.iter().all(|(name, _)| *name != "host") {
            request += &format!("host: {}\r\n", self.address);
        }
        for (name, value) in headers {
            request += &format!("{name}: {value}\r\n");
        }
        request += &format!("\r\n{body}");
        self.stream.get_mut().write_all(request.as_bytes()).map_err(|error| self.failed(method, path, &error))?;
        self.answer(method == "HEAD").map_err(|error| self.failed(method, path, &error))
    }

    fn failed(&self, method: &str, path: &str, error: &io::Error) -> String {
        format!("{method} {path} at {}: no whole answer: {error}", self.address)
    }

    fn answer(&mut self, head_only: bool) -> io::Result<Answer> {
        let first = line(&mut self.stream)?;
        let status = first.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(|| wrong(&first))?;
        let headers = headers(&mut self.stream)?;
        let empty = head_only || matches!(status, 100..200 | 204 | 304);
        let body = if empty { String::new() } else { body(&mut self.stream, &headers)? };
        Ok(Answer { status, headers, body })
    }
}

/// Header lines up to the empty one, names in lower case.
pub fn headers(from: &mut impl BufRead) -> io::Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    loop {
        let line = line(from)?;
        if line.is_empty() {
            return Ok(headers);
        }
        let (name, value) = line.split_once(':').ok_or_else(|| wrong(&line))?;
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
}

/// The body that these headers announce, which may be none.
pub fn body(from: &mut impl BufRead, headers: &[(String, String)]) -> io::Result<String> {
    let value = |name| headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    let mut body = Vec::new();
    if value("transfer-encoding") == Some("chunked") {
        while chunk(from, &mut body)? > 0 {}
    } else if let Some(length) = value("content-length") {
        read(from, length.parse().map_err(|_| wrong(length))?, &mut body)?;
    }
    Ok(String::from_utf8_lossy(&body).into_owned())
}

/// Appends the next chunk; the last one is empty.
fn chunk(from: &mut impl BufRead, body: &mut Vec<u8>) -> io::Result<usize> {
    let size = line(from)?;
    let length = usize::from_str_radix(size.trim(), 16).map_err(|_| wrong(&size))?;
    read(from, length, body)?;
    line(from)?;
    Ok(length)
}

fn read(from: &mut impl BufRead, length: usize, body: &mut Vec<u8>) -> io::Result<()> {
    let start = body.len();
    body.resize(start + length, 0);
    from.read_exact(&mut body[start..])
}

/// One line without its end.
pub fn line(from: &mut impl BufRead) -> io::Result<String> {
    let mut line = Vec::new();
    from.read_until(b'\n', &mut line)?;
    if line.pop() != Some(b'\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.pop_if(|last| *last == b'\r');
    Ok(String::from_utf8_lossy(&line).into_owned())
}

fn wrong(text: &str) -> io::Error {
    io::Error::other(format!("not HTTP: {text:?}"))
}
