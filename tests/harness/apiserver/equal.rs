//! The store against the API server: the same objects at the same versions, kind by kind.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail};
use model::{ClusterId, EndpointsFrom, Kind, ObjectName, ResourceVersion, Source};
use store::Reader;

use super::Objects;

/// How long the store may take to follow. It takes milliseconds, or a wait between two attempts.
const PATIENCE: Duration = Duration::from_secs(90);

type Versions = BTreeMap<(Kind, ObjectName), ResourceVersion>;

/// Returns when the store holds exactly the API server's objects, but for one that can't be read.
pub async fn equal(
    objects: &Objects,
    reader: &Reader,
    endpoints: EndpointsFrom,
    except: Option<&str>,
) -> Result<()> {
    let mut differences = Vec::new();
    let equal = async {
        loop {
            // The store first: what is written in between shows as a difference, and not as none.
            let stored = stored(reader, endpoints)?;
            let mut there = there(objects, endpoints).await?;
            there.retain(|(_, name), _| except != Some(name.name()));
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

/// Of Secrets only those of a namespace are stored, which isn't known here.
fn compared(endpoints: EndpointsFrom) -> impl Iterator<Item = Kind> {
    endpoints.kinds().filter(|kind| *kind != Kind::Secret)
}

async fn there(objects: &Objects, endpoints: EndpointsFrom) -> Result<Versions> {
    let mut all = Versions::new();
    for kind in compared(endpoints) {
        let list = objects.list(kind).await?;
        all.extend(list.into_iter().map(|(name, version)| ((kind, name), version)));
    }
    Ok(all)
}

fn stored(reader: &Reader, endpoints: EndpointsFrom) -> Result<Versions> {
    let snapshot = reader.snapshot()?;
    let mut all = Versions::new();
    for kind in compared(endpoints) {
        let source = Source { cluster: ClusterId::LOCAL, kind };
        snapshot.objects(source, &mut |name, version| {
            all.insert((kind, name), version);
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
