//! What the writer's thread has seen of links: their credentials, which are not stored, and that something is different now.

use std::collections::BTreeMap;

use model::limits::LINKS_MAX;
use model::{Change, Credentials, Object, ObjectName};
use parking_lot::Mutex;
use store::{Commit, WakeKey};
use tokio::sync::Notify;

/// Written by the spine, read by who follows the links.
#[derive(Debug, Default)]
pub(in super::super) struct Known {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// By the Secret that they are in, each with the number of the write that brought it.
    credentials: BTreeMap<ObjectName, (u64, Credentials)>,
    writes: u64,
}

/// What changes say of credentials. It counts once they are committed.
#[derive(Debug, Default)]
pub(in super::super) struct News(Vec<(ObjectName, Option<Credentials>)>);

impl News {
    /// What these changes say.
    pub(in super::super) fn of(changes: &[Change]) -> News {
        let said = |change: &Change| match change {
            Change::Put { key, object: Object::Link(link), .. } => {
                let credentials = link.as_ref().ok().map(|link| link.credentials.clone());
                Some((key.name.clone(), credentials))
            }
            _ => None,
        };
        News(changes.iter().filter_map(said).collect())
    }
}

impl Known {
    /// A commit was made, of changes that say this.
    pub(in super::super) fn committed(&self, commit: &Commit, News(news): News) {
        for (secret, credentials) in news {
            self.state.lock().write(secret, credentials);
        }
        if commit.touched.contains(&WakeKey::links()) {
            self.changed.notify_one();
        }
    }

    /// Returns when anything has changed since it returned last.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    /// What is in a Secret; `None`: it has not been read since the start.
    pub(super) fn of(&self, secret: &ObjectName) -> Option<Credentials> {
        self.state.lock().credentials.get(secret).map(|(_, credentials)| credentials.clone())
    }

    /// How often credentials have been written. What the store is asked from now on it says after that.
    pub(super) fn writes(&self) -> u64 {
        self.state.lock().writes
    }

    /// Forgets those of Secrets that are gone, as the store says after so many writes.
    pub(super) fn keep(&self, writes: u64, is_there: impl Fn(&ObjectName) -> bool) {
        let later = |write: u64| write > writes;
        self.state
            .lock()
            .credentials
            .retain(|secret, (write, _)| later(*write) || is_there(secret));
    }
}

impl State {
    fn write(&mut self, secret: ObjectName, credentials: Option<Credentials>) {
        let Some(credentials) = credentials else {
            self.credentials.remove(&secret);
            return;
        };
        if self.credentials.len() >= LINKS_MAX && !self.credentials.contains_key(&secret) {
            tracing::error!(%secret, "more than {LINKS_MAX} links; this one is not followed");
            return;
        }
        self.writes += 1;
        self.credentials.insert(secret, (self.writes, credentials));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(number: usize) -> ObjectName {
        ObjectName::new("mesh", number.to_string()).unwrap()
    }

    #[test]
    fn who_looked_before_a_secret_was_there_does_not_forget_it() {
        let known = Known::default();
        let begun = known.writes();
        let news = News(vec![(secret(1), Some(Credentials("a".into())))]);
        known.committed(&Commit::default(), news);
        known.keep(begun, |_| false);
        assert_eq!(known.of(&secret(1)), Some(Credentials("a".into())));
        known.keep(known.writes(), |_| false);
        assert_eq!(known.of(&secret(1)), None);
    }

    #[test]
    fn there_are_no_more_than_the_limit() {
        let known = Known::default();
        for number in 0..LINKS_MAX + 10 {
            let news = News(vec![(secret(number), Some(Credentials::default()))]);
            known.committed(&Commit::default(), news);
        }
        assert!(
            known.of(&secret(LINKS_MAX - 1)).is_some() && known.of(&secret(LINKS_MAX)).is_none()
        );
        // One that is not right any more makes room.
        known.committed(&Commit::default(), News(vec![(secret(0), None)]));
        known.committed(
            &Commit::default(),
            News(vec![(secret(LINKS_MAX), Some(Credentials::default()))]),
        );
        assert!(known.of(&secret(LINKS_MAX)).is_some());
    }
}
