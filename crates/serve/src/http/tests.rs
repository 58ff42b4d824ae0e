//! Each page, asked without a network.

use super::*;
use crate::{LinkStatus, MemoryPart, SourceStatus};
use axum::body::{Body, to_bytes};
use axum::http::Request;
use model::{ClusterId, Kind, Revision, Source, Time};
use store::ClusterSize;
use tower::ServiceExt as _;

struct Loading;

impl Situation for Loading {
    fn destination(&self) -> Option<crate::Destination> {
        None
    }

    fn store(&self) -> store::Stats {
        let objects = [(Kind::Pod, 7), (Kind::Service, 2)].into();
        let revision = Revision(41);
        store::Stats { revision, objects, endpoints: 5, ..store::Stats::default() }
    }

    fn file_bytes(&self) -> u64 {
        4_096
    }

    fn memory(&self) -> Vec<MemoryPart> {
        let part = |name, budget, used| MemoryPart { name, budget, used };
        vec![part("total", Some(64), Some(32)), part("resident", None, Some(48))]
    }

    fn rss_bytes(&self) -> Option<u64> {
        Some(8_192)
    }

    fn disk_failing(&self) -> Option<String> {
        Some("the disk quota of 1 MiB is used up".to_owned())
    }

    fn disk_quota_bytes(&self) -> Option<u64> {
        Some(1 << 20)
    }

    fn sources(&self) -> Vec<SourceStatus> {
        let source = Source { cluster: ClusterId::LOCAL, kind: Kind::Pod };
        vec![SourceStatus {
            source,
            live: true,
            restarts: 3,
            decode_failures: 1,
            partial_objects: 2,
        }]
    }

    fn links(&self) -> Vec<LinkStatus> {
        vec![LinkStatus {
            cluster: "east".to_owned(),
            state: "stale",
            reason: Some("nothing was heard".to_owned()),
            watches: 5,
            live: 4,
            restarts: 7,
            decode_failures: 2,
            partial_objects: 3,
        }]
    }

    fn link_faults(&self) -> usize {
        6
    }

    fn parts(&self) -> std::collections::BTreeMap<ClusterId, String> {
        [(ClusterId(1), "east".to_owned())].into()
    }

    fn synced(&self) -> std::collections::BTreeMap<Source, Time> {
        let at = |id, kind, at| (Source { cluster: ClusterId(id), kind }, Time(at));
        [at(0, Kind::Pod, 70_000), at(1, Kind::Pod, 60_000), at(1, Kind::Service, 50_000)].into()
    }

    fn sizes(&self) -> Vec<ClusterSize> {
        let local = ClusterSize { targets: 5, waiting: 1, ..ClusterSize::default() };
        let east =
            ClusterSize { cluster: "east".to_owned(), bytes: 900, refused: 8, ..local.clone() };
        vec![local, east]
    }

    fn waits_for(&self) -> Vec<String> {
        vec!["the pods are still being listed".to_owned()]
    }
}

