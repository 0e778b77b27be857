//! Decodes Avro's logical type `decimal`.

use super::Fault;

/// Decodes a big-endian two's complement number of any length; bytes before the last sixteen may only repeat the sign.
///
/// # Errors
/// [`Fault::Length`] for no bytes, [`Fault::Range`] for a number of more than 128 bits.
pub fn unscaled(bytes: &[u8]) -> Result<i128, Fault> {
    let negative = *bytes.first().ok_or(Fault::Length)? >= 0x80;
    let fill = if negative { 0xff } else { 0 };
    let (extra, kept) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut whole = [fill; 16];
    whole.iter_mut().rev().zip(kept.iter().rev()).for_each(|(to, from)| *to = *from);
    let number = i128::from_be_bytes(whole);
    if extra.iter().any(|byte| *byte != fill) || (number < 0) != negative {
        return Err(Fault::Range);
    }
    Ok(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_length() {
        for (bytes, number) in [
            (&[][..], Err(Fault::Length)),
            (&[0x7f], Ok(127)),
            (&[0x80], Ok(-128)),
            (&[0xff], Ok(-1)),
            (&[0x00, 0x80], Ok(128)),
            (&[0x01, 0x00, 0x00], Ok(65536)),
            (&[0x7f, 0xff], Ok(0x7fff)),
            (&[0xff; 20], Ok(-1)),
        ] {
            assert_eq!(unscaled(bytes), number);
        }
        let mut large = [0u8; 17];
        large[0] = 1;
        assert_eq!(unscaled(&large), Err(Fault::Range));
        large[0] = 0;
        large[1] = 0x80;
        assert_eq!(unscaled(&large), Err(Fault::Range), "a sign that changes when the extra byte goes");
    }
}
