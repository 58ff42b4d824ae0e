//! Durations as Go writes them: `1h30m`, `250ms`, `-1.5s`.

/// What the digits after the point may come to, as a whole number. Those beyond it are not looked at.
const FRACTION_MAX: u64 = 1 << 63;

/// A duration in nanoseconds; `None` if it is none, or too long. Without a unit, only `0` is one.
pub(super) fn nanoseconds(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if unsigned == "0" {
        return Some(0);
    }
    if unsigned.is_empty() {
        return None;
    }
    let (mut sum, mut rest) = (0_u64, unsigned);
    while !rest.is_empty() {
        let (term, after) = term(rest)?;
        sum = sum.checked_add(term)?;
        rest = after;
    }
    match text.starts_with('-') {
        true => 0_i64.checked_sub_unsigned(sum),
        false => i64::try_from(sum).ok(),
    }
}

/// A number with its unit, and what follows them.
fn term(text: &str) -> Option<(u64, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    let end = rest.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit = unit_nanoseconds(unit)?;
    let whole: u64 = match (whole, fraction) {
        ("", "") => return None,
        ("", _) => 0,
        (whole, _) => whole.parse().ok()?,
    };
    Some((whole.checked_mul(unit)?.checked_add(part(fraction, unit))?, rest))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

/// What the digits after the point come to. In floating point, and of no more digits than fit, as Go does it: there
/// are fractions of an hour of which it makes another nanosecond than exact arithmetic would.
fn part(fraction: &str, unit: u64) -> u64 {
    let (mut digits, mut scale) = (0_u64, 1_f64);
    for digit in fraction.bytes() {
        let next = digits.checked_mul(10).and_then(|it| it.checked_add(u64::from(digit - b'0')));
        let Some(next) = next.filter(|next| *next <= FRACTION_MAX) else { break };
        (digits, scale) = (next, scale * 10.0);
    }
    (digits as f64 * (unit as f64 / scale)) as u64
}

fn unit_nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The sign for micro, and the Greek letter.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3_600 * 1_000_000_000,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn durations() {
        let max = i64::MAX;
        for (text, expected) in [
            ("0", 0),
            ("-0", 0),
            ("+0", 0),
            ("0s", 0),
            ("00.00h", 0),
            ("250ms", 250_000_000),
            ("1m", 60_000_000_000),
            ("+5s", 5_000_000_000),
            ("-5s", -5_000_000_000),
            ("5.s", 5_000_000_000),
            (".5s", 500_000_000),
            ("-.5s", -500_000_000),
            ("1.004s", 1_004_000_000),
            ("100.00100s", 100_001_000_000),
            ("10ns", 10),
            ("0.9ns", 0),
            ("11us", 11_000),
            ("12\u{b5}s", 12_000),
            ("13\u{3bc}s", 13_000),
            ("3h30m", 12_600_000_000_000),
            ("10.5s4m", 250_500_000_000),
            ("1s1s1s", 3_000_000_000),
            ("-2m3.4s", -123_400_000_000),
            ("1h2m3s4ms5us6ns", 3_723_004_005_006),
            ("0000000000000000000000000000001ns", 1),
            // More digits than a float holds exactly, and than 63 bits do.
            ("9007199254740993ns", 9_007_199_254_740_993),
            ("0.3333333333333333333h", 1_200_000_000_000),
            ("0.1844674407370955161999h", 664_082_786_653),
            ("0.100000000000000000000h", 360_000_000_000),
            // Go leaves out the last digit, and is a nanosecond short.
            ("0.9356834044988888889h", 3_368_460_256_195),
            ("0.830103483285477580700h", 2_988_372_539_827),
            ("9223372036854775807ns", max),
            ("9223372036854775.807us", max),
            ("9223372036s854ms775us807ns", max),
            ("-9223372036854775808ns", i64::MIN),
            ("-9223372036854775.808us", i64::MIN),
        ] {
            assert_eq!(nanoseconds(text), Some(expected), "{text:?}");
        }
    }

    #[test]
    fn no_durations() {
        for text in [
            "",
            "-",
            "+",
            "3",
            "10",
            "00",
            "0.0",
            "--1s",
            "+-1s",
            "s",
            ".",
            "-.",
            ".s",
            "+.s",
            "1",
            "1d",
            "1S",
            "1 s",
            " 1s",
            "1s ",
            "1,5s",
            "1s2",
            "1s.",
            "1s-1s",
            "1.2.3s",
            "1e3s",
            "1\u{b5}",
            "1\u{b5}\u{3bc}s",
            "\u{fffd}",
            "abc",
            "1s0",
            // Too long, as a whole, in a part, in a sum.
            "9223372036854775808ns",
            "-9223372036854775809ns",
            "9223372036854775.808us",
            "9223372036854776us",
            "3000000h",
            "5124096h",
            "9223372036854ms775us808ns",
            "-9223372036854775808ns1ns",
            "9223372036854775808ns9223372036854775808ns",
            "99999999999999999999999999999999999999999ns",
        ] {
            assert_eq!(nanoseconds(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn parts_come_to_the_whole(expected in any::<i64>()) {
            let (sign, left) = (if expected < 0 { "-" } else { "" }, expected.unsigned_abs());
            let (seconds, nanos) = (left / 1_000_000_000, left % 1_000_000_000);
            let (minutes, hours) = (seconds / 60 % 60, seconds / 3_600);
            let text = format!("{sign}{hours}h{minutes}m{}.{nanos:09}s", seconds % 60);
            prop_assert_eq!(nanoseconds(&text), Some(expected));
        }

        #[test]
        fn any_text_is_looked_at(text in "[-+]?([0-9.]{0,24}(ns|us|µs|ms|s|m|h|x)?){0,4}") {
            if nanoseconds(&text).is_some() {
                prop_assert!(text.ends_with(['s', 'm', 'h', '0']));
            }
        }
    }
}
