//! A full value of each record: no field is empty, none equals its neighbour, and numbers need more than one byte
//! where they can, so that two fields that change places are seen.

use super::v3::{
    Body, Checkpoint, Interned, Ip, Link, Meta, Metadata, Name, Object, Owner, Part, PartId, Peer,
    Profile, RequestPart, ResponsePart, RetryBudget, Route, Row, Server, ServerPort, Service,
    ServicePort, Signature, Size, Slice, SliceEndpoint, SliceMeta, Template, Touched, UndoneRows,
    Version, Workload,
};

fn v6() -> Ip {
    Ip::V6([0xfd, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 0xfe])
}

fn text(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn owner() -> Owner {
    Owner { kind: "ReplicaSet".to_owned(), name: "cart-7d".to_owned() }
}

pub(crate) fn object(body: Option<Body>) -> Object {
    Object { id: 300, version: Version::Number(70_000), slices: 2, vacant: 5_000_000_000, body }
}

pub(crate) fn service() -> Service {
    Service {
        ports: vec![
            ServicePort { name: "http".to_owned(), port: 80, tcp: true },
            ServicePort { name: "dns".to_owned(), port: 5_300, tcp: false },
        ],
        external_name: false,
        local_traffic: true,
        cluster_ips: vec![Ip::V4([10, 96, 0, 255]), v6()],
        opaque: Some(vec![(25, 25), (3_306, 4_444)]),
        discovery: [text("east"), text("cart.shop"), text("cart@west"), text("cart")],
    }
}

pub(crate) fn workload() -> Workload {
    Workload {
        template: 251,
        node: 65_536,
        state: Workload::state(Workload::RUNNING, true, false),
        ips: vec![Ip::V4([10, 0, 0, 7])],
        host_ips: vec![v6()],
    }
}

pub(crate) fn server() -> Server {
    let requirement = ("app".to_owned(), 1, vec!["cart".to_owned(), "till".to_owned()]);
    Server {
        opaque: true,
        pods: Some(vec![requirement]),
        workloads: Some(vec![("vm".to_owned(), 2, Vec::new())]),
        port: ServerPort::Name("admin".to_owned()),
    }
}

fn profile() -> Profile {
    use RequestPart::{All, Any, Method, Not, Path};
    use ResponsePart as Response;
    let condition = vec![All(2), Method("GET".to_owned()), Not, Any(1), Path("/a".to_owned())];
    let failed = vec![
        Response::All(2),
        Response::Status { min: 500, max: 599 },
        Response::Any(1),
        Response::Not,
        Response::Status { min: 501, max: 0 },
    ];
    Profile {
        routes: vec![Route {
            name: "r".to_owned(),
            condition,
            responses: vec![(failed, true)],
            retryable: true,
            timeout_ns: -250_000_000,
        }],
        retry_budget: Some(RetryBudget {
            ratio: 0.2_f32.to_bits(),
            min_retries_per_second: 10,
            ttl_ns: 10_000_000_000,
        }),
        dst_overrides: vec![("a.shop.svc.k.test".to_owned(), 9_000)],
    }
}

/// Objects: one of each body, a stub, and one whose version is no number.
pub(crate) fn objects() -> Vec<Object> {
    let bodies = [
        Body::Service(service()),
        Body::Slice,
        Body::Subsets(vec![1, 300, 70_000]),
        Body::Workload(workload()),
        Body::Node { zone: text("z1") },
        Body::Owned { owner: Some(owner()) },
        Body::Server(server()),
        Body::Server(Server { port: ServerPort::Number(8_080), ..server() }),
        Body::Profile(None),
        Body::Profile(Some(profile())),
        Body::Link(Ok(link())),
        Body::Link(Err("it has no data.kubeconfig".to_owned())),
    ];
    let mut objects: Vec<_> = bodies.into_iter().map(|body| object(Some(body))).collect();
    objects.push(object(None));
    objects.push(Object { version: Version::Text("v-1".to_owned()), ..object(None) });
    objects
}

fn link() -> Link {
    Link {
        cluster: "east".to_owned(),
        trust_domain: "east.org".to_owned(),
        cluster_domain: "e.test".to_owned(),
    }
}

pub(crate) fn part() -> Part {
    Part { id: 300, uid: "1-2-3".to_owned(), trust_domain: "east.org".to_owned() }
}

pub(crate) fn part_id() -> PartId {
    PartId { cluster: "east".to_owned(), namespace: "shop".to_owned(), left: Some(70_000) }
}

pub(crate) fn size() -> Size {
    Size { targets: 251, peak: 300, waiting: 70_000, bytes: 5_000_000_000, refused: 9 }
}

pub(crate) fn template() -> Template {
    Template {
        cluster: 300,
        external: false,
        namespace: "shop".to_owned(),
        labels: vec![("app".to_owned(), "cart".to_owned())],
        owner: Some(owner()),
        name_prefix: "cart-7d-".to_owned(),
        service_account: "carts".to_owned(),
        ports: vec![("http".to_owned(), 8_080, Some(31_000)), ("dns".to_owned(), 53, None)],
        opaque: Some(vec![(25, 26)]),
        skip_inbound: vec![(4_567, 4_568)],
        proxy: Some([Some(4_143), Some(4_191), Some(4_190)]),
        mesh_tls: Some(("spiffe://shop".to_owned(), "cart.shop".to_owned())),
    }
}

pub(crate) fn metadata() -> Metadata {
    Metadata {
        external: true,
        namespace: "shop".to_owned(),
        control_plane_ns: text("linkerd"),
        owner: Some(owner()),
        service_account: "carts".to_owned(),
        pod_template_hash: text("7d"),
        name_prefix: "cart-7d-".to_owned(),
        opaque: Some(vec![(25, 26)]),
        opaque_by_server: vec![(3_306, 3_307)],
        skip_inbound: vec![(4_567, 4_568)],
        proxy: Some([Some(4_143), None, Some(4_190)]),
        mesh_tls: Some(("spiffe://shop".to_owned(), "cart.shop".to_owned())),
    }
}

pub(crate) fn slice() -> Slice {
    let pod = SliceEndpoint {
        ip: Ip::V4([10, 0, 0, 7]),
        ready: true,
        workload: 252,
        target: 1,
        namespace: "shop".to_owned(),
        name: "x9".to_owned(),
        hostname: text("cart-0"),
        zone: 70_000,
        hints: vec![3, 400],
    };
    let bare = SliceEndpoint {
        ip: Ip::V4([10, 0, 0, 8]),
        ready: false,
        workload: 0,
        target: 0,
        namespace: String::new(),
        name: String::new(),
        hostname: None,
        zone: 0,
        hints: Vec::new(),
    };
    Slice {
        object: b"\0\0\x02shop\0cart-abc".to_vec(),
        order: 70_001,
        service: Some(500),
        v6: true,
        meta: 66_000,
        name_prefix: "cart-7d-".to_owned(),
        endpoints: vec![pod, bare],
    }
}

pub(crate) fn slice_meta() -> SliceMeta {
    SliceMeta {
        ports: Some(vec![("http".to_owned(), Some(8_080)), ("dns".to_owned(), None)]),
        mirror_cluster: text("west"),
        remote_service: text("cart.shop"),
        gateway_identity: text("gate.linkerd"),
    }
}

pub(crate) fn row(name: Name) -> Row {
    let peer =
        |ip, class, slice| Peer { ip, class, slice, hostname: text("cart-0"), hints: vec![3, 400] };
    Row {
        class: 2,
        name,
        metadata: 300,
        node: 301,
        slice: 66_000,
        hostname: text("cart-0"),
        zone: 70_000,
        hints: vec![3, 400],
        rank: 259,
        peers: vec![peer(Ip::V4([10, 0, 0, 7]), 1, 66_001), peer(v6(), 2, 66_000)],
    }
}

pub(crate) fn signature() -> Signature {
    vec![(1, 66_000, vec![3, 400]), (4, 5, Vec::new())]
}

pub(crate) fn undone_rows() -> UndoneRows {
    vec![
        (400, 252, row(Name::Suffix("x9".to_owned()))),
        (401, 70_000, row(Name::Whole("vm".to_owned()))),
    ]
}

pub(crate) fn checkpoint() -> Checkpoint {
    Checkpoint { version: "70000".to_owned(), at: 1_700_000_000_000 }
}

pub(crate) fn touched() -> Touched {
    Touched { services: vec![1, 500], entries: 3, bytes: 300, at: 1_700_000_000_000 }
}

pub(crate) fn interned() -> Interned {
    Interned { refs: 66_000, freed: 9, hash: 0x0123_4567_89ab_cdef, bytes: vec![2, 1, b'a', 0xff] }
}

pub(crate) fn meta() -> Meta {
    let mut meta = Meta {
        revision: 70_000,
        trimmed: 60_000,
        endpoints: 5_000_000_000,
        undo_entries: 251,
        undo_bytes: 65_536,
        undo_since: 1_700_000_000_000,
        rows: 70_000,
        bytes: 5_000_000,
        ..Meta::default()
    };
    for n in 0..16_u8 {
        meta.ids[usize::from(n)] = 240 + u32::from(n);
        meta.objects[usize::from(n)] = 1 << (n * 3);
    }
    meta
}
