//! A program of somebody else's that must not outlive the test, not even one that is killed.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

/// Runs a program, and kills it when its own input is closed: by us, or by the kernel if we are gone.
const GUARD: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- & program=$!
(read -r line <&3; kill -9 $program) 2>/dev/null & guard=$!
wait $program; code=$?
kill $guard 2>/dev/null
exit $code"#;

/// A program that runs. Dropping it kills it, and waits until it is gone.
pub(super) struct Process {
    /// The shell around it.
    guard: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program that writes to a log file.
    pub(super) fn start(program: &Path, args: &[String], log: &Path) -> Result<Process> {
        let file = File::options().create(true).append(true).open(log)?;
        let guard = Command::new("sh")
            .args(["-c", GUARD, "sh"])
            .arg(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(file.try_clone()?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("starting {}", program.display()))?;
        Ok(Process { guard, log: log.to_owned() })
    }

    /// Has it ended by itself?
    pub(super) fn has_ended(&mut self) -> bool {
        !matches!(self.guard.try_wait(), Ok(None))
    }

    /// The end of its log, for an error.
    pub(super) fn last_words(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        let log = String::from_utf8_lossy(&log);
        let lines: Vec<_> = log.lines().collect();
        lines[lines.len().saturating_sub(8)..].join("\n")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Its input; the guard then kills the program, and ends.
        drop(self.guard.stdin.take());
        drop(self.guard.wait());
    }
}
