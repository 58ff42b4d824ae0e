//! Whether hints keep a client to its zone, which is a matter of the whole Service (spec §2.5).

use model::{Claim, Class, Peer, PortKey, Signature, SignatureItem};

use crate::Settings;
use crate::lens::Filter;

/// The signatures of the targets that have a claim of this hostname, as far as they are to be counted at this
/// address: each target has one address where it counts, its first by rank. `claims` are all on one address.
pub fn hostname_signatures(hostname: &str, claims: &[Claim]) -> Vec<Signature> {
    let named = |other: &Option<String>| other.as_deref() == Some(hostname);
    let here = claims.iter().filter(|claim| named(&claim.hostname));
    let (mut bare, targets): (Vec<_>, Vec<_>) = here.partition(|claim| claim.class == Class::Bare);
    bare.sort_by_key(|claim| claim.rank);
    let bare: Vec<SignatureItem> = bare.into_iter().map(item_of).collect();
    let bare = (!bare.is_empty()).then_some(Signature(bare));
    let targets = targets.into_iter().filter_map(|claim| {
        if claim.peers.is_empty() {
            return Some(Signature(vec![item_of(claim)]));
        }
        let first = claim.peers.iter().position(|peer| named(&peer.hostname))?;
        let items = claim.peers.iter().filter(|peer| named(&peer.hostname)).map(item_of_peer);
        (first == usize::from(claim.rank)).then(|| Signature(items.collect()))
    });
    bare.into_iter().chain(targets).collect()
}

fn item_of(claim: &Claim) -> SignatureItem {
    SignatureItem { class: claim.class, slice: claim.slice.clone(), hints: claim.hints.clone() }
}

fn item_of_peer(peer: &Peer) -> SignatureItem {
    SignatureItem { class: peer.class, slice: peer.slice.clone(), hints: peer.hints.clone() }
}

/// One claim without hints, and nobody is kept to a zone; so it is, too, if no claim is for the client's.
pub(crate) fn zone_filter<'s>(
    settings: &Settings,
    key: &PortKey,
    zone: Option<&str>,
    signatures: impl Iterator<Item = &'s Signature>,
) -> Filter {
    let Some(zone) = zone else {
        return Filter::All;
    };
    let mut for_zone = false;
    for signature in signatures {
        for item in winners(settings, key, signature) {
            if item.hints.is_empty() {
                return Filter::All;
            }
            for_zone |= item.hints.iter().any(|hint| **hint == *zone);
        }
    }
    if for_zone { Filter::Zone(zone.to_owned()) } else { Filter::All }
}

/// The claims of a target that compete for a place in views: per family the first that has the port; of bare
/// ones the first with each port number.
fn winners<'s>(
    settings: &Settings,
    key: &PortKey,
    signature: &'s Signature,
) -> impl Iterator<Item = &'s SignatureItem> {
    let place = |item: &SignatureItem| match item.slice.port(key) {
        Some(port) if item.class == Class::Bare => Some((item.class, port)),
        Some(_) if served(settings, item.class) => Some((item.class, 0)),
        _ => None,
    };
    let items = &signature.0;
    items.iter().enumerate().filter_map(move |(index, item)| {
        let place_here = place(item)?;
        let taken = items[..index].iter().any(|earlier| place(earlier) == Some(place_here));
        (!taken).then_some(item)
    })
}

/// IPv6 addresses of pods are as good as absent with IPv6 off (Q43); bare and workload ones are not.
pub(crate) fn served(settings: &Settings, class: Class) -> bool {
    class != Class::PodV6 || settings.ipv6
}