async fn ask(path: &str) -> (StatusCode, String) {
    let metrics = Arc::new(Metrics::new());
    metrics.answered("Get", None);
    metrics.sent(crate::destination::UpdateKind::Add, 0, None);
    let admin = admin(metrics, Arc::new(Hub::new()), Arc::new(Loading));
    let response = admin.oneshot(Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
    let status = response.status();
    let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn probes() {
    assert_eq!(ask("/live").await, (StatusCode::OK, "ok\n".to_owned()));
    assert_eq!(ask("/ping").await, (StatusCode::OK, "pong\n".to_owned()));
    let (status, body) = ask("/ready").await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        body,
        "not ready\n- the pods are still being listed\n- the disk quota of 1 MiB is used up\n"
    );
    assert_eq!(ask("/debug/pprof").await.0, StatusCode::NOT_FOUND);
    let (status, body) = ask("/explain?authority=a.b.svc.cluster.local&address=::1").await;
    assert_eq!((status, &*body), (StatusCode::SERVICE_UNAVAILABLE, "the store is being opened\n"));
    let (status, body) = ask("/explain/profile?authority=10.1.0.4:80&token=x").await;
    assert_eq!((status, &*body), (StatusCode::SERVICE_UNAVAILABLE, "the store is being opened\n"));
    for wrong in [
        "/explain",
        "/explain?authority=a&address=x",
        "/explain?addr=1",
        "/explain/profile",
        "/explain/profile?authority=a&address=::1",
    ] {
        assert_eq!(ask(wrong).await.0, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

#[expect(clippy::too_many_lines, reason = "it is one page")]
#[tokio::test]
async fn metrics_are_prometheus_text() {
    let (status, body) = ask("/metrics").await;
    assert_eq!(status, StatusCode::OK);
    let samples: Vec<_> =
        body.lines().filter(|l| !l.starts_with('#') && !l.contains("_bucket")).collect();
    expect_test::expect![[r#"
        spillway_objects{kind="Service"} 2
        spillway_objects{kind="Pod"} 7
        spillway_endpoints 5
        spillway_revision 41
        spillway_undo_entries 0
        spillway_store_file_bytes 4096
        spillway_disk_failing 1
        spillway_disk_quota_bytes 1048576
        spillway_undo_bytes 0
        spillway_commits_total 0
        spillway_store_reopened_total 0
        spillway_commit_seconds_sum 0.0
        spillway_commit_seconds_count 0
        spillway_commit_changes_sum 0.0
        spillway_commit_changes_count 0
        spillway_sync_seconds_sum 0.0
        spillway_sync_seconds_count 0
        spillway_streams 0
        spillway_updates_sent_total{kind="add"} 1
        spillway_updates_sent_total{kind="remove"} 0
        spillway_updates_sent_total{kind="no_endpoints"} 0
        spillway_updates_sent_total{kind="keep_alive"} 0
        spillway_updates_sent_total{kind="profile"} 0
        spillway_connections_refused_total 0
        spillway_watched 0
        spillway_slowest_stream_lag_ms 0
        spillway_sent_bytes_total 0
        spillway_encoded_bytes_total 0
        spillway_told_seconds_sum 0.0
        spillway_told_seconds_count 0
        spillway_answers_total{from="store"} 0
        spillway_answers_total{from="shared"} 0
        spillway_answers_total{from="hot_set"} 0
        spillway_oversized_total{decision="subset"} 0
        spillway_oversized_total{decision="chunk"} 0
        spillway_coalesced_total 0
        spillway_streams_ended_total{reason="over"} 0
        spillway_streams_ended_total{reason="stopped"} 0
        spillway_streams_ended_total{reason="ending"} 0
        spillway_streams_ended_total{reason="behind"} 0
        spillway_streams_ended_total{reason="gone"} 0
        spillway_streams_ended_total{reason="stalled"} 0
        spillway_streams_ended_total{reason="evicted"} 0
        spillway_streams_ended_total{reason="failed"} 0
        spillway_requests_total{method="Get",code="OK"} 1
        spillway_source_live{cluster="local",kind="Pod"} 1
        spillway_watch_restarts_total{cluster="local",kind="Pod"} 3
        spillway_decode_failures_total{cluster="local",kind="Pod"} 1
        spillway_partial_objects_total{cluster="local",kind="Pod"} 2
        spillway_source_synced_timestamp_seconds{cluster="local",kind="Pod"} 70
        spillway_link_synced_timestamp_seconds{cluster="east"} 50
        spillway_link_state{cluster="east",state="stale"} 1
        spillway_link_watches{cluster="east"} 5
        spillway_link_watches_live{cluster="east"} 4
        spillway_link_watch_restarts_total{cluster="east"} 7
        spillway_link_decode_failures_total{cluster="east"} 2
        spillway_link_partial_objects_total{cluster="east"} 3
        spillway_link_faults 6
        spillway_targets{cluster="local"} 5
        spillway_targets{cluster="east"} 5
        spillway_targets_waiting{cluster="local"} 1
        spillway_targets_waiting{cluster="east"} 1
        spillway_link_bytes{cluster="east"} 900
        spillway_link_objects_refused{cluster="east"} 8
        spillway_targets_held_total{limit="surge"} 0
        spillway_targets_held_total{limit="service"} 0
        spillway_targets_held_total{limit="namespace"} 0
        spillway_targets_held_total{limit="cluster"} 0
        spillway_objects_refused_total 0
        spillway_memory_budget_bytes{part="total"} 64
        spillway_memory_used_bytes{part="total"} 32
        spillway_memory_used_bytes{part="resident"} 48
        spillway_rss_bytes 8192"#]]
    .assert_eq(&samples.join("\n"));
    assert!(body.contains("# TYPE spillway_updates_sent_total counter"), "{body}");
    assert!(body.contains("# TYPE spillway_objects gauge"), "{body}");
}
