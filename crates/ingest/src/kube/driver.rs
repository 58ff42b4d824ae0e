//! Keeps one source listed and watched, whatever happens.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use model::{Change, ResourceVersion, Source};
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::backoff::{Backoff, unit};
use super::event;
use super::failure::Failure;
use super::limits::{
    ABSENT_DOUBT, ABSENT_WAIT, HASTE_WAIT, PAGE_ITEMS_MAX, SKIPPED_BYTES_MAX, WATCH_SECS_MIN,
    WATCH_SECS_SPREAD, WATCH_SHORT,
};
use super::lines::Line;
use super::resource::Resource;
use super::session::{Quality, Session};
use super::status::{SourceStatus, State, Status};
use super::transport::{self, WatchStream};
use super::turns::{Place, Turns};
use crate::Delivery;

/// What is watched, and from where.
#[derive(Clone, Debug)]
pub struct Watch {
    /// The kind, and the number that its objects have here.
    pub source: Source,
    /// The namespace; `None`: all.
    pub namespace: Option<String>,
    /// The version that was committed last.
    pub resume: Option<ResourceVersion>,
    /// Answers can do without the kind: if the API server refuses it, and nothing is known of it, there is none.
    pub dispensable: bool,
    /// When it may read, decode, and hold something large.
    pub turns: Turns,
}

/// Lists and watches a source for as long as anybody takes its changes. With a version to resume from nothing is listed as
/// long as the API server can go on from there.
///
/// A listing that is interrupted begins again, so it is never ended half; a full channel stops the reading.
pub async fn watch(client: Client, watch: Watch, to: mpsc::Sender<Delivery>, status: Arc<Status>) {
    let Watch { source, namespace, resume, dispensable, turns } = watch;
    let mut driver = Driver {
        client,
        source,
        resource: Resource::new(source.kind, namespace.as_deref()),
        dispensable,
        turns,
        to,
        status,
        // The empty version is that of a kind which the API server did not have.
        position: resume.filter(|version| !version.0.is_empty()),
        streaming: true,
        page_items: PAGE_ITEMS_MAX,
        backoff: Backoff::default(),
        relisting: Backoff::default(),
        quality: Quality::default(),
        absence: Absence::default(),
    };
    driver.update(|_| ());
    let to = driver.to.clone();
    tokio::select! {
        () = driver.run() => {}
        () = to.closed() => {}
    }
}

struct Driver {
    client: Client,
    source: Source,
    resource: Resource,
    dispensable: bool,
    turns: Turns,
    to: mpsc::Sender<Delivery>,
    status: Arc<Status>,
    /// Where the watch goes on: everything up to here was handed on. `None`: list.
    position: Option<ResourceVersion>,
    /// The API server may do streaming lists.
    streaming: bool,
    page_items: u32,
    backoff: Backoff,
    /// Counts versions in a row from which it couldn't go on at all.
    relisting: Backoff,
    quality: Quality,
    absence: Absence,
}

/// How long a watch went on that the API server then ended in order.
enum Lasted {
    /// As one does.
    Long,
    /// If that happened again and again, there would be nothing else to do.
    Short,
}

/// What is known of a kind that the API server doesn't have.
#[derive(Default)]
struct Absence {
    /// It has been there.
    listed: bool,
    /// It was missing so many times in a row.
    missed: u32,
    /// That it has no objects was said.
    said: bool,
}

impl Driver {
    async fn run(&mut self) {
        loop {
            let ended = self.turn().await;
            let Some(wait) = self.after(ended).await else { return };
            tokio::time::sleep(wait).await;
        }
    }

    /// One connection's life, or a listing and one. `Ok` if the API server ended it in order.
    async fn turn(&mut self) -> Result<Lasted, Failure> {
        let secs = WATCH_SECS_MIN + (f64::from(WATCH_SECS_SPREAD) * unit()) as u32;
        if self.position.is_none() && self.streaming {
            let request = self.resource.initial(secs)?;
            let stream = WatchStream::open(&self.client, request, self.resource.plural).await?;
            self.opened();
            self.begin_listing();
            let session = Session::listing(self.source, self.resource.plural);
            return self.hear(session, stream).await;
        }
        let version = match self.position.clone() {
            Some(version) => version,
            None => self.pages().await?,
        };
        self.probe(&version).await?;
        let request = self.resource.follow(&version.0, secs)?;
        let stream = WatchStream::open(&self.client, request, self.resource.plural).await?;
        self.opened();
        self.update(|status| status.state = State::Live);
        let session = Session::following(self.source, self.resource.plural, version);
        self.hear(session, stream).await
    }

