//! Go's command lines (package `flag`): one dash or two, `-name=value` or `-name value`, booleans with `=` only, and of
//! a flag that is there twice the last one.

use std::ffi::OsString;

/// Flags that may stand without a value, which then is `true`.
const BOOLEANS: [&str; 8] = [
    "enable-h2-upgrade",
    "enable-endpoint-slices",
    "enable-ipv6",
    "enable-pprof",
    "export-queue-metrics",
    "ext-endpoint-zone-weights",
    "help",
    "version",
];

/// The same command line as clap takes it. What is no flag is left as it is, and refused there.
pub(super) fn translated(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut translated = Vec::new();
    let mut args = args.into_iter();
    while let Some(arg) = args.next() {
        let Some(flag) = arg.to_str().and_then(flag) else {
            translated.push(arg);
            continue;
        };
        let (name, value) = match flag.split_once('=') {
            Some((name, value)) => (name, Some(OsString::from(value))),
            None if flag == "h" => ("help", None),
            None if BOOLEANS.contains(&flag) => (flag, Some("true".into())),
            None => (flag, args.next()),
        };
        let mut long = OsString::from(format!("--{name}"));
        if let Some(value) = value.filter(|_| name != "help") {
            long.push("=");
            long.push(value);
        }
        translated.push(long);
    }
    translated
}

/// What comes after the dashes; `None` if it is no flag.
fn flag(arg: &str) -> Option<&str> {
    let flag = arg.strip_prefix("--").or_else(|| arg.strip_prefix('-'))?;
    (!flag.is_empty() && !flag.starts_with(['-', '='])).then_some(flag)
}

/// A boolean as Go's `strconv.ParseBool` reads it.
pub(super) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(format!("{text:?} is neither true nor false")),
    }
}
