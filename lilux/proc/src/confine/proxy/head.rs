//! The head of a request to the proxy: where it goes, and what is passed on.
//!
//! The destination is the request target and nothing else. What two programs could read differently
//! (line ends, lengths, repeated fields) is refused rather than interpreted.

use super::body::Body;
use crate::confine::hosts::{Destination, HostError};

/// The longest head.
pub const MAX_HEAD: usize = 32 * 1024;
const HTTP_PORT: u16 = 80;

/// Why a request is not served: a status of HTTP, and a sentence for the user of the job.
#[derive(Debug, PartialEq, Eq)]
pub struct Refusal {
    /// 4xx or 5xx.
    pub status: u16,
    /// One line of ASCII.
    pub message: String,
}

/// A request that was understood.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    /// Where it goes.
    pub destination: Destination,
    /// What it asks for.
    pub kind: Kind,
}

/// What a request asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    /// A connection that is passed on as it is.
    Tunnel,
    /// A request that is passed on with this head and its body.
    Request(Vec<u8>, Body),
}

struct Field<'a> {
    name: &'a str,
    value: &'a [u8],
}

/// The length of the head with its empty line, if it is complete.
pub fn length(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|window| window == b"\r\n\r\n").map(|at| at + 4)
}

impl Refusal {
    /// The request is not valid.
    pub fn bad(message: impl Into<String>) -> Self {
        Self { status: 400, message: message.into() }
    }
}

impl Head {
    /// Parses a complete head.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let mut lines = lines(bytes)?;
        let (method, target, version) = request_line(lines.remove(0))?;
        let fields = lines.into_iter().map(Field::parse).collect::<Result<Vec<_>, _>>()?;
        let body = body(&fields, version)?;
        if method == "CONNECT" {
            if body != Body::Length(0) {
                return Err(Refusal::bad("a CONNECT request must not have a body"));
            }
            let destination = std::str::from_utf8(target).map_err(|_| HostError::NotAscii);
            let destination = destination.and_then(|target| Destination::parse(target, None));
            let destination = destination.map_err(not_a_host)?;
            return Ok(Self { destination, kind: Kind::Tunnel });
        }
        let (authority, path) = absolute_form(target)?;
        let destination = Destination::parse(authority, Some(HTTP_PORT));
        let destination = destination.map_err(not_a_host)?;
        let head = rewritten(method, &path, &destination, &fields)?;
        Ok(Self { destination, kind: Kind::Request(head, body) })
    }
}

fn not_a_host(error: HostError) -> Refusal {
    // The text itself is not repeated: it can contain anything.
    Refusal::bad(match error {
        HostError::NotAscii => "the host is not ASCII".into(),
        error => format!("the host {error}"),
    })
}

/// The lines without their ends and without the empty one. A part of an end is not a character.
fn lines(bytes: &[u8]) -> Result<Vec<&[u8]>, Refusal> {
    let mut rest = bytes.strip_suffix(b"\r\n\r\n").ok_or_else(|| Refusal::bad("no empty line"))?;
    let mut lines = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n");
        let line = &rest[..end.unwrap_or(rest.len())];
        if line.iter().any(|&byte| byte != b'\t' && byte.is_ascii_control()) {
            return Err(Refusal::bad("the head has a control character"));
        }
        lines.push(line);
        match end {
            Some(end) => rest = &rest[end + 2..],
            None => return Ok(lines),
        }
    }
}

/// The method, the target, and whether the version is 1.1.
fn request_line(line: &[u8]) -> Result<(&str, &[u8], bool), Refusal> {
    let invalid = || Refusal::bad("the request line is not valid");
    let mut words = line.split(|&byte| byte == b' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(invalid());
    };
    let method = token(method).ok_or_else(invalid)?;
    if target.contains(&b'\t') {
        return Err(invalid());
    }
    match version {
        b"HTTP/1.1" => Ok((method, target, true)),
        b"HTTP/1.0" => Ok((method, target, false)),
        _ => Err(Refusal { status: 505, message: "the version of HTTP is not 1.0 or 1.1".into() }),
    }
}

fn token(bytes: &[u8]) -> Option<&str> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let text = std::str::from_utf8(bytes).ok()?;
    (!bytes.is_empty() && bytes.iter().all(plain)).then_some(text)
}

