//! Which addresses are public, and which lead to somewhere that a stranger's URL must not reach.
//!
//! For IPv4 what is special is listed. For IPv6 it is the other way round: only what is handed out
//! as global is public, less what is special in it. Addresses that carry an IPv4 address are what
//! that one is.
//!
//! Not known here: public addresses that are this machine's own, or its neighbours'. Whoever has
//! such needs a firewall.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range and what it is. The first that matches names the reason.
type V4 = (Ipv4Addr, u32, &'static str);
type V6 = (Ipv6Addr, u32, &'static str);

const METADATA: &str = "a cloud's metadata";

#[rustfmt::skip]
const REFUSED_V4: [V4; 20] = [
    // Metadata first, so that it is called so: most of it lies in ranges below.
    (Ipv4Addr::new(169, 254, 169, 254), 32, METADATA),
    (Ipv4Addr::new(100, 100, 100, 200), 32, METADATA),
    (Ipv4Addr::new(192, 0, 0, 192), 32, METADATA),
    (Ipv4Addr::new(168, 63, 129, 16), 32, METADATA),
    (Ipv4Addr::new(0, 0, 0, 0), 8, "this network"),
    (Ipv4Addr::new(10, 0, 0, 0), 8, "private"),
    (Ipv4Addr::new(100, 64, 0, 0), 10, "shared by a provider's customers"),
    (Ipv4Addr::new(127, 0, 0, 0), 8, "loopback"),
    (Ipv4Addr::new(169, 254, 0, 0), 16, "link-local"),
    (Ipv4Addr::new(172, 16, 0, 0), 12, "private"),
    (Ipv4Addr::new(192, 0, 0, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 0, 2, 0), 24, "for documentation"),
    (Ipv4Addr::new(192, 88, 99, 0), 24, "reserved"),
    (Ipv4Addr::new(192, 168, 0, 0), 16, "private"),
    (Ipv4Addr::new(198, 18, 0, 0), 15, "for benchmarks"),
    (Ipv4Addr::new(198, 51, 100, 0), 24, "for documentation"),
    (Ipv4Addr::new(203, 0, 113, 0), 24, "for documentation"),
    (Ipv4Addr::new(224, 0, 0, 0), 4, "multicast"),
    (Ipv4Addr::BROADCAST, 32, "broadcast"),
    (Ipv4Addr::new(240, 0, 0, 0), 4, "reserved"),
];

#[rustfmt::skip]
const REFUSED_V6: [V6; 15] = [
    (Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0x0254), 128, METADATA),
    (Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0x0254), 128, METADATA),
    (Ipv6Addr::UNSPECIFIED, 128, "this network"),
    (Ipv6Addr::LOCALHOST, 128, "loopback"),
    (Ipv6Addr::new(0x0064, 0xff9b, 1, 0, 0, 0, 0, 0), 48, "translated inside a network"),
    (Ipv6Addr::new(0x0100, 0, 0, 0, 0, 0, 0, 0), 64, "discarded"),
    // Protocol assignments: Teredo, benchmarks and hashes that look like addresses among them.
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, "reserved"),
    (Ipv6Addr::new(0x2001, 0x0db8, 0, 0, 0, 0, 0, 0), 32, "for documentation"),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, "for documentation"),
    (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, "reserved"),
    (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, "private"),
    (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, "link-local"),
    (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, "private"),
    (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, "multicast"),
    // The oldest form of IPv4 inside IPv6, given up long ago.
    (Ipv6Addr::UNSPECIFIED, 96, "reserved"),
];

/// What is handed out as global.
const GLOBAL: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// IPv4 addresses in IPv6 ones: the prefix, its length, and where the four bytes begin.
const CARRIERS: [(Ipv6Addr, u32, usize); 3] = [
    // As sockets write them.
    (Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, 0, 0), 96, 12),
    // NAT64: how machines without IPv4 reach it.
    (Ipv6Addr::new(0x0064, 0xff9b, 0, 0, 0, 0, 0, 0), 96, 12),
    // 6to4.
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16, 2),
];

/// Why an address must not be reached; nothing if it is public.
pub fn refused(ip: IpAddr) -> Option<&'static str> {
    match ip {
        IpAddr::V4(ip) => refused_v4(ip),
        IpAddr::V6(ip) => refused_v6(ip),
    }
}

fn refused_v4(ip: Ipv4Addr) -> Option<&'static str> {
    REFUSED_V4.iter().find(|(base, length, _)| same_v4(ip, *base, *length)).map(|(.., why)| *why)
}

fn refused_v6(ip: Ipv6Addr) -> Option<&'static str> {
    if let Some((.., start)) = CARRIERS.iter().find(|(base, length, _)| same_v6(ip, *base, *length)) {
        let [a, b, c, d] = std::array::from_fn(|i| ip.octets()[start + i]);
        return refused_v4(Ipv4Addr::new(a, b, c, d));
    }
    let listed = REFUSED_V6.iter().find(|(base, length, _)| same_v6(ip, *base, *length)).map(|(.., why)| *why);
    listed.or_else(|| (!same_v6(ip, GLOBAL.0, GLOBAL.1)).then_some("not global"))
}

