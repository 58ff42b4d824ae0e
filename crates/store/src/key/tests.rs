//! What must hold for every key: it gives back what is read from it, its bytes sort as the code relies on, and the
//! range of a prefix has just the keys of that prefix.

use std::cmp::Ordering;
use std::fmt::Debug;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::workload::claim_key;

/// Few different numbers, so that keys share beginnings, and the ends of the range.
fn numbers() -> impl Strategy<Value = u32> {
    prop_oneof![0..3_u32, 254..258_u32, (u32::MAX - 1)..=u32::MAX, any::<u32>()]
}

/// Revisions: the next one is a number, too.
fn revisions() -> impl Strategy<Value = Revision> {
    prop_oneof![0..3_u64, 254..258_u64, (u64::MAX - 2)..u64::MAX, 0..u64::MAX].prop_map(Revision)
}

fn addresses() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        any::<u32>().prop_map(|n| IpAddr::V4(n.into())),
        (0..3_u32).prop_map(|n| IpAddr::V4(n.into())),
        any::<u128>().prop_map(|n| IpAddr::V6(n.into())),
        // Written as IPv6, an IPv4 address is another one.
        any::<u32>().prop_map(|n| IpAddr::V6(Ipv4Addr::from(n).to_ipv6_mapped())),
    ]
}

fn rows() -> impl Strategy<Value = RowKey> {
    (addresses(), numbers(), numbers()).prop_map(|(ip, slice, workload)| RowKey {
        ip,
        slice,
        workload,
    })
}

fn claims() -> impl Strategy<Value = ClaimKey> {
    (numbers(), numbers(), numbers()).prop_map(|(template, workload, slice)| ClaimKey {
        template,
        workload,
        slice,
    })
}

fn groups() -> impl Strategy<Value = Group> {
    prop_oneof![numbers().prop_map(Group::Workload), addresses().prop_map(Group::Bare)]
}

/// Names that are each other's beginnings more often than not.
fn names() -> impl Strategy<Value = String> {
    prop_oneof!["a{0,3}", "[ab]{0,2}", "[a-z0-9.-]{0,20}"]
}

/// Whose an address may be, with the parts that its key is made of.
fn owners() -> impl Strategy<Value = (u8, String, String, u16, u32)> {
    (1..=4_u8, names(), names(), any::<u16>(), numbers())
}

fn owner((sort, namespace, name, port, template): &(u8, String, String, u16, u32)) -> Owner<'_> {
    let named = Named { template: *template, name: name.as_bytes() };
    match sort {
        1 => Owner::Service { namespace, name },
        2 => Owner::Pod(named),
        3 => Owner::HostPort(*port, named),
        _ => Owner::External(named),
    }
}

fn sources() -> impl Strategy<Value = Source> {
    let clusters = prop_oneof![0..2_u16, 255..258_u16, Just(u16::MAX)];
    (clusters, proptest::sample::select(Kind::ALL.to_vec()))
        .prop_map(|(cluster, kind)| Source { cluster: ClusterId(cluster), kind })
}

fn undones() -> impl Strategy<Value = Undone> {
    prop_oneof![
        Just(Undone::Object),
        vec(any::<u8>(), 0..20).prop_map(Undone::Signature),
        addresses().prop_map(Undone::Address),
    ]
}

fn within(prefix: &[u8], key: &[u8]) -> bool {
    prefix <= key && key < prefix_end(prefix).as_slice()
}

/// A key is in the range of a prefix if, and only if, it should be.
fn just(prefix: &[u8], key: &[u8], should: bool) -> Result<(), TestCaseError> {
    prop_assert_eq!(within(prefix, key), should, "{:?} in {:?}", key, prefix);
    Ok(())
}

/// Two keys compare as the values do that they are made of.
fn sorts<T: Ord + Debug>(a: (&[u8], T), b: (&[u8], T)) -> Result<(), TestCaseError> {
    prop_assert_eq!(a.0.cmp(b.0), a.1.cmp(&b.1), "{:?}, {:?}", a, b);
    Ok(())
}

