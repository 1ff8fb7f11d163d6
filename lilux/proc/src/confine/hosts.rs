//! Hosts that a job may reach, as a list of `name:port`, `*.name:port` and `address:port`.
//!
//! A host has one form here: names are in lower case without a trailing dot, addresses are parsed.
//! Text that some programs read as an address and others as a name (`0177.0.0.1`, `127.1`) is
//! neither.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const MAX_NAME: usize = 253;
const MAX_LABEL: usize = 63;

/// A name or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// In lower case, without a trailing dot.
    Name(String),
    /// An IPv4 address is never in its IPv6 form.
    Address(IpAddr),
}

/// A host and a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    /// The host.
    pub host: Host,
    /// Not 0.
    pub port: u16,
}

/// The destinations that are allowed.
#[derive(Debug)]
pub struct AllowList(Vec<Entry>);

#[derive(Debug)]
enum Entry {
    One(Destination),
    /// All names below this one, which starts with a dot, at this port.
    Below(String, u16),
}

/// Why a text is not a host and a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostError {
    /// It has no port.
    Port,
    /// A label of the name is empty, too long, or has other characters.
    Name,
    /// The name is not ASCII.
    NotAscii,
    /// The name ends in a number, and is not an address in its usual form.
    Number,
    /// The text in brackets is not an IPv6 address.
    Brackets,
    /// An asterisk is somewhere else than at the start, or there is no name below it.
    Wildcard,
}

impl AllowList {
    /// Parses each entry. The error has the index of the first invalid one.
    pub fn parse(texts: &[String]) -> Result<Self, (usize, HostError)> {
        let entry =
            |(index, text): (usize, &String)| Entry::parse(text).map_err(|error| (index, error));
        texts.iter().enumerate().map(entry).collect::<Result<_, _>>().map(Self)
    }

    /// True if the list has this destination.
    pub fn allows(&self, destination: &Destination) -> bool {
        self.0.iter().any(|entry| match (entry, &destination.host) {
            (Entry::One(one), _) => one == destination,
            (Entry::Below(parent, port), Host::Name(name)) => {
                *port == destination.port && name.ends_with(parent.as_str())
            }
            (Entry::Below(..), Host::Address(_)) => false,
        })
    }

    /// True if the list has this address itself, and not only a name that leads to it.
    pub fn has_address(&self, address: IpAddr, port: u16) -> bool {
        self.allows(&Destination { host: Host::Address(address.to_canonical()), port })
    }
}

impl Entry {
    fn parse(text: &str) -> Result<Self, HostError> {
        let Some(below) = text.strip_prefix('*') else {
            return Destination::parse(text, None).map(Self::One);
        };
        let name = below.strip_prefix('.').ok_or(HostError::Wildcard)?;
        match Destination::parse(name, None)? {
            Destination { host: Host::Name(name), port } => {
                Ok(Self::Below(format!(".{name}"), port))
            }
            Destination { host: Host::Address(_), .. } => Err(HostError::Wildcard),
        }
    }
}

impl Destination {
    /// Parses `host:port`. Without `default_port`, the port must be given.
    pub fn parse(text: &str, default_port: Option<u16>) -> Result<Self, HostError> {
        let (host, port) = match text.rsplit_once(':') {
            // The last colon belongs to the address.
            Some((_, port)) if port.ends_with(']') => (text, None),
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        };
        let host = Host::parse(host)?;
        let port = match port {
            Some(port) => parse_port(port).ok_or(HostError::Port)?,
            None => default_port.ok_or(HostError::Port)?,
        };
        Ok(Self { host, port })
    }
}

fn parse_port(text: &str) -> Option<u16> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit()) && !text.starts_with('0');
    text.parse().ok().filter(|_| plain)
}

impl Host {
    fn parse(text: &str) -> Result<Self, HostError> {
        if let Some(inner) = text.strip_prefix('[') {
            let inner = inner.strip_suffix(']').ok_or(HostError::Brackets)?;
            let address: Ipv6Addr = inner.parse().map_err(|_| HostError::Brackets)?;
            return Ok(Self::Address(address.to_canonical()));
        }
        if let Ok(address) = text.parse::<Ipv4Addr>() {
            return Ok(Self::Address(address.into()));
        }
        if !text.is_ascii() {
            return Err(HostError::NotAscii);
        }
        if text.contains('*') {
            return Err(HostError::Wildcard);
        }
        let name = text.strip_suffix('.').unwrap_or(text);
        if name.len() > MAX_NAME || !name.split('.').all(is_label) {
            return Err(HostError::Name);
        }
        if name.rsplit('.').next().is_some_and(is_number) {
            return Err(HostError::Number);
        }
        Ok(Self::Name(name.to_ascii_lowercase()))
    }
}

fn is_label(label: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    (1..=MAX_LABEL).contains(&label.len())
        && label.bytes().all(plain)
        && !label.starts_with('-')
        && !label.ends_with('-')
}

