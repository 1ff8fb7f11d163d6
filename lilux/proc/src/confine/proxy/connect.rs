//! Connecting on behalf of a job.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};

use super::address::is_public;
use super::head::Refusal;
use crate::confine::hosts::{AllowList, Destination, Host};
use crate::error::os_message;

/// For each address of a host, and for all of them.
const ONE_ADDRESS: Duration = Duration::from_secs(10);
const ALL_ADDRESSES: Duration = Duration::from_secs(30);

/// Connects to an allowed destination. The name is resolved once, and the connection goes to an
/// address that was checked. `is_wanted` is asked before each connection is made.
pub fn connect(
    list: &AllowList,
    destination: &Destination,
    is_wanted: impl Fn() -> bool,
) -> Result<TcpStream, Refusal> {
    if !list.allows(destination) {
        return Err(forbidden(format!("{destination} is not an allowed host")));
    }
    let resolved = resolve(destination)?;
    let port = destination.port;
    let is_literal = resolved.is_literal;
    let listed = |address| is_literal || list.has_address(address, port);
    let refused = |address: IpAddr, what: &str| {
        forbidden(format!(
            "{destination} leads to {address}, which is {what} and not an allowed host itself"
        ))
    };
    let (allowed, other): (Vec<_>, Vec<_>) =
        resolved.addresses.into_iter().partition(|&address| is_public(address) || listed(address));
    let mut failure = match other.first() {
        Some(&address) => refused(address, "not public"),
        None => unreachable_host(destination, "the name has no address"),
    };
    let deadline = Instant::now() + ALL_ADDRESSES;
    for address in allowed {
        let left = deadline.saturating_duration_since(Instant::now()).min(ONE_ADDRESS);
        if left.is_zero() || !is_wanted() {
            break;
        }
        match TcpStream::connect_timeout(&SocketAddr::new(address, port), left) {
            // A public address of this machine reaches services that are not.
            Ok(stream) if is_this_machine(&stream) && !listed(address) => {
                failure = refused(address, "this machine");
            }
            Ok(stream) => {
                let _ = stream.set_nodelay(true);
                return Ok(stream);
            }
            Err(error) => failure = unreachable_host(destination, &os_message(&error)),
        }
    }
    Err(failure)
}

struct Resolved {
    addresses: Vec<IpAddr>,
    /// The list names the addresses themselves.
    is_literal: bool,
}

/// `localhost` and the names below it are this machine, whatever a name server says.
fn resolve(destination: &Destination) -> Result<Resolved, Refusal> {
    let literal = |addresses| Ok(Resolved { addresses, is_literal: true });
    match &destination.host {
        Host::Address(address) => literal(vec![*address]),
        Host::Name(name) if name == "localhost" || name.ends_with(".localhost") => {
            literal(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()])
        }
        Host::Name(name) => {
            let found = (name.as_str(), destination.port).to_socket_addrs();
            let found =
                found.map_err(|_| unreachable_host(destination, "the name has no address"))?;
            let addresses = found.map(|found| found.ip().to_canonical()).collect();
            Ok(Resolved { addresses, is_literal: false })
        }
    }
}

fn is_this_machine(stream: &TcpStream) -> bool {
    let addresses = || -> io::Result<_> { Ok((stream.local_addr()?, stream.peer_addr()?)) };
    addresses().is_ok_and(|(local, peer)| local.ip() == peer.ip())
}

fn forbidden(message: String) -> Refusal {
    Refusal { status: 403, message }
}

fn unreachable_host(destination: &Destination, reason: &str) -> Refusal {
    Refusal { status: 502, message: format!("{destination} cannot be reached: {reason}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn refusal(list: &[&str], destination: &str) -> (u16, String) {
        let list: Vec<String> = list.iter().map(|&text| text.into()).collect();
        let list = AllowList::parse(&list).unwrap();
        let destination = Destination::parse(destination, None).unwrap();
        connect(&list, &destination, || true)
            .map_or_else(|refusal| (refusal.status, refusal.message), |_| (200, String::new()))
    }

    #[test]
    fn only_listed_hosts_are_connected() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (name, address) = (format!("localhost:{port}"), format!("127.0.0.1:{port}"));
        assert_eq!(refusal(&[&name], &name).0, 200);
        assert_eq!(refusal(&[&address], &address).0, 200);
        assert_eq!(refusal(&[&name], &address), (403, format!("{address} is not an allowed host")));
        drop(listener);
        let (status, message) = refusal(&[&name], &name);
        assert_eq!(status, 502);
        assert!(message.starts_with(&format!("{name} cannot be reached: ")), "{message}");
    }

    #[test]
    fn an_unwanted_connection_is_not_made() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let destination = Destination::parse(&listener.local_addr().unwrap().to_string(), None);
        let destination = destination.unwrap();
        let list = AllowList::parse(&[destination.to_string()]).unwrap();
        assert!(connect(&list, &destination, || false).is_err());
        listener.set_nonblocking(true).unwrap();
        assert!(listener.accept().is_err());
    }
}
