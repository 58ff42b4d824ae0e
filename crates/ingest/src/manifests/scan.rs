//! Which files there are, and whether one has changed.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use model::limits::{MANIFEST_DEPTH_MAX, MANIFEST_FILES_MAX};

/// What differs after a file was written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) modified_ns: u64,
    pub(super) bytes: u64,
}

/// The manifests in a folder and the folders within, by their paths from there. Symlinks are followed, and
/// names that start with a dot are left out: a mounted ConfigMap is links into such a folder.
pub(super) fn scan(dir: &Path) -> Result<BTreeMap<PathBuf, Stamp>, String> {
    let mut files = BTreeMap::new();
    visit(dir, Path::new(""), 0, &mut files)?;
    Ok(files)
}

fn visit(
    dir: &Path,
    below: &Path,
    depth: usize,
    files: &mut BTreeMap<PathBuf, Stamp>,
) -> Result<(), String> {
    let folder = dir.join(below);
    let fail = |error: io::Error| format!("{}: cannot be listed: {error}", folder.display());
    let entries = match fs::read_dir(&folder) {
        // Between finding it and looking into it, it went.
        Err(error) if error.kind() == io::ErrorKind::NotFound && depth > 0 => return Ok(()),
        entries => entries.map_err(fail)?,
    };
    for entry in entries {
        let name = entry.map_err(fail)?.file_name();
        let path = below.join(&name);
        if name.to_string_lossy().starts_with('.') {
            continue;
        }
        let metadata = match fs::metadata(dir.join(&path)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            metadata => metadata.map_err(fail)?,
        };
        if metadata.is_dir() && depth < MANIFEST_DEPTH_MAX {
            visit(dir, &path, depth + 1, files)?;
        } else if metadata.is_file() && is_manifest(&path) {
            if files.len() == MANIFEST_FILES_MAX {
                return Err(format!("{}: more than {MANIFEST_FILES_MAX} manifests", dir.display()));
            }
            files.insert(path, Stamp::of(&metadata).map_err(fail)?);
        }
    }
    Ok(())
}

fn is_manifest(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "yaml" || end == "yml" || end == "json")
}

impl Stamp {
    fn of(metadata: &fs::Metadata) -> io::Result<Stamp> {
        // A file from before 1970 is as old as can be.
        let age = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
        let modified_ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
        Ok(Stamp { modified_ns, bytes: metadata.len() })
    }
}
