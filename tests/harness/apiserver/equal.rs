//! The store against the API server: the same objects at the same versions, kind by kind.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use model::{ClusterId, EndpointsFrom, Kind, ObjectName, ResourceVersion, Source, StoredPart};
use store::Reader;

use super::Objects;

/// How long the store may take to follow. It takes milliseconds, or a wait between two attempts.
const PATIENCE: Duration = Duration::from_secs(90);

/// What is compared.
struct Scope<'a> {
    cluster: ClusterId,
    kinds: Vec<Kind>,
    /// All, if there is none.
    namespace: Option<&'a str>,
    /// But for this one.
    except: Option<&'a str>,
}

type Versions = BTreeMap<(Kind, ObjectName), ResourceVersion>;

/// Returns when the store holds exactly the API server's objects, but for one that can't be read.
pub async fn equal(
    objects: &Objects,
    reader: &Reader,
    endpoints: EndpointsFrom,
    except: Option<&str>,
) -> Result<()> {
    // Of Secrets only those of a namespace are stored, which isn't known here.
    let kinds = endpoints.kinds().filter(|kind| *kind != Kind::Secret).collect();
    let scope = Scope { cluster: ClusterId::LOCAL, kinds, namespace: None, except };
    until_equal(objects, reader, &scope).await
}

/// The same of a part of a linked cluster.
pub async fn equal_part(objects: &Objects, reader: &Reader, stored: &StoredPart) -> Result<()> {
    let kinds = EndpointsFrom::Slices.kinds_of_linked().to_vec();
    let namespace = Some(stored.part.namespace.as_str());
    let scope = Scope { cluster: stored.id, kinds, namespace, except: None };
    until_equal(objects, reader, &scope).await
}

async fn until_equal(objects: &Objects, reader: &Reader, scope: &Scope<'_>) -> Result<()> {
    let mut differences = Vec::new();
    let equal = async {
        loop {
            // The store first: what is written in between shows as a difference, and not as none.
            let stored = stored(reader, scope)?;
            let there = there(objects, scope).await?;
            differences = compare(&there, &stored);
            if differences.is_empty() {
                return anyhow::Ok(());
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    match tokio::time::timeout(PATIENCE, equal).await {
        Ok(done) => done,
        Err(_) => bail!("the store differs from the API server:\n{}", differences.join("\n")),
    }
}

async fn there(objects: &Objects, scope: &Scope<'_>) -> Result<Versions> {
    let mut all = Versions::new();
    for kind in &scope.kinds {
        let list = objects.list(*kind).await?;
        all.extend(list.into_iter().map(|(name, version)| ((*kind, name), version)));
    }
    all.retain(|(_, name), _| {
        scope.except != Some(name.name()) && scope.namespace.is_none_or(|it| it == name.namespace())
    });
    Ok(all)
}

fn stored(reader: &Reader, scope: &Scope<'_>) -> Result<Versions> {
    let snapshot = reader.snapshot()?;
    let mut all = Versions::new();
    for kind in &scope.kinds {
        let source = Source { cluster: scope.cluster, kind: *kind };
        snapshot.objects(source, &mut |name, version| {
            all.insert((*kind, name), version);
        })?;
    }
    Ok(all)
}

fn compare(there: &Versions, stored: &Versions) -> Vec<String> {
    let mut lines = Vec::new();
    for ((kind, name), version) in there {
        match stored.get(&(*kind, name.clone())) {
            Some(same) if same == version => {}
            Some(other) => {
                lines.push(format!("{kind} {name} is {}, stored is {}", version.0, other.0))
            }
            None => lines.push(format!("{kind} {name} is not stored")),
        }
    }
    let gone = stored.keys().filter(|key| !there.contains_key(key));
    lines.extend(gone.map(|(kind, name)| format!("{kind} {name} is stored, and gone")));
    lines
}
