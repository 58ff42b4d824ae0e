//! What runs in a process of its own, so that its memory is its own.

use std::io::BufRead as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use data::ingest::{Run, config, ours, raw, tables};
use serde_json::{Value, json};

/// Runs this program with `child` and these arguments, in a memory cgroup if one is given; gives the JSON object
/// that it printed.
pub(crate) fn spawn(args: &[&str], cgroup: Option<&Path>) -> anyhow::Result<Value> {
    let exe = std::env::current_exe()?;
    let mut command = match cgroup {
        None => Command::new(&exe),
        // A shell enters the cgroup, and becomes the program.
        Some(cgroup) => {
            let enter = format!("echo $$ > {}/cgroup.procs && exec \"$@\"", cgroup.display());
            let mut shell = Command::new("sh");
            shell.args(["-c", &enter, "sh"]).arg(&exe);
            shell
        }
    };
    let mut child = command.arg("child").args(args).stdout(Stdio::piped()).spawn()?;
    let out = child.stdout.take().context("the child has no output")?;
    let mut last = String::new();
    for line in std::io::BufReader::new(out).lines() {
        last = line?;
    }
    let status = child.wait()?;
    if args[0] == "killed" && status.signal().is_some() {
        return Ok(Value::Null);
    }
    anyhow::ensure!(status.success(), "{args:?} ended with {status}");
    serde_json::from_str(&last).with_context(|| format!("{args:?} printed {last:?}"))
}

/// What a child was asked for.
pub(crate) fn run(args: &[String]) -> anyhow::Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let result = match words.as_slice() {
        ["ours", folder, spec, cache] => child_ours(Path::new(folder), spec, cache.parse()?)?,
        ["raw", folder, ours, cache] => child_raw(Path::new(folder), ours, cache.parse()?)?,
        ["open", folder, cache] => child_open(Path::new(folder), cache.parse()?)?,
        ["killed", folder, cache] => child_killed(Path::new(folder), cache.parse()?)?,
        _ => anyhow::bail!("{words:?} is not for children"),
    };
    data::result(&result);
    Ok(())
}

fn child_ours(folder: &Path, spec: &str, cache: usize) -> anyhow::Result<Value> {
    let made = ::ingest::synthetic::Cluster::new(spec.parse()?).listing();
    let (mut writer, reader, _) = store::open(folder, config(cache))?;
    let run = ours(&mut writer, made)?;
    let (tables, rows, bytes) = tables(&reader)?;
    let loose = reader.file_bytes();
    let ingest = memory()?;
    // The log as it is an hour later, and the space given back.
    let later = model::Time(2 * 60 * 60 * 1_000);
    while writer.tick(later)?.is_some() {}
    let begun = data::now();
    writer.begin_compaction()?;
    while writer.compact()? {}
    let compacted = begun.elapsed();
    let memory = memory()?;
    let shape = |table: &store::TableStats| {
        json!([table.name, table.rows, table.key_bytes, table.value_bytes])
    };
    Ok(json!({
        "endpoints": reader.stats().endpoints,
        "time_s": run.time.as_secs_f64(),
        "commits": run.commits,
        "rows": rows,
        "bytes": bytes,
        "rss_mib": data::mib(ingest.0),
        "rss_peak_mib": data::mib(ingest.1),
        "rss_compacted_peak_mib": data::mib(memory.1),
        "file_bytes": loose,
        "compacted_bytes": reader.file_bytes(),
        "compacted_s": compacted.as_secs_f64(),
        "tables": tables.iter().map(shape).collect::<Vec<_>>(),
    }))
}

fn child_raw(folder: &Path, ours: &str, cache: usize) -> anyhow::Result<Value> {
    let ours: Value = serde_json::from_str(ours)?;
    let number = |value: &Value| value.as_u64().unwrap_or(0);
    let shape = |table: &Value| store::TableStats {
        name: table[0].as_str().unwrap_or("").to_owned().leak(),
        rows: number(&table[1]),
        key_bytes: number(&table[2]),
        value_bytes: number(&table[3]),
    };
    let tables: Vec<_> = ours["tables"].as_array().into_iter().flatten().map(shape).collect();
    let run: Run = raw(&folder.join("raw.redb"), cache, &tables, number(&ours["commits"]))?;
    Ok(json!({ "time_s": run.time.as_secs_f64() }))
}

/// Opens a store and takes a snapshot: what a server does before it is ready.
fn child_open(folder: &Path, cache: usize) -> anyhow::Result<Value> {
    let begun = data::now();
    let (_writer, reader, birth) = store::open(folder, config(cache))?;
    let revision = reader.snapshot()?.revision();
    let time: Duration = begun.elapsed();
    anyhow::ensure!(matches!(birth, store::Birth::Opened(_)), "{birth:?}");
    let (rss, _) = memory()?;
    let time = data::ms(time);
    Ok(json!({ "open_ms": time, "revision": revision.0, "rss_mib": data::mib(rss) }))
}

/// Writes to a store and ends as if it were killed, with the store open.
fn child_killed(folder: &Path, cache: usize) -> anyhow::Result<Value> {
    let (mut writer, _reader, _) = store::open(folder, config(cache))?;
    let source = model::Source { cluster: model::ClusterId::LOCAL, kind: model::Kind::Node };
    let name = model::ObjectName::new("", "one-more")?;
    writer.commit(
        model::Time(0),
        vec![model::Change::Put {
            key: model::Key { source, name },
            version: model::ResourceVersion("1".to_owned()),
            object: model::Object::Node { zone: None },
        }],
    )?;
    writer.sync()?;
    std::process::abort()
}

/// Resident memory of this process, and its peak.
fn memory() -> anyhow::Result<(u64, u64)> {
    let line = |name: &str| data::memory(std::process::id(), name);
    Ok((line("VmRSS")?, line("VmHWM")?))
}