impl<'a> Field<'a> {
    /// A line that continues the one before has no name, so it is refused too.
    fn parse(line: &'a [u8]) -> Result<Self, Refusal> {
        let colon = line.iter().position(|&byte| byte == b':');
        let name = colon.and_then(|colon| token(&line[..colon]));
        let (Some(colon), Some(name)) = (colon, name) else {
            return Err(Refusal::bad("a header field has no valid name"));
        };
        Ok(Self { name, value: line[colon + 1..].trim_ascii() })
    }

    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

fn body(fields: &[Field<'_>], is_1_1: bool) -> Result<Body, Refusal> {
    let values = |name| fields.iter().filter(move |field| field.is(name)).map(|field| field.value);
    let lengths: Vec<_> = values("content-length").collect();
    let codings: Vec<_> = values("transfer-encoding").collect();
    match (&lengths[..], &codings[..]) {
        ([], []) => Ok(Body::Length(0)),
        ([length], []) => {
            let digits = length.iter().all(u8::is_ascii_digit);
            let length = std::str::from_utf8(length).ok().filter(|_| digits);
            let length = length.and_then(|length| length.parse().ok());
            length.map(Body::Length).ok_or_else(|| Refusal::bad("Content-Length is not a number"))
        }
        ([], [coding]) if is_1_1 && coding.eq_ignore_ascii_case(b"chunked") => Ok(Body::chunked()),
        _ => Err(Refusal::bad("the length of the body is ambiguous")),
    }
}

/// The authority and the path of `http://authority/path`.
fn absolute_form(target: &[u8]) -> Result<(&str, Vec<u8>), Refusal> {
    const SCHEME: &[u8] = b"http://";
    let invalid =
        || Refusal::bad("the request target must be an http:// address; https needs CONNECT");
    let (scheme, rest) = target.split_at_checked(SCHEME.len()).ok_or_else(invalid)?;
    if !scheme.eq_ignore_ascii_case(SCHEME) || rest.contains(&b'#') {
        return Err(invalid());
    }
    let end = rest.iter().position(|byte| b"/?\\".contains(byte)).unwrap_or(rest.len());
    let authority = std::str::from_utf8(&rest[..end]).map_err(|_| invalid())?;
    let path = match rest.get(end) {
        Some(b'/') => rest[end..].to_vec(),
        Some(b'?') => [b"/", &rest[end..]].concat(),
        Some(_) => return Err(invalid()),
        None => b"/".to_vec(),
    };
    Ok((authority, path))
}

/// The head for the server: the host is the destination, whatever the job wrote, and the connection
/// ends after the answer.
fn rewritten(
    method: &str,
    path: &[u8],
    destination: &Destination,
    fields: &[Field<'_>],
) -> Result<Vec<u8>, Refusal> {
    /// About the connection to the proxy, or replaced.
    const OWN: [&str; 9] = [
        "host",
        "connection",
        "proxy-connection",
        "keep-alive",
        "proxy-authorization",
        "proxy-authenticate",
        "te",
        "upgrade",
        "http2-settings",
    ];
    let named: Vec<&[u8]> = fields
        .iter()
        .filter(|field| field.is("connection") || field.is("proxy-connection"))
        .flat_map(|field| field.value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii))
        .collect();
    let is_named = |name: &str| named.iter().any(|one| one.eq_ignore_ascii_case(name.as_bytes()));
    if is_named("content-length") || is_named("transfer-encoding") {
        return Err(Refusal::bad("Connection must not name the length of the body"));
    }
    let mut host = destination.to_string();
    if destination.port == HTTP_PORT {
        host.truncate(host.len() - ":80".len());
    }
    let mut head = [method.as_bytes(), b" ", path, b" HTTP/1.1\r\nHost: "].concat();
    head.extend_from_slice(host.as_bytes());
    for field in fields {
        if !OWN.iter().any(|own| field.is(own)) && !is_named(field.name) {
            head.extend([b"\r\n", field.name.as_bytes(), b": ", field.value].concat());
        }
    }
    head.extend_from_slice(b"\r\nConnection: close\r\n\r\n");
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Head, Refusal> {
        Head::parse(text.as_bytes())
    }

    fn refusal(text: &str) -> (u16, String) {
        let refusal = parse(text).expect_err(text);
        (refusal.status, refusal.message)
    }

    #[test]
    fn a_tunnel_goes_to_the_target() {
        let head = parse("CONNECT Api.GitHub.com:443 HTTP/1.1\r\nHost: evil.org\r\n\r\n").unwrap();
        assert_eq!(head.destination.to_string(), "api.github.com:443");
        assert_eq!(head.kind, Kind::Tunnel);
        for text in [
            "CONNECT a.org HTTP/1.1\r\n\r\n",
            "CONNECT http://a.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.org:443@evil.org:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.org:443/ HTTP/1.1\r\n\r\n",
            "CONNECT 0x7f.1:443 HTTP/1.1\r\n\r\n",
            "CONNECT a.org:443 HTTP/1.1\r\nContent-Length: 5\r\n\r\n",
            "CONNECT a.org:443 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "connect a.org:443 HTTP/1.1\r\n\r\n",
        ] {
            assert_eq!(refusal(text).0, 400);
        }
    }

    #[test]
    fn a_request_is_passed_on_with_the_host_of_its_target() {
        let head = parse(
            "POST HTTP://A.org./x?y HTTP/1.1\r\nHost: evil.org\r\nhost: other.org\r\n\
             Proxy-Authorization: secret\r\nConnection: keep-alive, X-Own\r\nx-own: 1\r\n\
             Upgrade: h2c\r\nAccept:  */* \r\nContent-Length: 3\r\n\r\n",
        )
        .unwrap();
        assert_eq!(head.destination.to_string(), "a.org:80");
        let expected = b"POST /x?y HTTP/1.1\r\nHost: a.org\r\nAccept: */*\r\nContent-Length: 3\r\n\
                         Connection: close\r\n\r\n";
        assert_eq!(head.kind, Kind::Request(expected.to_vec(), Body::Length(3)));
    }

    #[test]
    fn the_path_of_a_request_is_kept() {
        let passed = |target: &str| {
            let head = parse(&format!("GET {target} HTTP/1.0\r\n\r\n")).unwrap();
            let Kind::Request(head, _) = head.kind else { panic!() };
            String::from_utf8(head).unwrap().split("\r\nConnection").next().unwrap().to_owned()
        };
        assert_eq!(passed("http://a.org"), "GET / HTTP/1.1\r\nHost: a.org");
        assert_eq!(passed("http://a.org:8080?q"), "GET /?q HTTP/1.1\r\nHost: a.org:8080");
        assert_eq!(passed("http://a.org/http://b"), "GET /http://b HTTP/1.1\r\nHost: a.org");
        assert_eq!(passed("http://[::1]:80/"), "GET / HTTP/1.1\r\nHost: [::1]");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for text in [
            "GET / HTTP/1.1\r\nHost: a.org\r\n\r\n",
            "GET https://a.org/ HTTP/1.1\r\n\r\n",
            "GET ftp://a.org/ HTTP/1.1\r\n\r\n",
            "GET //a.org/ HTTP/1.1\r\n\r\n",
            "GET http://user@a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org\\@b.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org#@b.org/ HTTP/1.1\r\n\r\n",
            "GET http:///a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org/ b HTTP/1.1\r\n\r\n",
            "GET  http://a.org/ HTTP/1.1\r\n\r\n",
            "GET\thttp://a.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org/\nHost: b HTTP/1.1\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\nHost: b\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nA: b\rHost: c\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nA: b\n\nGET http://b.org/ HTTP/1.1\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nA: b\0\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nA: b\r\n continued\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nContent-Length : 5\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\n: b\r\n\r\n",
            "GET http://a.org/ HTTP/1.1\r\nno colon\r\n\r\n",
            "\r\nGET http://a.org/ HTTP/1.1\r\n\r\n",
            "\r\n\r\n",
            "POST http://a.org/ HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 5\r\n\r\n",
            "POST http://a.org/ HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
            "POST http://a.org/ HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
            "POST http://a.org/ HTTP/1.1\r\nContent-Length:\r\n\r\n",
            "POST http://a.org/ HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "POST http://a.org/ HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST http://a.org/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "POST http://a.org/ HTTP/1.1\r\nTransfer-Encoding: xchunked\r\n\r\n",
            "POST http://a.org/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            "POST http://a.org/ HTTP/1.1\r\nConnection: Content-Length\r\nContent-Length: 5\r\n\r\n",
        ] {
            assert_eq!(refusal(text).0, 400, "{text:?}");
        }
        assert_eq!(refusal("GET http://a.org/ HTTP/2.0\r\n\r\n").0, 505);
        assert_eq!(
            refusal("GET http://127.1/ HTTP/1.1\r\n\r\n").1,
            "the host is not an address in its usual form, such as 127.0.0.1"
        );
        assert!(parse("GET http://a.org/ HTTP/1.1").is_err());
    }

    #[test]
    fn the_end_of_a_head_is_found() {
        assert_eq!(length(b"GET / HTTP/1.1\r\n\r\nmore"), Some(18));
        assert_eq!(length(b"GET / HTTP/1.1\r\n\r"), None);
    }
}