/// True for what the C library reads as a part of an address: decimal, octal or hexadecimal.
fn is_number(label: &str) -> bool {
    let hexadecimal = label.strip_prefix("0x").or_else(|| label.strip_prefix("0X"));
    match hexadecimal {
        Some(digits) => digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        None => label.bytes().all(|byte| byte.is_ascii_digit()),
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            Host::Name(name) => write!(f, "{name}:{}", self.port),
            Host::Address(address) => std::net::SocketAddr::new(*address, self.port).fmt(f),
        }
    }
}

impl fmt::Display for HostError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Port => "needs a port from 1 to 65535, as in api.example.org:443",
            Self::Name => "is not the name of a host",
            Self::NotAscii => "is not ASCII; write the name in punycode (xn--…)",
            Self::Number => "is not an address in its usual form, such as 127.0.0.1",
            Self::Brackets => "has no IPv6 address in its brackets",
            Self::Wildcard => "may have '*' only as the first label, as in *.example.org:443",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(texts: &[&str]) -> AllowList {
        let texts: Vec<String> = texts.iter().map(|&text| text.into()).collect();
        AllowList::parse(&texts).unwrap()
    }

    fn allows(list: &AllowList, text: &str) -> bool {
        Destination::parse(text, None).is_ok_and(|destination| list.allows(&destination))
    }

    #[test]
    fn a_name_is_the_same_in_upper_case_and_with_a_trailing_dot() {
        let list = list(&["Api.GitHub.com:443", "localhost.:80"]);
        for same in ["api.github.com:443", "API.GITHUB.COM:443", "api.github.com.:443"] {
            assert!(allows(&list, same), "{same}");
        }
        assert!(allows(&list, "LOCALHOST:80") && allows(&list, "localhost.:80"));
        for other in [
            "api.github.com:80",
            "github.com:443",
            "x.api.github.com:443",
            "api.github.com..:443",
            "api.github.com.evil.org:443",
            "127.0.0.1:80",
            "[::1]:80",
        ] {
            assert!(!allows(&list, other), "{other}");
        }
    }

    #[test]
    fn a_wildcard_is_for_all_names_below_and_not_for_the_name_itself() {
        let list = list(&["*.example.org:443"]);
        assert!(allows(&list, "a.example.org:443") && allows(&list, "A.b.Example.ORG.:443"));
        for other in
            ["example.org:443", "badexample.org:443", "a.example.org:80", ".example.org:443"]
        {
            assert!(!allows(&list, other), "{other}");
        }
    }

    #[test]
    fn an_address_has_one_form() {
        let list = list(&["127.0.0.1:80", "[2001:DB8::1]:80"]);
        assert!(allows(&list, "127.0.0.1:80") && allows(&list, "[::ffff:127.0.0.1]:80"));
        assert!(allows(&list, "[2001:db8:0:0::1]:80"));
        assert!(list.has_address("::ffff:127.0.0.1".parse().unwrap(), 80));
        assert!(!list.has_address("127.0.0.1".parse().unwrap(), 81));
        let forms = [
            "127.1:80",
            "0177.0.0.1:80",
            "0x7f.0.0.1:80",
            "2130706433:80",
            "0x7f000001:80",
            "127.0.0.1.:80",
            "127.0.0.01:80",
            "[127.0.0.1]:80",
            "[::1%lo]:80",
            "1.2.3.4.5:80",
            "::1:80",
        ];
        for form in forms {
            assert!(Destination::parse(form, None).is_err(), "{form}");
        }
    }

    #[test]
    fn what_is_not_a_host_is_refused_with_the_reason() {
        let error = |text: &str| AllowList::parse(&["a:1".into(), text.into()]).unwrap_err();
        for (text, reason) in [
            ("api.github.com", HostError::Port),
            ("api.github.com:", HostError::Port),
            ("api.github.com:0", HostError::Port),
            ("api.github.com:0443", HostError::Port),
            ("api.github.com:+443", HostError::Port),
            ("api.github.com:65536", HostError::Port),
            ("[::1]", HostError::Port),
            ("", HostError::Name),
            (":443", HostError::Name),
            ("a..b:443", HostError::Name),
            ("-a.org:443", HostError::Name),
            ("a b:443", HostError::Name),
            ("a\r\nb:443", HostError::Name),
            ("user@a.org:443", HostError::Name),
            ("https://a.org:443", HostError::Name),
            ("a.org/path:443", HostError::Name),
            ("münchen.de:443", HostError::NotAscii),
            ("a.org。:443", HostError::NotAscii),
            ("127.1:443", HostError::Number),
            ("a.0x7f:443", HostError::Number),
            ("[::1:443", HostError::Brackets),
            ("[a.org]:443", HostError::Brackets),
            ("*:443", HostError::Wildcard),
            ("*.*.org:443", HostError::Wildcard),
            ("a.*.org:443", HostError::Wildcard),
            ("*a.org:443", HostError::Wildcard),
            ("*.127.0.0.1:443", HostError::Wildcard),
        ] {
            assert_eq!(error(text), (1, reason), "{text}");
        }
        assert_eq!(error(&format!("{}.org:443", "a".repeat(64))).1, HostError::Name);
        assert_eq!(error(&format!("{}org:443", "a.".repeat(126))).1, HostError::Name);
        assert!(AllowList::parse(&["xn--mnchen-3ya.de:443".into(), "_a.b-c:1".into()]).is_ok());
    }
}
