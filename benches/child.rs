//! A process that says things, line by line, and may be asked.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use anyhow::Context as _;

/// A process of this program. Dropping it ends it.
#[derive(Debug)]
pub struct Child {
    child: std::process::Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Child {
    /// Starts it with `child` and these arguments.
    pub fn start(args: &[&str]) -> anyhow::Result<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("child").args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let stdin = child.stdin.take().context("no stdin")?;
        let stdout = BufReader::new(child.stdout.take().context("no stdout")?);
        Ok(Child { child, stdin, stdout })
    }

    /// Says something to it; the answer is on a line that begins with the same word.
    pub fn ask(&mut self, question: &str) -> anyhow::Result<String> {
        writeln!(self.stdin, "{question}")?;
        self.word(question.split(' ').next().unwrap_or_default())
    }

    /// The rest of its next line, which must begin with this word.
    pub fn word(&mut self, word: &str) -> anyhow::Result<String> {
        let mut line = String::new();
        self.stdout.read_line(&mut line)?;
        let rest = line.strip_prefix(word).with_context(|| format!("{line:?}, not {word}"))?;
        Ok(rest.trim().to_owned())
    }

    /// The number that it answers with.
    pub fn number(&mut self, question: &str) -> anyhow::Result<u64> {
        Ok(self.ask(question)?.parse()?)
    }

    /// The number of its next line.
    pub fn number_of(&mut self, word: &str) -> anyhow::Result<u64> {
        Ok(self.word(word)?.parse()?)
    }

    /// The numbers of its next line.
    pub fn numbers(&mut self, word: &str) -> anyhow::Result<Vec<u64>> {
        self.word(word)?.split(' ').map(|number| Ok(number.parse()?)).collect()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Where it is gone already, there is nothing to end.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}
