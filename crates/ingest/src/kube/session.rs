//! What is heard over one connection, as changes; no I/O.

use model::limits::VERSION_BYTES_MAX;
use model::{Change, Key, ObjectName, ResourceVersion, Source};

use super::event::{self, Event};
use super::failure::Failure;
use super::head::{self, Head};
use super::limits::{
    DELIVERY_BYTES_MAX, DELIVERY_CHANGES_MAX, DELIVERY_ENDPOINTS_MAX, LINE_BYTES_MAX,
    PAGE_BYTES_MAX,
};
use super::noted::{Note, Noted};
use crate::objects::{self, Observed, Reject};

/// Turns events into changes, and keeps them until they are taken.
pub(super) struct Session {
    source: Source,
    plural: &'static str,
    /// A listing is not over: its objects may come in any order of versions, so there is no checkpoint.
    listing: bool,
    /// Everything up to here was heard.
    version: ResourceVersion,
    changes: Vec<Change>,
    endpoints: usize,
    /// Bytes of the texts that the changes were read from.
    bytes: usize,
    /// The version of the last checkpoint or end.
    settled: ResourceVersion,
}

/// What a driver remembers from one session to the next about bad objects.
#[derive(Debug, Default)]
pub(super) struct Quality {
    /// Objects that could not be read, since the driver began.
    pub(super) rejects: u64,
    /// Objects of which a part was skipped, since the driver began.
    pub(super) partial: u64,
    rejected: Noted,
    warned: Noted,
}

impl Session {
    /// A session that begins with a listing.
    pub(super) fn listing(source: Source, plural: &'static str) -> Session {
        let mut session = Session::following(source, plural, ResourceVersion::default());
        session.listing = true;
        session.changes.push(Change::Begin { source });
        session
    }

    /// A session that goes on after a version.
    pub(super) fn following(
        source: Source,
        plural: &'static str,
        version: ResourceVersion,
    ) -> Session {
        let settled = version.clone();
        let (changes, endpoints, bytes) = (Vec::new(), 0, 0);
        Session { source, plural, listing: false, version, changes, endpoints, bytes, settled }
    }

    /// Is a listing still under way?
    pub(super) fn is_listing(&self) -> bool {
        self.listing
    }

    /// Up to where the watch was heard, once nothing is listed any more.
    pub(super) fn version(&self) -> &ResourceVersion {
        &self.version
    }

    /// Must what is there be taken before more is added?
    pub(super) fn is_full(&self) -> bool {
        self.changes.len() >= DELIVERY_CHANGES_MAX
            || self.endpoints >= DELIVERY_ENDPOINTS_MAX
            || self.bytes >= DELIVERY_BYTES_MAX
    }

    /// A line of a watch.
    pub(super) fn line(&mut self, line: &[u8], quality: &mut Quality) -> Result<(), Failure> {
        match event::event(line)? {
            Event::Put(object) => {
                let version = self.object(object, quality);
                self.advance(version);
            }
            Event::Deleted(object) => {
                match objects::name_of(self.source.kind, object) {
                    Some(name) => self.delete(name, quality),
                    None => quality.reject(self.source, &nameless(object)),
                }
                self.advance(event::version_of(object));
            }
            Event::Bookmark { version, initial_end } if self.listing => {
                if initial_end {
                    self.end(ResourceVersion(version));
                }
            }
            Event::Bookmark { version, .. } => self.advance(Some(version)),
            Event::Error(status) => return Err(Failure::of_status(&status, "watch", self.plural)),
        }
        Ok(())
    }

    /// A line that is too long to be read; this is how it begins.
    pub(super) fn too_long(&mut self, line: &[u8], quality: &mut Quality) {
        let Head { kind, name, namespace, version } = head::read(line);
        let namespace = objects::namespace(self.source.kind, &namespace);
        let name = ObjectName::new(namespace, name).ok();
        match name {
            Some(name) if kind == "DELETED" => self.delete(name, quality),
            name => {
                let reason = format!("it is longer than {LINE_BYTES_MAX} bytes");
                self.skip(Reject { name, reason }, quality);
            }
        }
        self.advance(Some(version).filter(|it| it.len() <= VERSION_BYTES_MAX));
    }

