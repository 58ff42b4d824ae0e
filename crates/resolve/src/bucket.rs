//! Subsets of a Service that is too large to be told whole: its addresses are dealt into buckets, a power of two of them,
//! and a client is told one. With twice as many buckets a client keeps half of what it had.

use std::hash::Hasher as _;
use std::net::IpAddr;

use siphasher::sip::SipHasher13;

/// One of so many buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bucket {
    /// There are two to the power of this many.
    pub bits: u8,
    /// Which of them.
    pub index: u32,
}

impl Bucket {
    /// The bucket of a client, whose number is [`client_number`]; `None` if there is only one.
    pub fn of(client: u32, bits: u8) -> Option<Bucket> {
        (bits > 0).then(|| Bucket { bits, index: low(client, bits) })
    }

    /// Is the address in it?
    pub fn has(self, ip: IpAddr) -> bool {
        low(address_number(ip), self.bits) == self.index
    }
}

fn low(number: u32, bits: u8) -> u32 {
    number & ((1_u64 << bits.min(32)) - 1) as u32
}

/// The number by which a client's bucket is chosen: of its pod's name, and the same in all of our processes.
pub fn client_number(pod: &str) -> u32 {
    number(|hasher| hasher.write(pod.as_bytes()))
}

fn address_number(ip: IpAddr) -> u32 {
    number(|hasher| match ip {
        IpAddr::V4(ip) => hasher.write(&ip.octets()),
        IpAddr::V6(ip) => hasher.write(&ip.octets()),
    })
}

fn number(write: impl FnOnce(&mut SipHasher13)) -> u32 {
    // Nobody gains by choosing addresses: so the keys are known, and equal everywhere.
    let mut hasher = SipHasher13::new();
    write(&mut hasher);
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_is_in_one_bucket_and_stays_in_its_half() {
        let ips = (0..20_000_u32).map(|number| IpAddr::from((0x0a00_0000 + number).to_be_bytes()));
        let mut counts = [0_u32; 8];
        for ip in ips {
            let within = |bits: u8| {
                (0..1_u32 << bits).filter(move |index| Bucket { bits, index: *index }.has(ip))
            };
            let (two, eight): (Vec<u32>, Vec<u32>) = (within(1).collect(), within(3).collect());
            assert_eq!((two.len(), eight.len()), (1, 1));
            assert_eq!(eight[0] & 1, two[0]);
            counts[eight[0] as usize] += 1;
        }
        assert!(counts.iter().all(|count| (2_350..2_650).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_client_stays_in_its_half() {
        let client = client_number("web-6f7d8c-x2x7k");
        assert_eq!(client, client_number("web-6f7d8c-x2x7k"));
        assert_eq!(Bucket::of(client, 0), None);
        let [four, eight] = [2, 3].map(|bits| Bucket::of(client, bits).unwrap());
        assert_eq!(eight.index & 3, four.index);
    }
}