fn same_v4(ip: Ipv4Addr, base: Ipv4Addr, length: u32) -> bool {
    (ip.to_bits() ^ base.to_bits()).leading_zeros() >= length
}

fn same_v6(ip: Ipv6Addr, base: Ipv6Addr, length: u32) -> bool {
    (ip.to_bits() ^ base.to_bits()).leading_zeros() >= length
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> Option<&'static str> {
        refused(text.parse().unwrap())
    }

    #[test]
    fn every_range_is_refused_from_its_first_to_its_last_address() {
        for (base, length, _) in REFUSED_V4 {
            let host = u32::MAX.checked_shr(length).unwrap_or(0);
            assert_eq!(base.to_bits() & host, 0, "{base}/{length} begins where it says");
            for bits in [base.to_bits(), base.to_bits() | host, base.to_bits() | (host / 3)] {
                let ip = Ipv4Addr::from_bits(bits);
                assert!(refused(ip.into()).is_some(), "{ip}");
            }
        }
        for (base, length, _) in REFUSED_V6 {
            let host = u128::MAX.checked_shr(length).unwrap_or(0);
            assert_eq!(base.to_bits() & host, 0, "{base}/{length} begins where it says");
            for bits in [base.to_bits(), base.to_bits() | host, base.to_bits() | (host / 3)] {
                let ip = Ipv6Addr::from_bits(bits);
                assert!(refused(ip.into()).is_some() || ip.to_ipv4_mapped().is_some(), "{ip}");
            }
        }
    }

    #[test]
    fn each_is_refused_for_what_it_is() {
        #[rustfmt::skip]
        let cases = [
            ("127.0.0.1", "loopback"), ("127.255.255.255", "loopback"), ("::1", "loopback"),
            ("10.0.0.0", "private"), ("10.255.255.255", "private"),
            ("172.16.0.0", "private"), ("172.31.255.255", "private"),
            ("192.168.0.0", "private"), ("192.168.255.255", "private"),
            ("169.254.0.1", "link-local"), ("169.254.255.255", "link-local"),
            ("100.64.0.0", "shared by a provider's customers"), ("100.127.255.255", "shared by a provider's customers"),
            ("0.0.0.0", "this network"), ("0.255.255.255", "this network"), ("::", "this network"),
            ("192.0.0.8", "reserved"), ("192.88.99.1", "reserved"), ("240.0.0.1", "reserved"),
            ("192.0.2.1", "for documentation"), ("198.51.100.1", "for documentation"),
            ("203.0.113.255", "for documentation"), ("2001:db8::1", "for documentation"),
            ("3fff:fff::1", "for documentation"),
            ("198.18.0.0", "for benchmarks"), ("198.19.255.255", "for benchmarks"),
            ("224.0.0.1", "multicast"), ("239.255.255.255", "multicast"), ("ff02::1", "multicast"),
            ("255.255.255.255", "broadcast"),
            ("fc00::1", "private"), ("fdff:ffff::1", "private"), ("fec0::1", "private"),
            ("fe80::1", "link-local"), ("febf::1", "link-local"),
            ("100::1", "discarded"), ("5f00::1", "reserved"), ("64:ff9b:1::808:808", "translated inside a network"),
            ("4000::1", "not global"), ("1::1", "not global"), ("fe00::1", "not global"),
            ("169.254.169.254", METADATA), ("100.100.100.200", METADATA), ("192.0.0.192", METADATA),
            ("168.63.129.16", METADATA), ("fd00:ec2::254", METADATA), ("fd20:ce::254", METADATA),
        ];
        for (ip, expected) in cases {
            assert_eq!(why(ip), Some(expected), "{ip}");
        }
    }

    #[test]
    fn their_neighbours_are_public() {
        #[rustfmt::skip]
        let public = [
            "1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0",
            "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
            "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0",
            "198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0",
            "223.255.255.255", "8.8.8.8",
            "2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::1", "2003::1", "2a00::1",
            "3ffe::1", "3fff:1000::1",
        ];
        for ip in public {
            assert_eq!(why(ip), None, "{ip}");
        }
    }

    #[test]
    fn what_carries_an_ipv4_address_is_what_that_one_is() {
        for (inner, expected) in [
            ("127.0.0.1", Some("loopback")),
            ("10.1.2.3", Some("private")),
            ("169.254.169.254", Some(METADATA)),
            ("8.8.8.8", None),
        ] {
            let [a, b, c, d] = inner.parse::<Ipv4Addr>().unwrap().octets();
            let to_6to4 = format!("2002:{a:02x}{b:02x}:{c:02x}{d:02x}::1");
            for form in [format!("::ffff:{inner}"), format!("64:ff9b::{inner}"), to_6to4] {
                assert_eq!(why(&form), expected, "{form}");
            }
        }
        // These forms are dead, and refused whatever they carry.
        assert_eq!(why("::127.0.0.1"), Some("reserved"), "compatible");
        assert_eq!(why("::8.8.8.8"), Some("reserved"), "compatible");
        assert_eq!(why("2001:0:102:304:0:ffff:80ff:fffe"), Some("reserved"), "Teredo of 127.0.0.1");
    }
}
