//! What can end a watch, by what is to be done about it.

use std::error::Error;

use kube::core::Status;

use crate::objects::shorten;

/// Why a watch or a list ended before it should.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum Failure {
    /// The version can't be gone on from: too old, or of a future that the API server hasn't seen. List again.
    #[error("the watch can't go on from there: {0}")]
    Expired(String),
    /// The API server doesn't let us. Keep asking: somebody may grant it.
    #[error("{0}")]
    Refused(String),
    /// The API server doesn't have the kind.
    #[error("the API server doesn't have this kind")]
    Absent,
    /// The API server understood, and doesn't do it. Asked for a streaming list, it gets a paged one instead.
    #[error("the API server doesn't do that: {0}")]
    Unsupported(String),
    /// A page that is longer than we take. Ask for fewer items.
    #[error("a page of the list is longer than {} bytes", super::limits::PAGE_BYTES_MAX)]
    PageTooLong,
    /// Anything else: the connection, the server, what it says. Try again.
    #[error("{0}")]
    Broken(String),
    /// Nobody takes the changes any more. The end.
    #[error("nobody takes the changes any more")]
    Closed,
}

impl Failure {
    /// What an answer of the API server's means, where `verb` and `plural` are what was asked of it.
    pub(super) fn of_status(status: &Status, verb: &str, plural: &str) -> Failure {
        let Status { code, .. } = status;
        let message = one_line(&status.message);
        match code {
            401 => Failure::Refused(format!(
                "the API server doesn't accept our credentials (401) to {verb} {plural}: {message}"
            )),
            403 => Failure::Refused(format!(
                "the API server doesn't allow us (403) to {verb} {plural}: {message}"
            )),
            404 => Failure::Absent,
            410 => Failure::Expired(message),
            400 | 422 => Failure::Unsupported(message),
            _ if is_of_the_future(status) => Failure::Expired(message),
            _ => Failure::Broken(format!(
                "the API server failed ({code}) to {verb} {plural}: {message}"
            )),
        }
    }
}

impl From<kube::core::request::Error> for Failure {
    fn from(error: kube::core::request::Error) -> Failure {
        Failure::Broken(chain(&error))
    }
}

/// The API server waited for the version, and it did not come.
fn is_of_the_future(status: &Status) -> bool {
    const CAUSE: &str = "ResourceVersionTooLarge";
    let causes = status.details.as_ref().map(|it| it.causes.as_slice()).unwrap_or_default();
    causes.iter().any(|it| it.reason == CAUSE)
        || status.message.starts_with("Too large resource version")
}

/// An error with its causes, as one line. Those that repeat their cause are said once.
pub(super) fn chain(error: &dyn Error) -> String {
    let mut line = one_line(&error.to_string());
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = one_line(&error.to_string());
        if !line.contains(&text) {
            line = format!("{line}: {text}");
        }
        cause = error.source();
    }
    line
}

/// The first line of a text, cut where it gets too long: what a proxy answers may be a page of HTML.
pub(super) fn one_line(text: &str) -> String {
    shorten(text.lines().next().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn statuses() {
        let check = |json: &str, expected: Expect| {
            let status = serde_json::from_str(json).unwrap();
            expected.assert_eq(&format!("{:?}", Failure::of_status(&status, "list", "pods")));
        };
        check(
            r#"{"code": 401, "message": "Unauthorized"}"#,
            expect![[
                r#"Refused("the API server doesn't accept our credentials (401) to list pods: Unauthorized")"#
            ]],
        );
        check(
            r#"{"code": 403, "message": "pods is forbidden: User \"x\" cannot"}"#,
            expect![[
                r#"Refused("the API server doesn't allow us (403) to list pods: pods is forbidden: User \"x\" cannot")"#
            ]],
        );
        check(r#"{"code": 404, "message": "page not found"}"#, expect!["Absent"]);
        check(
            r#"{"code": 410, "message": "too old resource version: 1 (9)"}"#,
            expect![[r#"Expired("too old resource version: 1 (9)")"#]],
        );
        check(
            r#"{"code": 422, "message": "sendInitialEvents is forbidden"}"#,
            expect![[r#"Unsupported("sendInitialEvents is forbidden")"#]],
        );
        check(
            r#"{"code": 500, "message": "etcdserver: leader changed"}"#,
            expect![[
                r#"Broken("the API server failed (500) to list pods: etcdserver: leader changed")"#
            ]],
        );
        check(
            r#"{"code": 504, "reason": "Timeout", "message": "Too large resource version: 9, current: 1"}"#,
            expect![[r#"Expired("Too large resource version: 9, current: 1")"#]],
        );
        check(
            r#"{"code": 504, "message": "Timeout: Too large",
                "details": {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large"}]}}"#,
            expect![[r#"Expired("Timeout: Too large")"#]],
        );
    }
}
