//! Opens the store and gets its sources ready, so that the two fit.

use anyhow::Context as _;
use model::{Change, ClusterId, Source, Time};
use store::{Birth, Fsync, Reader, Writer};

use super::origin::{self, Origin};
use super::sources::{self, Sources};
use crate::Options;

/// A store, and sources that fit it.
pub(super) struct Opened {
    pub(super) writer: Writer,
    pub(super) reader: Reader,
    pub(super) sources: Sources,
    pub(super) origin: Option<Origin>,
}

/// Opens the store of what the options say the data is from; that of another cluster is replaced by a new one.
pub(super) async fn open(options: &Options) -> anyhow::Result<Opened> {
    let mut origin = Origin::read(&options.data, &options.source)?;
    let (mut writer, mut reader) = open_store(options).await?;
    let sources = sources::prepare(options).await?;
    if let Some(origin) = &mut origin {
        if let Some(client) = sources.client()
            && origin.is_foreign(client).await
        {
            drop((writer, reader));
            origin::drop_store(&options.data)?;
            (writer, reader) = open_store(options).await?;
        }
        origin.write()?;
    }
    let other = options.endpoints.other_kind();
    let has_objects = reader.stats().objects.get(&other).is_some_and(|count| *count > 0);
    let snapshot = reader.snapshot()?;
    let parts = snapshot.parts()?.into_iter().map(|part| part.id);
    let clusters = std::iter::once(ClusterId::LOCAL).chain(parts);
    let known: Vec<_> = clusters.map(|cluster| Source { cluster, kind: other }).collect();
    let mut listed = false;
    for source in &known {
        listed |= snapshot.checkpoint(*source)?.is_some();
    }
    drop(snapshot);
    if has_objects || listed {
        let forgotten = tokio::task::spawn_blocking(move || forget(writer, known)).await?;
        writer = forgotten.with_context(|| format!("{other} of before can't be forgotten"))?;
    }
    Ok(Opened { writer, reader, sources, origin })
}

/// Forgets the objects of a kind that nobody watches any more: it would say for ever what it said last.
fn forget(mut writer: Writer, sources: Vec<Source>) -> Result<Writer, store::Error> {
    let forget = |source| Change::Forget { source };
    writer.commit(Time(0), sources.into_iter().map(forget).collect())?;
    while writer.tick(Time(0))?.is_some() {}
    Ok(writer)
}

/// Opens the store, on a thread that may block: after a crash it may have to repair its file.
async fn open_store(options: &Options) -> anyhow::Result<(Writer, Reader)> {
    let (folder, volume, config) = (options.data.clone(), options.volume.clone(), config(options));
    let opening = tokio::task::spawn_blocking(move || match volume {
        Some(volume) => store::open_on(volume, config),
        None => store::open(&folder, config),
    });
    let (writer, reader, birth) = opening.await.context("opening the store panicked")??;
    match birth {
        Birth::Created => tracing::info!("a new store; everything is learnt anew"),
        Birth::Opened(revision) => tracing::info!(revision = revision.0, "the store is there"),
        Birth::Rebuilt { aside, reason } => tracing::warn!(
            %reason, aside = %aside.display(),
            "the store could not be used and was moved aside; everything is learnt anew"
        ),
    }
    Ok((writer, reader))
}

fn config(options: &Options) -> store::Config {
    store::Config {
        cache_bytes: options.memory.cache_bytes,
        hot_bytes: options.memory.hot_bytes,
        join: resolve::join,
        join_version: resolve::JOIN_VERSION,
        undo: options.undo,
        admission: options.admission,
        fsync: match options.fsync_interval {
            Some(_) => Fsync::Together,
            None => Fsync::Commit,
        },
        disk_quota_bytes: options.disk_quota_bytes,
    }
}
