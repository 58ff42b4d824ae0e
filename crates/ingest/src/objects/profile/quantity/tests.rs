//! Quantities as they are written, and what they weigh.

use proptest::prelude::*;

use super::*;

#[test]
fn quantities() {
    for (text, expected) in [
        ("0", 0),
        ("1", 1_000),
        ("+1", 1_000),
        ("1.5", 1_500),
        ("1.", 1_000),
        (".5", 500),
        ("007", 7_000),
        ("900m", 900),
        ("2k", 2_000_000),
        ("1Ki", 1_024_000),
        ("0.5Ki", 512_000),
        ("1.5Mi", 1_572_864_000),
        ("1e3", 1_000_000),
        ("1E+3", 1_000_000),
        ("1500e-3", 1_500),
        // What is finer is rounded away from zero.
        ("1n", 1),
        ("1u", 1),
        ("1100u", 2),
        ("0.0001", 1),
        ("1e-9223372036854775808", 1),
        ("0.0010000000000000000000000000000000000000000000001", 2),
        ("0.0000009Ki", 1),
        ("0e-5", 0),
        ("0.000", 0),
        // A number without a digit.
        ("-", 0),
        (".", 0),
        ("k", 0),
    ] {
        assert_eq!(thousandths(text), Some(expected), "{text:?}");
    }
}

#[test]
fn what_does_not_fit_wraps() {
    let modulo = |value: i128| u32::try_from(value.rem_euclid(1 << 32)).unwrap();
    for (text, expected) in [
        ("-1", -1_000),
        ("-1u", -1),
        ("-1100u", -2),
        ("-1Ki", -1_024_000),
        ("429497", 429_497_000),
        ("4294968", 4_294_968_000),
        ("1M", 10_i128.pow(9)),
        ("1G", 10_i128.pow(12)),
        ("1T", 10_i128.pow(15)),
        ("1P", 10_i128.pow(18)),
        ("1E", 10_i128.pow(21)),
        ("3e25", 3 * 10_i128.pow(28)),
        ("1e29", 10_i128.pow(32)),
        ("1e9223372036854775807", 0),
        ("1Gi", 1_000 << 30),
        ("1.000001Ti", 1_099_512_727_287_628),
        ("123456789.987654321", 123_456_789_988),
    ] {
        assert_eq!(thousandths(text), Some(modulo(expected)), "{text:?}");
    }
    // As the 32 bits of 99…9 (a million digits) are those of -1.
    assert_eq!(thousandths(&"9".repeat(1_000_000)), Some(1_000_u32.wrapping_neg()));
}

#[test]
fn no_quantities() {
    for text in [
        "",
        "abc",
        "true",
        "[1]",
        "1 ",
        " 1",
        "1x",
        "1K",
        "1mi",
        "1i",
        "1ki",
        "1kk",
        "1Ki2",
        "--1",
        "+-1",
        "1-",
        "1e",
        "1e+",
        "1e1.5",
        "1e9223372036854775808",
        "1ee3",
        "1Ee3",
        "1.2.3",
        "1..2",
        "1,5",
        "0x10",
        "\u{661}",
        "1\u{b5}",
    ] {
        assert_eq!(thousandths(text), None, "{text:?}");
    }
}

proptest! {
    #[test]
    fn as_with_numbers_that_are_wide_enough(
        number in -999_999_999_999_i128..1_000_000_000_000,
        places in 0..12_u32,
        (suffix, numerator, denominator) in prop::sample::select(vec![
            ("n", 1, 1_000_000_000), ("u", 1, 1_000_000), ("m", 1, 1_000), ("", 1, 1),
            ("k", 1_000, 1), ("G", 1_000_000_000, 1), ("E", 1_000_000_000_000_000_000, 1),
            ("Ki", 1 << 10, 1), ("Ti", 1 << 40, 1), ("Ei", 1 << 60, 1),
            ("e-7", 1, 10_000_000), ("e5", 100_000, 1),
        ]),
    ) {
        let (scale, digits) = (10_i128.pow(places), number.abs());
        let sign = if number < 0 { "-" } else { "" };
        let width = places as usize;
        let fraction = match width {
            0 => String::new(),
            width => format!(".{:0width$}", digits % scale),
        };
        let text = format!("{sign}{}{fraction}{suffix}", digits / scale);
        let (numerator, denominator): (i128, i128) = (numerator, denominator);
        let exact = digits * numerator * 1_000;
        let rounded = (exact + scale * denominator - 1) / (scale * denominator);
        let expected = (rounded * number.signum()).rem_euclid(1 << 32);
        prop_assert_eq!(thousandths(&text).map(i128::from), Some(expected), "{}", text);
    }
}
