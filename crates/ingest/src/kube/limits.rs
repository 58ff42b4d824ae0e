//! Every limit of the watch driver, with its reason.

use std::time::Duration;

/// Bytes of one line of a watch. etcd refuses objects of more than 1.5 MiB, which as JSON can be twice as long.
pub(super) const LINE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Bytes of a line that is too long which are skipped. After as many more the connection is given up: it doesn't end.
pub(super) const SKIPPED_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of a line that is too long which are looked at, to see which object it is.
pub(super) const HEAD_BYTES_MAX: usize = 4 * 1024;

/// Bytes of one page of a list. A page that is larger is asked for again with fewer items.
pub(super) const PAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Items that are asked for in one page of a list.
pub(super) const PAGE_ITEMS_MAX: u32 = 500;

/// Items that are taken of a page, whatever was asked for: not every API server knows pages.
pub(super) const PAGE_ITEMS_TAKEN_MAX: usize = 16 * 1024;

/// Bytes of what an API server says that need no place among the large ones.
pub(super) const SMALL_BYTES_MAX: usize = 64 * 1024;

/// Lines and pages larger than that which are held at the same time: of the local cluster, and of all linked ones together.
pub(super) const LARGE_MAX: usize = 4;

/// How long it may take until one of them is there: a place is not for those who never finish.
pub(super) const LARGE_WAIT_MAX: Duration = Duration::from_secs(20);

/// Watches of one linked cluster that read at the same time.
pub(super) const READING_MAX: usize = 2;

/// Bytes of an answer that says why not; the rest of it is not read.
pub(super) const ERROR_BYTES_MAX: usize = 64 * 1024;

/// Bytes of the object by which a cluster is recognised, and of its uid.
pub(super) const IDENTITY_BYTES_MAX: usize = 256 * 1024;
pub(super) const UID_BYTES_MAX: usize = 128;

/// Bytes of the token that asks for the next page: it becomes a part of a URL.
pub(super) const TOKEN_BYTES_MAX: usize = 4 * 1024;

/// Changes that are handed on at once. Small, since a full channel holds many such.
pub(super) const DELIVERY_CHANGES_MAX: usize = 128;

/// Bytes of the texts of objects that are handed on at once; one alone may have more.
pub(super) const DELIVERY_BYTES_MAX: usize = 1024 * 1024;

/// Endpoints in the EndpointSlices that are handed on at once; one slice alone may have more.
pub(super) const DELIVERY_ENDPOINTS_MAX: usize = 1_024;

/// Names of bad objects that are remembered, so that each is logged once.
pub(super) const NOTED_NAMES_MAX: usize = 1_024;

/// How long an API server may take to answer; it gives up by itself after 60 s.
pub(super) const RESPONSE_WAIT_MAX: Duration = Duration::from_secs(65);

/// How long a watch may be silent: a bookmark comes every minute. Going on where it was costs little.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(100);

/// Seconds after which the API server ends a watch; up to as many again are added at random, so that eight
/// watches, or eighty servers, don't all come back at once.
pub(super) const WATCH_SECS_MIN: u32 = 240;
pub(super) const WATCH_SECS_SPREAD: u32 = 60;

/// A watch that ends sooner than this did not do well, even without an error.
pub(super) const WATCH_SHORT: Duration = Duration::from_secs(5);

/// The wait after such a watch, and after a page of a list that was empty and not the last.
pub(super) const HASTE_WAIT: Duration = Duration::from_millis(200);

/// The first wait after a failure, doubled with every further one.
pub(super) const BACKOFF_MIN: Duration = Duration::from_millis(200);

/// The longest wait after a failure.
pub(super) const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// How long to wait before looking again for a kind that the API server doesn't have: half of it to one and a half.
pub(super) const ABSENT_WAIT: Duration = Duration::from_secs(30);

/// How long to wait before believing that a kind which was there is gone: a starting API server may not have
/// found its custom kinds yet.
pub(super) const ABSENT_DOUBT: Duration = Duration::from_secs(3);
