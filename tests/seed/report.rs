//! What was measured, as a table in Markdown.

use std::time::Duration;

use anyhow::Result;
use harness::pulse::Times;

use crate::world::{FILE, MEMORY_MAX, World};

pub(crate) struct Report {
    rows: Vec<(String, String)>,
}

impl Report {
    pub(crate) fn new(world: &World) -> Report {
        let mut report = Report { rows: Vec::new() };
        let profile = if cfg!(debug_assertions) { "debug" } else { "release" };
        report.row("build", profile.to_owned());
        let limit = match world.cgroup {
            Some(_) => format!("{}, a cgroup's", mib(MEMORY_MAX)),
            None => {
                format!("{}, compared with the resident memory: no cgroup here", mib(MEMORY_MAX))
            }
        };
        report.row("limit of its memory", limit);
        report
    }

    fn row(&mut self, what: &str, number: String) {
        self.rows.push((what.to_owned(), number));
    }

    pub(crate) fn count(&mut self, what: &str, count: u64) {
        self.row(what, count.to_string());
    }

    /// How large the program is now.
    pub(crate) async fn state(&mut self, when: &str, world: &World) -> Result<()> {
        self.row(&format!("resident memory {when}"), mib(world.server.memory("VmRSS")?));
        self.row(&format!("file {when}"), mib(world.metric(FILE).await?));
        Ok(())
    }

    /// How long changes took.
    pub(crate) fn times(&mut self, what: &str, times: &Times) {
        let [half, most, all] = [50, 99, 100].map(|percent| ms(times.percentile(percent)));
        let number = format!("p50 {half}, p99 {most}, max {all}, of {}", times.count());
        self.row(what, number);
    }

    /// What there was at most, and all of the table.
    pub(crate) fn end(mut self, world: &World) -> Result<()> {
        self.row("most resident memory ever", mib(world.server.memory("VmHWM")?));
        if let Some(cgroup) = &world.cgroup {
            let usage = mib(cgroup.usage_bytes_max()?);
            self.row("most memory of its cgroup ever, with the kernel's cache of the file", usage);
            self.count("killed for want of memory", cgroup.ooms()?);
        }
        let rows = self.rows.iter().map(|(what, number)| format!("| {what} | {number} |"));
        say(&format!("| what | number |\n|---|---|\n{}", rows.collect::<Vec<_>>().join("\n")));
        Ok(())
    }
}

fn mib(bytes: u64) -> String {
    format!("{} MiB", bytes.div_ceil(1 << 20))
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1_000.0)
}

#[expect(clippy::print_stdout, reason = "the table is for whoever runs it")]
fn say(text: &str) {
    println!("{text}");
}