    /// Is the version one that the API server has come to? If its etcd was restored from a backup it may be of
    /// the future, and a watch from there would be silent until the future comes.
    async fn probe(&self, version: &ResourceVersion) -> Result<(), Failure> {
        let request = self.resource.probe()?;
        let plural = self.resource.plural;
        let (body, _place) =
            transport::document(&self.client, request, plural, &self.turns).await?;
        let now = event::page(&body)?.version;
        if now.order() < version.order() {
            return Err(Failure::Expired(format!(
                "the API server is at version {}, before ours of {}: it was restored",
                now.0, version.0
            )));
        }
        Ok(())
    }

    /// Lists in pages, one of them in memory.
    async fn pages(&mut self) -> Result<ResourceVersion, Failure> {
        let mut session = Session::listing(self.source, self.resource.plural);
        let (mut token, mut first) = (String::new(), None);
        loop {
            let _turn = self.turns.to_read().await;
            let (body, place, whole) = self.page(&token).await?;
            let page = event::page(&body)?;
            if first.is_none() {
                self.opened();
                self.begin_listing();
            }
            let version = first.get_or_insert(page.version);
            let mut items = page.items.iter();
            while !items.as_slice().is_empty() {
                let _turn = self.turns.to_decode().await;
                while !session.is_full()
                    && let Some(item) = items.next()
                {
                    match whole {
                        true => drop(session.object(item.get(), &mut self.quality)),
                        false => session.only_metadata(item.get(), &mut self.quality),
                    }
                }
                if session.is_full() {
                    self.deliver(&mut session, place.as_ref()).await?;
                }
            }
            if page.token.is_empty() {
                session.end(version.clone());
                self.deliver(&mut session, place.as_ref()).await?;
                return Ok(session.version().clone());
            }
            if page.token == token {
                return Err(Failure::Broken("the list leads from a page to the same page".into()));
            }
            if page.items.is_empty() {
                tokio::time::sleep(HASTE_WAIT).await;
            }
            token = page.token;
        }
    }

    /// A page of a list, with as many objects as there is room for. If there is none for a single one, only the metadata of
    /// that, and `false`.
    async fn page(&mut self, token: &str) -> Result<(Vec<u8>, Option<Place>, bool), Failure> {
        let plural = self.resource.plural;
        loop {
            let request = self.resource.page(self.page_items, token)?;
            let read = transport::document(&self.client, request, plural, &self.turns).await;
            match read {
                Err(Failure::PageTooLong) if self.page_items > 1 => {
                    self.page_items = (self.page_items / 8).max(1);
                }
                Err(Failure::PageTooLong) => {
                    let request = self.resource.page_of_metadata(token)?;
                    let read = transport::document(&self.client, request, plural, &self.turns);
                    return read.await.map(|(body, place)| (body, place, false));
                }
                read => {
                    self.page_items = (self.page_items * 2).min(PAGE_ITEMS_MAX);
                    return read.map(|(body, place)| (body, place, true));
                }
            }
        }
    }

    /// Hands on what a watch says until it ends. What has arrived together is handed on together.
    async fn hear(
        &mut self,
        mut session: Session,
        mut stream: WatchStream,
    ) -> Result<Lasted, Failure> {
        let begun = Instant::now();
        let mut turn = self.turns.to_read().await;
        let mut place = None::<Place>;
        loop {
            while self.take(&mut session, &mut stream).await? {
                self.deliver(&mut session, place.as_ref()).await?;
            }
            if !stream.lines.is_large() {
                if place.is_some() {
                    self.deliver(&mut session, place.as_ref()).await?;
                }
                place = None;
            } else if place.is_none() {
                place = Some(self.turns.to_hold().await);
            }
            let more = match stream.more_now() {
                Some(more) => more?,
                None => {
                    // The objects of a listing come one by one, and nobody waits for each; but others wait for their turn.
                    if !session.is_listing() || turn.is_some() {
                        self.deliver(&mut session, place.as_ref()).await?;
                    }
                    // A large object is held until it is there, so that there are few of them.
                    if place.is_none() {
                        drop(turn.take());
                    }
                    let more = stream.more(place.as_ref().map(|place| place.until)).await?;
                    if turn.is_none() {
                        turn = self.turns.to_read().await;
                    }
                    more
                }
            };
            if !more {
                break;
            }
        }
        self.deliver(&mut session, None).await?;
        if session.is_listing() {
            self.streaming = false;
            return Err(Failure::Broken("the watch ended before the listing did".to_owned()));
        }
        Ok(match begun.elapsed() < WATCH_SHORT {
            true => Lasted::Short,
            false => Lasted::Long,
        })
    }

    /// Takes lines that have arrived. Are there so many that what they say must be handed on first?
    async fn take(
        &mut self,
        session: &mut Session,
        stream: &mut WatchStream,
    ) -> Result<bool, Failure> {
        let _turn = self.turns.to_decode().await;
        while let Some(line) = stream.lines.next() {
            match line {
                Line::Whole(line) => session.line(line, &mut self.quality)?,
                Line::TooLong(head) => session.too_long(head, &mut self.quality),
            }
            if session.is_full() {
                return Ok(true);
            }
        }
        if stream.lines.is_endless() {
            return Err(Failure::Broken(format!(
                "an object is longer than {SKIPPED_BYTES_MAX} bytes, and goes on"
            )));
        }
        Ok(false)
    }

