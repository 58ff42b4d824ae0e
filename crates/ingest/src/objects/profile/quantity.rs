//! Kubernetes' quantities: `1`, `500m`, `1.5Ki`, `2e3`.

/// A quantity in thousandths, rounded away from zero, of which the last 32 bits are left; `None` if it is none.
/// A number without a digit is 0, for Kubernetes as well.
pub(super) fn thousandths(text: &str) -> Option<u32> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = unsigned.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if text.is_empty() || fraction.contains('.') {
        return None;
    }
    let Factor { binary, decimal } = factor(suffix)?;
    // The last digit is first, and there is no point any more.
    let digits = fraction.bytes().rev().chain(whole.bytes().rev()).map(|digit| digit - b'0');
    let digits = times(digits, binary);
    let places = i64::try_from(fraction.len()).unwrap_or(i64::MAX);
    let shift = decimal.saturating_add(3).saturating_sub(places);
    let dropped = usize::try_from(shift.min(0).unsigned_abs()).unwrap_or(usize::MAX);
    let (dropped, kept) = digits.split_at(dropped.min(digits.len()));
    let kept = kept
        .iter()
        .rev()
        .fold(0_u32, |value, digit| value.wrapping_mul(10).wrapping_add(u32::from(*digit)));
    // In 32 bits, the 32nd power of ten and all that are higher are 0.
    let kept = kept.wrapping_mul(10_u32.wrapping_pow(shift.clamp(0, 32) as u32));
    let rounded = kept.wrapping_add(u32::from(dropped.iter().any(|digit| *digit != 0)));
    Some(if text.starts_with('-') { rounded.wrapping_neg() } else { rounded })
}

/// What a suffix multiplies by.
struct Factor {
    binary: u64,
    /// The exponent of ten.
    decimal: i64,
}

fn factor(suffix: &str) -> Option<Factor> {
    let decimal = |decimal| Some(Factor { binary: 1, decimal });
    let binary = |bits: u32| Some(Factor { binary: 1 << bits, decimal: 0 });
    match suffix {
        "n" => decimal(-9),
        "u" => decimal(-6),
        "m" => decimal(-3),
        "" => decimal(0),
        "k" => decimal(3),
        "M" => decimal(6),
        "G" => decimal(9),
        "T" => decimal(12),
        "P" => decimal(15),
        "E" => decimal(18),
        "Ki" => binary(10),
        "Mi" => binary(20),
        "Gi" => binary(30),
        "Ti" => binary(40),
        "Pi" => binary(50),
        "Ei" => binary(60),
        exponent => decimal(exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    }
}

/// The product of digits and a factor of at most 61 bits, the last digit first.
fn times(digits: impl Iterator<Item = u8>, factor: u64) -> Vec<u8> {
    let mut product = Vec::new();
    let mut carry = 0_u64;
    for digit in digits {
        carry += u64::from(digit) * factor;
        product.push((carry % 10) as u8);
        carry /= 10;
    }
    while carry > 0 {
        product.push((carry % 10) as u8);
        carry /= 10;
    }
    product
}

#[cfg(test)]
mod tests;