    /// An object of which only the metadata is known: it was too long to be read.
    pub(super) fn only_metadata(&mut self, object: &str, quality: &mut Quality) {
        let name = objects::name_of(self.source.kind, object);
        let reason = format!("it is longer than {PAGE_BYTES_MAX} bytes");
        self.skip(Reject { name, reason }, quality);
    }

    /// An object as it is now. Gives its version, if that can be read.
    pub(super) fn object(&mut self, object: &str, quality: &mut Quality) -> Option<String> {
        self.bytes += object.len();
        match objects::decode(self.source.cluster, self.source.kind, object) {
            Ok(observed) => {
                quality.observe(&observed);
                let Observed { key, version, object, .. } = observed;
                self.endpoints += object.endpoint_count();
                let heard = version.0.clone();
                self.changes.push(Change::Put { key, version, object });
                Some(heard)
            }
            Err(reject) => {
                self.skip(reject, quality);
                event::version_of(object)
            }
        }
    }

    /// What is stored of an object stays, although it can't be read.
    fn skip(&mut self, reject: Reject, quality: &mut Quality) {
        quality.reject(self.source, &reject);
        if let Some(name) = reject.name {
            self.changes.push(Change::Keep { key: Key { source: self.source, name } });
        }
    }

    fn delete(&mut self, name: ObjectName, quality: &mut Quality) {
        quality.gone(&name);
        self.changes.push(Change::Delete { key: Key { source: self.source, name } });
    }

    /// The listing is complete.
    pub(super) fn end(&mut self, version: ResourceVersion) {
        self.listing = false;
        self.changes.push(Change::End { source: self.source, version: version.clone() });
        (self.version, self.settled) = (version.clone(), version);
    }

    fn advance(&mut self, version: Option<String>) {
        if let Some(version) = version.filter(|it| !self.listing && !it.is_empty()) {
            self.version = ResourceVersion(version);
        }
    }

    /// What there is to hand on, with a checkpoint at its end. Empty if there is nothing.
    pub(super) fn take(&mut self) -> Vec<Change> {
        (self.endpoints, self.bytes) = (0, 0);
        if !self.listing && self.version != self.settled {
            let version = self.version.clone();
            self.changes.push(Change::Checkpoint { source: self.source, version });
            self.settled = self.version.clone();
        }
        std::mem::take(&mut self.changes)
    }
}

impl Quality {
    fn reject(&mut self, source: Source, reject: &Reject) {
        self.rejects += 1;
        let note = reject.name.as_ref().map_or(Note::New, |name| self.rejected.bad(name));
        if note != Note::Known {
            tracing::warn!(%source, "object skipped, what is stored of it stays: {reject}");
        }
        if note == Note::Last {
            tracing::warn!(%source, "further bad objects are only counted, not named");
        }
    }

    fn observe(&mut self, observed: &Observed) {
        let Observed { key, warnings, .. } = observed;
        self.rejected.good(&key.name);
        if warnings.is_empty() {
            return self.warned.good(&key.name);
        }
        self.partial += 1;
        let note = self.warned.bad(&key.name);
        if note != Note::Known {
            tracing::warn!(%key, "parts of the object are skipped, or make no sense: {}", warnings.join("; "));
        }
        if note == Note::Last {
            tracing::warn!(source = %key.source, "further such objects are not named");
        }
    }

    fn gone(&mut self, name: &ObjectName) {
        self.rejected.good(name);
        self.warned.good(name);
    }
}

fn nameless(object: &str) -> Reject {
    let version = event::version_of(object).unwrap_or_default();
    Reject { name: None, reason: format!("a deleted object (version {version}) without a name") }
}