/// A key that is cut off is no key, wherever that is.
fn short<T>(key: &[u8], read: impl Fn(&[u8]) -> Option<T>) -> Result<(), TestCaseError> {
    let readable = (0..key.len()).find(|length| read(&key[..*length]).is_some());
    prop_assert_eq!(readable, None);
    Ok(())
}

proptest! {
    #[test]
    fn owners_of_an_address_are_in_the_order_in_which_they_are_looked_for(
        (a, b) in (owners(), owners()), (one, two) in (addresses(), addresses()), cluster in any::<u16>()
    ) {
        let (cluster, a, b) = (ClusterId(cluster), owner(&a), owner(&b));
        let (first, second) = (a.write(cluster, one), b.write(cluster, one));
        let prefix = address(cluster, one);
        prop_assert_eq!(Owner::read(rest(&first, prefix.len())), Some(a.clone()));
        sorts((&first, &a), (&second, &b))?;
        just(&prefix, &first, true)?;
        let same = one.to_canonical() == two.to_canonical();
        just(&prefix, &b.write(cluster, two), same)?;
    }

    #[test]
    fn instances_of_a_hostname_are_together(
        service_id in numbers(), (one, two) in (names(), names()), slice in numbers()
    ) {
        let prefix = hostname_prefix(service_id, &one);
        just(&prefix, &instance(service_id, &one, slice), true)?;
        just(&prefix, &instance(service_id, &two, slice), one == two)?;
    }

    #[test]
    fn the_range_of_a_prefix_has_what_begins_with_it(
        prefix in vec(prop_oneof![Just(0_u8), Just(0xff), any::<u8>()], 0..12),
        key in vec(prop_oneof![Just(0_u8), Just(0xff), any::<u8>()], 0..16),
        rest in vec(any::<u8>(), 0..4),
    ) {
        just(&prefix, &key, key.starts_with(&prefix))?;
        just(&prefix, &[prefix.as_slice(), &rest].concat(), true)?;
    }

    #[test]
    fn numbers_sort_as_numbers(a in numbers(), b in numbers()) {
        sorts((&id(a), a), (&id(b), b))?;
        prop_assert_eq!(KeyReader(&id(a)).u32(), Some(a));
        short(&id(a), |key| KeyReader(key).u32())?;
    }

    #[test]
    fn a_source_has_just_its_objects(a in sources(), b in sources(), namespace in names(), name in names()) {
        let name = ObjectName::new(namespace, name).expect("it is short and has no NUL");
        just(&source(a), &object(b, &name), a == b)?;
        sorts((&source(a), (a.cluster, a.kind as u8)), (&source(b), (b.cluster, b.kind as u8)))?;
    }

    #[test]
    fn a_namespace_has_just_its_objects(
        (a, b) in (sources(), sources()),
        (in_a, in_b) in (names(), names()),
        (one, two) in (names(), names()),
    ) {
        let named = |namespace: &str, name: &str| ObjectName::new(namespace, name).expect("it is valid");
        let key = object(b, &named(&in_b, &two));
        just(&object_namespace(a.cluster, a.kind, &in_a), &key, a == b && in_a == in_b)?;
        // NUL is before all that names are made of, so a name is before those that begin with it.
        let first = object(a, &named(&in_a, &one));
        let order = |source: Source, namespace: &str, name: &str| {
            (source.cluster, source.kind as u8, namespace.to_owned(), name.to_owned())
        };
        sorts((&first, order(a, &in_a, &one)), (&key, order(b, &in_b, &two)))?;
        prop_assert_eq!(object_name(&first), Some(named(&in_a, &one)));
    }

    #[test]
    fn row_keys_round_trip_and_sort_as_their_values(
        (a, b) in (rows(), rows()),
        (of_a, of_b) in (numbers(), numbers()),
    ) {
        prop_assert_eq!(RowKey::read(&a.write(of_a)), Some(a));
        sorts((&a.write(of_a), (of_a, a)), (&b.write(of_b), (of_b, b)))?;
        short(&a.write(of_a), RowKey::read)?;
        just(&id(of_a), &b.write(of_b), of_a == of_b)?;
        just(&row_ip(of_a, a.ip), &b.write(of_b), (of_a, a.ip) == (of_b, b.ip))?;
        just(&row_ip(of_a, a.ip), &a.write(of_a), true)?;
    }

    #[test]
    fn claims_round_trip_and_sort_by_template_first(a in claims(), b in claims()) {
        prop_assert_eq!(claim_key(&claim(a)), Some(a));
        short(&claim(a), claim_key)?;
        let order = |claim: ClaimKey| (claim.template, claim.workload, claim.slice);
        sorts((&claim(a), order(a)), (&claim(b), order(b)))?;
        just(&id(a.template), &claim(b), a.template == b.template)?;
        let same = (a.template, a.workload) == (b.template, b.workload);
        just(&workload_claims(a.template, a.workload), &claim(b), same)?;
    }

    #[test]
    fn those_who_wait_round_trip_and_sort_by_service(
        (a, b) in (groups(), groups()),
        (of_a, of_b) in (numbers(), numbers()),
    ) {
        prop_assert_eq!(waiting_group(&waiting(of_a, a)), Some(a));
        short(&waiting(of_a, a), waiting_group)?;
        sorts((&waiting(of_a, a), (of_a, a)), (&waiting(of_b, b), (of_b, b)))?;
        just(&id(of_a), &waiting(of_b, b), of_a == of_b)?;
    }

    #[test]
    fn sizes_are_told_apart(a in numbers(), cluster in any::<u16>(), (b, c) in (names(), names())) {
        let of = [
            service_size(a),
            namespace_size(ClusterId(cluster), &format!("x{b}")),
            part_size(ClusterId(cluster)),
            cluster_size(&c),
        ];
        let different: std::collections::BTreeSet<_> = of.iter().collect();
        prop_assert_eq!(different.len(), of.len());
        just(&cluster_size(""), &of[3], true)?;
        just(&cluster_size(""), &of[1], false)?;
    }

    #[test]
    fn contested_keys_sort_by_slice_first(a in rows(), b in rows(), (c, d) in (numbers(), numbers())) {
        let order = |service: u32, row: RowKey| (row.slice, service, row.workload, row.ip);
        sorts((&contested(c, a), order(c, a)), (&contested(d, b), order(d, b)))?;
        just(&contested_of(a.slice, c), &contested(d, b), (a.slice, c) == (b.slice, d))?;
    }

    #[test]
    fn a_hostname_has_just_its_rows(
        (a, b) in (rows(), rows()),
        (of_a, of_b) in (numbers(), numbers()),
        (one, two) in (names(), names()),
    ) {
        let key = hostname(of_b, &two, b);
        let prefix = hostname_prefix(of_a, &one);
        just(&prefix, &key, (of_a, &one) == (of_b, &two))?;
        just(&id(of_a), &key, of_a == of_b)?;
        let own = hostname(of_a, &one, a);
        sorts((&own, (of_a, &one, a)), (&key, (of_b, &two, b)))?;
        // As it is read: the address behind the prefix.
        prop_assert_eq!(KeyReader(&own[prefix.len()..]).ip(), Some(a.ip));
    }

    #[test]
    fn a_service_has_just_its_signatures(
        (of_a, of_b) in (numbers(), numbers()),
        (a, b) in (vec(any::<u8>(), 0..12), vec(any::<u8>(), 0..12)),
    ) {
        just(&id(of_a), &context(of_b, &b), of_a == of_b)?;
        prop_assert_eq!(&context(of_a, &a)[4..], a.as_slice());
        prop_assert_eq!(context(of_a, &a) == context(of_b, &b), (of_a, a) == (of_b, b));
    }

    #[test]
    fn undo_keys_round_trip_and_sort_by_service_and_revision(
        (a, b) in (undones(), undones()),
        (at_a, at_b) in (revisions(), revisions()),
        (of_a, of_b) in (numbers(), numbers()),
    ) {
        let (first, second) = (undo(of_a, at_a, &a), undo(of_b, at_b, &b));
        prop_assert_eq!(undone(&first), Some(a.clone()));
        sorts((&first, (of_a, at_a, &a)), (&second, (of_b, at_b, &b)))?;
        just(&id(of_a), &second, of_a == of_b)?;
        // After a revision, up to the end of the service: those of its later ones.
        let range = undo_after(of_a, at_b)..prefix_end(&id(of_a));
        prop_assert_eq!(range.contains(&first), at_a > at_b);
        // One revision of a service, as it is trimmed.
        let from = KeyBuf::new().u32(of_a).u64(at_a.0).done();
        let trimmed = (from..undo_after(of_a, at_a)).contains(&second);
        prop_assert_eq!(trimmed, (of_a, at_a) == (of_b, at_b));
        if !matches!(a, Undone::Signature(_)) {
            short(&first, undone)?;
        }
    }

    #[test]
    fn revisions_sort_and_have_just_what_is_theirs(
        (a, b) in (revisions(), revisions()),
        (one, two) in (numbers(), numbers()),
        (short, long) in (vec(any::<u8>(), 0..9), vec(any::<u8>(), 0..9)),
    ) {
        sorts((&revision(a), a), (&revision(b), b))?;
        prop_assert_eq!(KeyReader(&revision(a)).u64(), Some(a.0));
        sorts((&freed(a, one), (a, one)), (&freed(b, two), (b, two)))?;
        sorts((&vacant(a, &short), (a, &short)), (&vacant(b, &long), (b, &long)))?;
        just(&revision(a), &freed(b, two), a == b)?;
        just(&revision(a), &vacant(b, &long), a == b)?;
        // What is up to a revision is before the next one begins.
        let end = revision(Revision(a.0 + 1));
        prop_assert_eq!(freed(b, two) < end, b <= a);
        prop_assert_eq!(vacant(b, &long) < end, b <= a);
        // As they are read: behind the revision.
        prop_assert_eq!(KeyReader(&freed(a, one)[8..]).u32(), Some(one));
        prop_assert_eq!(&vacant(a, &short)[8..], short.as_slice());
    }

    #[test]
    fn a_hash_has_just_its_numbers(
        (a, b) in (revisions(), revisions()),
        (one, two) in (numbers(), numbers()),
    ) {
        let key = interned_id(b.0, two);
        let found = interned_id(a.0, 0)..=interned_id(a.0, u32::MAX);
        prop_assert_eq!(found.contains(&key), a == b);
        sorts((&interned_id(a.0, one), (a, one)), (&key, (b, two)))?;
        prop_assert_eq!(KeyReader(&key[8..]).u32(), Some(two));
    }

    #[test]
    fn templates_are_found_by_namespace_and_by_owner(
        (a, b) in (any::<u16>(), any::<u16>()),
        (in_a, in_b) in (names(), names()),
        (kind_a, kind_b) in (names(), names()),
        (name_a, name_b) in (names(), names()),
        number in numbers(),
    ) {
        let (a, b) = (ClusterId(a), ClusterId(b));
        let owner = template_owner(b, &in_b, &kind_b, &name_b);
        let key = [owner.as_slice(), &id(number)].concat();
        just(&template_namespace(a, &in_a), &key, (a, &in_a) == (b, &in_b))?;
        let same = (a, &in_a, &kind_a, &name_a) == (b, &in_b, &kind_b, &name_b);
        just(&template_owner(a, &in_a, &kind_a, &name_a), &key, same)?;
        // As it is read: the last four bytes.
        prop_assert_eq!(KeyReader(&key[key.len() - 4..]).u32(), Some(number));
    }
}

#[test]
fn ipv4_is_before_ipv6_whatever_the_numbers() {
    let key = |ip: &str| KeyBuf::new().ip(ip.parse().unwrap()).done();
    let sorted = ["0.0.0.0", "10.0.0.2", "10.0.0.10", "255.255.255.255", "::", "::ffff:1.2.3.4"];
    assert!(sorted.map(key).is_sorted_by(|a, b| a.cmp(b) == Ordering::Less));
}

#[test]
fn a_key_with_an_unknown_mark_is_none() {
    assert_eq!(KeyReader(&[5, 1, 2, 3, 4]).ip(), None);
    assert_eq!(undone(&[&[0; 12], [3].as_slice()].concat()), None);
    assert_eq!(object_name(b"\0\0\x01no-separator"), None);
    assert_eq!(object_name(&[0, 0, 1, 0xff, 0, b'a']), None);
}