    /// Hands on what the session has. Waits while there is no room, and so does the API server.
    async fn deliver(
        &mut self,
        session: &mut Session,
        place: Option<&Place>,
    ) -> Result<(), Failure> {
        let changes = session.take();
        let Quality { rejects, partial, .. } = self.quality;
        self.update(|status| (status.rejects, status.partial) = (rejects, partial));
        if changes.is_empty() {
            return Ok(());
        }
        let delivery = Delivery::held(changes, place.cloned());
        self.to.send(delivery).await.map_err(|_| Failure::Closed)?;
        if !session.is_listing() {
            self.position = Some(session.version().clone());
            self.absence.listed = true;
            self.backoff.reset();
            self.update(|status| status.state = State::Live);
        }
        Ok(())
    }

    /// What to do after a watch has ended: wait so long, or `None`: nothing any more.
    async fn after(&mut self, ended: Result<Lasted, Failure>) -> Option<Duration> {
        let ended = match ended {
            Err(Failure::Closed) => return None,
            Err(Failure::Unsupported(why)) if self.streaming && self.position.is_none() => {
                tracing::info!(source = %self.source, "listing in pages, since streaming is refused: {why}");
                self.streaming = false;
                return Some(Duration::ZERO);
            }
            Err(Failure::Absent) if self.resource.optional => return self.absent().await,
            ended => ended,
        };
        if let Err(Failure::Refused(_)) = ended
            && self.dispensable
            && self.position.is_none()
        {
            self.say_absent().await?;
        }
        self.absence.missed = 0;
        self.update(|status| status.restarts += 1);
        let failure = match ended {
            Ok(Lasted::Long) => {
                self.backoff.reset();
                self.relisting.reset();
                return Some(Duration::ZERO);
            }
            Ok(Lasted::Short) => return Some(HASTE_WAIT),
            Err(failure) => failure,
        };
        // A version that the API server can't even parse is none to go on from either.
        let lost = matches!(failure, Failure::Expired(_) | Failure::Unsupported(_));
        let wait = match lost && self.position.take().is_some() {
            // It answers, so there is nothing to wait for, however long it was away; unless it does that every time.
            true => self.relisting.wait(),
            false => self.backoff.wait(),
        };
        self.failed(&failure, wait);
        Some(wait)
    }

    /// Says what failed; loudly only what is new.
    fn failed(&self, failure: &Failure, wait: Duration) {
        let (source, text) = (self.source, failure.to_string());
        if self.status.of(source).last_error.as_ref() == Some(&text) {
            tracing::debug!(%source, ?wait, "again: {text}");
        } else {
            tracing::warn!(%source, ?wait, "{text}");
        }
        self.update(|status| {
            status.state = match failure {
                Failure::Refused(why) => State::Refused(why.clone()),
                _ => State::Connecting,
            };
            status.last_error = Some(text);
        });
    }

    /// The API server doesn't have the kind: then there are no objects of it. If there were some, that is said
    /// only after a second look.
    async fn absent(&mut self) -> Option<Duration> {
        self.absence.missed += 1;
        let known = self.position.is_some() || self.absence.listed;
        if known && self.absence.missed < 2 {
            return Some(ABSENT_DOUBT);
        }
        self.position = None;
        if !self.absence.said {
            let source = self.source;
            tracing::info!(%source, "the API server doesn't have this kind; looking again every {ABSENT_WAIT:?}");
        }
        self.say_absent().await?;
        self.update(|status| status.state = State::Absent);
        Some(ABSENT_WAIT.mul_f64(0.5 + unit()))
    }

    /// Says that there are no objects; if that was said last, that it is so still, since what is known of a source has an
    /// age. `None`: nobody takes it any more.
    async fn say_absent(&mut self) -> Option<()> {
        let (source, version) = (self.source, ResourceVersion::default());
        let changes = match self.absence.said {
            true => vec![Change::Checkpoint { source, version }],
            false => vec![Change::Begin { source }, Change::End { source, version }],
        };
        self.to.send(Delivery::new(changes)).await.ok()?;
        if !self.absence.said {
            self.absence = Absence { said: true, ..Absence::default() };
        }
        Some(())
    }

    /// The API server has the kind, and lets us have it.
    fn opened(&mut self) {
        self.absence.missed = 0;
        self.absence.said = false;
    }

    fn begin_listing(&self) {
        tracing::debug!(source = %self.source, "listing");
        self.update(|status| {
            status.state = State::Listing;
            status.listings += 1;
        });
    }

    fn update(&self, change: impl FnOnce(&mut SourceStatus)) {
        self.status.update(self.source, change);
    }
}
