//! The claims on one address, as a client sees them (spec §2.4, §2.5).
//!
//! A claim knows its competitors, so nothing beyond the address is looked at.

use model::{Claim, Class, PortKey, SliceMeta, Text};

use crate::explain::Exclusion;
use crate::hints::served;
use crate::lens::{Filter, Lens};
use crate::render::Address;

impl Lens {
    /// The addresses that the claims on one ip amount to, by port, each port once. Their order doesn't matter.
    pub fn project<'c>(&'c self, claims: &'c [Claim]) -> Vec<Address<'c>> {
        let Some(key) = &self.key else {
            return Vec::new();
        };
        let served =
            claims.iter().filter_map(|claim| Some((self.judge(key, claim, claims).ok()?, claim)));
        let mut served: Vec<(u16, &Claim)> = served.collect();
        // Several targets may be on one port, of which a client knows one. What says more comes first.
        served.sort_unstable_by(|(a, left), (b, right)| {
            a.cmp(b).then_with(|| precedence(left).cmp(&precedence(right)))
        });
        let mut addresses: Vec<Address<'_>> = Vec::with_capacity(served.len());
        for (port, claim) in served {
            if addresses.last().is_none_or(|last| last.port != port) {
                addresses.extend(self.render(claim, port).ok());
            }
        }
        addresses
    }

    /// The port at which the view has this claim, or what keeps it out.
    pub(crate) fn judge(
        &self,
        key: &PortKey,
        claim: &Claim,
        claims: &[Claim],
    ) -> Result<u16, Exclusion> {
        if self.bucket.is_some_and(|bucket| !bucket.has(claim.ip)) {
            return Err(Exclusion::Bucket);
        }
        let check = |passes: bool, otherwise| if passes { Ok(()) } else { Err(otherwise) };
        check(self.is_asked_for(claim.hostname.as_deref()), Exclusion::Hostname)?;
        let port = claim.slice.port(key).ok_or(Exclusion::Port)?;
        check(served(&self.settings, claim.class), Exclusion::Ipv6Off)?;
        check(self.wins(key, claim, port, claims), Exclusion::Outranked)?;
        let passes = self.passes(claim.class, claim.node.as_deref(), &claim.hints);
        check(passes, Exclusion::Elsewhere)?;
        check(!self.yields(key, claim), Exclusion::OtherFamily)?;
        Ok(port)
    }

    fn is_asked_for(&self, hostname: Option<&str>) -> bool {
        self.hostname.is_none() || self.hostname.as_deref() == hostname
    }

    /// The port of a claim that may be chosen: it has the requested port, and the hostname.
    fn candidate(&self, key: &PortKey, slice: &SliceMeta, hostname: Option<&str>) -> Option<u16> {
        self.is_asked_for(hostname).then(|| slice.port(key)).flatten()
    }

    /// Is it, of the claims that say the same of the same target, the first?
    fn wins(&self, key: &PortKey, claim: &Claim, port: u16, claims: &[Claim]) -> bool {
        if claim.class == Class::Bare {
            return !claims.iter().any(|other| {
                other.class == Class::Bare
                    && other.rank < claim.rank
                    && self.candidate(key, &other.slice, other.hostname.as_deref()) == Some(port)
            });
        }
        let first = self.winner(key, claim, claim.class);
        first.is_none_or(|first| first == usize::from(claim.rank))
    }

    /// The rank of the first candidate of that class among a claim's peers.
    fn winner(&self, key: &PortKey, claim: &Claim, class: Class) -> Option<usize> {
        claim.peers.iter().position(|peer| {
            let hostname = peer.hostname.as_deref();
            peer.class == class && self.candidate(key, &peer.slice, hostname).is_some()
        })
    }

    /// May the client use the claim?
    fn passes(&self, class: Class, node: Option<&str>, hints: &[Text]) -> bool {
        match &self.filter {
            Filter::All => true,
            Filter::Zone(zone) => hints.iter().any(|hint| **hint == **zone),
            Filter::Node(here) => {
                matches!(class, Class::PodV4 | Class::PodV6) && here.as_deref() == node
            }
        }
    }

    /// Is its target better served in the other family? A pod is seen by one of its addresses only; so is an
    /// ExternalWorkload (Q20), with IPv6 off by the other.
    fn yields(&self, key: &PortKey, claim: &Claim) -> bool {
        let better = match (claim.class, self.settings.ipv6) {
            (Class::PodV4, true) => Class::PodV6,
            (Class::ExternalV4, true) => Class::ExternalV6,
            (Class::ExternalV6, false) => Class::ExternalV4,
            _ => return false,
        };
        let winner = self.winner(key, claim, better).map(|rank| &claim.peers[rank]);
        winner.is_some_and(|peer| self.passes(better, claim.node.as_deref(), &peer.hints))
    }
}

/// Which of two claims on one port is shown: a target rather than none, a pod rather than a workload, then by
/// name.
fn precedence(claim: &Claim) -> impl Ord + '_ {
    let kind = match claim.class {
        Class::PodV4 | Class::PodV6 => 0,
        Class::ExternalV4 | Class::ExternalV6 => 1,
        Class::Bare => 2,
    };
    let namespace = claim.workload.as_ref().map(|workload| workload.namespace.as_str());
    (kind, namespace, claim.name.as_str(), claim.class, claim.rank)
}
