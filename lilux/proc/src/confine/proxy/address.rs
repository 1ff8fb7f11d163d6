//! Which addresses a name may lead to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// True for an address of the internet. Whoever controls a name can let it lead anywhere: to this
/// machine, to its network, or to the metadata of a cloud. Such addresses must be listed themselves.
pub fn is_public(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// All but the blocks that IANA lists as not globally reachable.
fn is_public_v4(address: Ipv4Addr) -> bool {
    // Public by its number, but every virtual machine of Azure finds its host there.
    const HOST_OF_AZURE: Ipv4Addr = Ipv4Addr::new(168, 63, 129, 16);
    let [a, b, c, _] = address.octets();
    let reserved = match a {
        0 | 10 | 127 | 224.. => true,
        100 => (64..128).contains(&b),
        169 => b == 254,
        172 => (16..32).contains(&b),
        192 => matches!((b, c), (0, 0 | 2) | (88, 99) | (168, _)),
        198 => matches!((b, c), (18 | 19, _) | (51, 100)),
        203 => (b, c) == (0, 113),
        _ => false,
    };
    !reserved && address != HOST_OF_AZURE
}

/// Global unicast, without the blocks in it that are for protocols, documentation or tunnels. An
/// address that was translated for a network without IPv4 is as public as the original.
fn is_public_v6(address: Ipv6Addr) -> bool {
    match address.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            is_public_v4(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)))
        }
        [0x2001, 0..0x200 | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..0x1000, ..] => false,
        [first, ..] => (0x2000..0x4000).contains(&first),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().unwrap())
    }

    #[test]
    fn addresses_of_this_machine_its_network_and_its_cloud_are_not_public() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.5",
            "100.64.0.1",
            "100.100.100.200",
            "127.0.0.1",
            "127.9.9.9",
            "168.63.129.16",
            "169.254.169.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.0.1",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::7f00:1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b::7f00:1",
            "64:ff9b:1::1",
            "100::1",
            "2001::1",
            "2001:1ff::1",
            "2001:db8::1",
            "2002:7f00:1::",
            "3fff::1",
            "4000::1",
            "5f00::1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "fec0::1",
            "ff02::1",
        ] {
            assert!(!public(address), "{address}");
        }
    }

    #[test]
    fn addresses_of_the_internet_are_public() {
        for address in [
            "1.1.1.1",
            "8.8.8.8",
            "100.63.0.1",
            "100.128.0.1",
            "140.82.121.3",
            "172.15.0.1",
            "172.32.0.1",
            "192.0.1.1",
            "192.30.255.113",
            "198.20.0.1",
            "203.0.114.1",
            "223.255.255.255",
            "::ffff:8.8.8.8",
            "64:ff9b::808:808",
            "2001:200::1",
            "2001:4860:4860::8888",
            "2606:4700::1111",
            "2a00:1450::1",
        ] {
            assert!(public(address), "{address}");
        }
    }
}
