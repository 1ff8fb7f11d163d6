//! Sockets by their inode numbers, from the tables in /proc/PID/net.

use std::cell::OnceCell;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Read;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// Enough for more than 50,000 sockets.
const MAX_TABLE: u64 = 8 * 1024 * 1024;
const SYN_SENT: u8 = 2;
const LISTEN: u8 = 10;

/// A socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Socket {
    /// A connection that is being made to this address; the first packet was sent.
    Connecting(SocketAddr),
    /// A connection to this address.
    Connected(SocketAddr),
    /// Accepts connections on this address.
    Listening(SocketAddr),
    /// A datagram socket, with its peer if it has one.
    Udp(Option<SocketAddr>),
    /// A unix socket, with its path if it has one.
    Unix(Option<String>),
}

type Parse = fn(&str) -> Option<(u64, Socket)>;

const TABLES: [(&str, Parse); 5] =
    [("tcp", tcp), ("tcp6", tcp), ("unix", unix), ("udp", udp), ("udp6", udp)];

/// The tables of each network namespace that was looked at. Each is read when it is first needed, and
/// only the lines that may be meant are interpreted: a busy machine has many thousands.
#[derive(Default)]
pub struct Sockets(HashMap<String, [OnceCell<String>; TABLES.len()]>);

impl Sockets {
    /// The socket behind the target of a descriptor of this process, such as `socket:[4711]`.
    pub fn find(&mut self, pid: i32, target: &str) -> Option<Socket> {
        let number = target.strip_prefix("socket:[")?.strip_suffix(']')?;
        let inode: u64 = number.parse().ok()?;
        let namespace = fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let namespace = namespace.map_or_else(String::new, |link| link.display().to_string());
        let tables = self.0.entry(namespace).or_default();
        TABLES.iter().zip(tables).find_map(|(&(name, parse), table)| {
            let lines = table.get_or_init(|| read(pid, name)).lines();
            let mut found = lines.filter(|line| line.contains(number)).filter_map(parse);
            found.find(|&(other, _)| other == inode).map(|(_, socket)| socket)
        })
    }
}

fn read(pid: i32, table: &str) -> String {
    let mut bytes = Vec::new();
    if let Ok(file) = File::open(format!("/proc/{pid}/net/{table}")) {
        let _ = file.take(MAX_TABLE).read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn tcp(line: &str) -> Option<(u64, Socket)> {
    let (local, remote, state, inode) = inet(line)?;
    let socket = match state {
        SYN_SENT => Socket::Connecting(remote),
        LISTEN => Socket::Listening(local),
        _ => Socket::Connected(remote),
    };
    Some((inode, socket))
}

fn udp(line: &str) -> Option<(u64, Socket)> {
    let (_, remote, _, inode) = inet(line)?;
    Some((inode, Socket::Udp(Some(remote).filter(|remote| remote.port() != 0))))
}

fn inet(line: &str) -> Option<(SocketAddr, SocketAddr, u8, u64)> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let state = u8::from_str_radix(fields.get(3)?, 16).ok()?;
    Some((address(fields.get(1)?)?, address(fields.get(2)?)?, state, fields.get(9)?.parse().ok()?))
}

/// `0100007F:1F90` is 127.0.0.1:8080: words of the machine's byte order, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (ip, port) = text.split_once(':')?;
    let mut bytes = Vec::with_capacity(16);
    for word in ip.as_bytes().chunks(8) {
        let word = u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok()?;
        bytes.extend(word.to_ne_bytes());
    }
    let ip = if let Ok(four) = <[u8; 4]>::try_from(&*bytes) {
        IpAddr::V4(Ipv4Addr::from(four))
    } else {
        IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(&*bytes).ok()?)).to_canonical()
    };
    Some(SocketAddr::new(ip, u16::from_str_radix(port, 16).ok()?))
}

fn unix(line: &str) -> Option<(u64, Socket)> {
    let mut fields = line.split_ascii_whitespace().skip(6);
    let inode = fields.next()?.parse().ok()?;
    Some((inode, Socket::Unix(fields.next().map(str::to_owned))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        let word = format!("{:08X}", u32::from_ne_bytes([10, 0, 0, 5]));
        assert_eq!(address(&format!("{word}:01BB")).unwrap().to_string(), "10.0.0.5:443");
        let one = format!("{:08X}", u32::from_ne_bytes([0, 0, 0, 1]));
        let six = format!("{}{one}:0050", "0".repeat(24));
        assert_eq!(address(&six).unwrap().to_string(), "[::1]:80");
        assert_eq!(address("xyz"), None);
    }

    #[test]
    fn a_line_of_tcp_is_read() {
        let (ours, theirs) =
            (u32::from_ne_bytes([127, 0, 0, 1]), u32::from_ne_bytes([10, 0, 0, 5]));
        let line = format!(
            "  1: {ours:08X}:C000 {theirs:08X}:01BB 02 00000001:00000000 01:00000062 00000000 0 0 4711 2 0"
        );
        let peer = "10.0.0.5:443".parse().unwrap();
        assert_eq!(tcp(&line), Some((4711, Socket::Connecting(peer))));
    }

    #[test]
    fn a_line_of_unix_is_read() {
        let line = "0000: 00000002 00000000 00010000 0001 01 4711 /run/x.sock";
        assert_eq!(unix(line), Some((4711, Socket::Unix(Some("/run/x.sock".into())))));
        let line = "0000: 00000003 00000000 00000000 0001 03 4712";
        assert_eq!(unix(line), Some((4712, Socket::Unix(None))));
    }
}
