//! What a store does for claims: ranks them, and counts their signatures.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use model::{Claim, Class, Peer, Service, Signature, SignatureItem, SliceMeta, Text};

use crate::{Lens, Settings, View, hostname_signatures};

/// Ranks the claims of one target, newest slice first, and tells them of each other.
pub(super) fn rank(mut claims: Vec<Claim>) -> Vec<Claim> {
    let several = claims.len() > 1 && claims[0].class != Class::Bare;
    let peers: Vec<Peer> = claims
        .iter()
        .map(|claim| Peer {
            ip: claim.ip,
            class: claim.class,
            slice: claim.slice.clone(),
            hostname: claim.hostname.clone(),
            hints: claim.hints.clone(),
        })
        .collect();
    for (rank, claim) in claims.iter_mut().enumerate() {
        claim.rank = u16::try_from(rank).unwrap();
        claim.peers = if several { peers.clone() } else { Vec::new() };
    }
    claims
}

/// The lens of a view, with its signatures counted over all claims of the Service.
pub(super) fn lens(
    settings: &Settings,
    view: &View,
    service: Option<&Service>,
    claims: &[Claim],
) -> Lens {
    let mut signatures: Vec<(Signature, u64)> = Vec::new();
    for (_, claims) in by_ip(claims) {
        let here = match &view.hostname {
            Some(hostname) => hostname_signatures(hostname, &claims),
            None => all_signatures(&claims),
        };
        for signature in here {
            match signatures.iter_mut().find(|(known, _)| *known == signature) {
                Some((_, count)) => *count += 1,
                None => signatures.push((signature, 1)),
            }
        }
    }
    Lens::new(settings, view, service, &signatures)
}

/// As the store counts them: a target at its claim of rank 0, the bare claims of an address together.
fn all_signatures(claims: &[Claim]) -> Vec<Signature> {
    let item = |class, slice: &Arc<SliceMeta>, hints: &[Text]| SignatureItem {
        class,
        slice: slice.clone(),
        hints: hints.to_vec(),
    };
    let mut bare: Vec<&Claim> = claims.iter().filter(|it| it.class == Class::Bare).collect();
    bare.sort_by_key(|claim| claim.rank);
    let bare = bare.iter().map(|claim| item(claim.class, &claim.slice, &claim.hints)).collect();
    let first = claims.iter().filter(|claim| claim.class != Class::Bare && claim.rank == 0);
    let targets = first.map(|claim| match claim.peers.is_empty() {
        true => Signature(vec![item(claim.class, &claim.slice, &claim.hints)]),
        false => Signature(
            claim.peers.iter().map(|peer| item(peer.class, &peer.slice, &peer.hints)).collect(),
        ),
    });
    let bare = Some(Signature(bare)).filter(|signature| !signature.0.is_empty());
    targets.chain(bare).collect()
}

/// The claims by their address.
pub(super) fn by_ip(claims: &[Claim]) -> BTreeMap<IpAddr, Vec<Claim>> {
    let mut by_ip: BTreeMap<IpAddr, Vec<Claim>> = BTreeMap::new();
    for claim in claims {
        by_ip.entry(claim.ip).or_default().push(claim.clone());
    }
    by_ip
}
