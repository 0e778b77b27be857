//! Remainders for a divisor that is constant during a kernel: a multiplication and a correction instead of a division.
//!
//! With `m = floor((2^n - 1) / d)`, the quotient `floor(v * m / 2^n)` equals that of `v / d` or is one less, for every
//! `v` below `2^n`: `m >= 2^n / d - 1`, so `v * m / 2^n >= v / d - v / 2^n > v / d - 1`. The remainder is then below
//! `2 * d`, and `min(r, r - d)` (which wraps around if `r < d`) corrects it as long as `2 * d <= 2^n`.

/// Remainders of 32-bit numbers for a 31-bit divisor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remainder32 {
    divisor: u32,
    reciprocal: u32,
    /// Non-negative remainder of -2^31.
    bias: u32,
}

impl Remainder32 {
    /// `None` for zero and for divisors over 31 bits.
    pub(super) fn new(divisor: u32) -> Option<Self> {
        let sound = (1..1 << 31).contains(&divisor);
        let bias = sound.then(|| i64::from(i32::MIN).rem_euclid(i64::from(divisor)) as u32)?;
        Some(Self { divisor, reciprocal: u32::MAX / divisor, bias })
    }

    /// Remainder of `value`.
    #[inline(always)]
    pub(super) fn of(self, value: u32) -> u32 {
        let quotient = ((u64::from(value) * u64::from(self.reciprocal)) >> 32) as u32;
        let remainder = value.wrapping_sub(quotient.wrapping_mul(self.divisor));
        remainder.min(remainder.wrapping_sub(self.divisor))
    }

    /// Non-negative remainder of a signed number.
    #[inline(always)]
    pub(super) fn of_signed(self, value: i32) -> i32 {
        let sum = self.of(value as u32 ^ 1 << 31) + self.bias;
        sum.min(sum.wrapping_sub(self.divisor)) as i32
    }
}

/// Remainders of 64- and 128-bit numbers for a 31-bit divisor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Remainder64 {
    divisor: u64,
    reciprocal: u64,
    /// Non-negative remainder of -2^63.
    bias: u64,
    /// Remainder of 2^64.
    high: u64,
    /// Non-negative remainder of -2^127.
    wide_bias: u64,
}

impl Remainder64 {
    /// `None` for zero and for divisors over 31 bits.
    pub(super) fn new(divisor: u32) -> Option<Self> {
        if !(1..1 << 31).contains(&divisor) {
            return None;
        }
        let wide = i128::from(divisor);
        Some(Self {
            divisor: u64::from(divisor),
            reciprocal: u64::MAX / u64::from(divisor),
            bias: i128::from(i64::MIN).rem_euclid(wide) as u64,
            high: (1i128 << 64).rem_euclid(wide) as u64,
            wide_bias: i128::MIN.rem_euclid(wide) as u64,
        })
    }

    /// Remainder of `value`.
    #[inline(always)]
    fn of(self, value: u64) -> u64 {
        let quotient = ((u128::from(value) * u128::from(self.reciprocal)) >> 64) as u64;
        self.mended(value.wrapping_sub(quotient.wrapping_mul(self.divisor)))
    }

    #[inline(always)]
    fn mended(self, below_twice: u64) -> u64 {
        below_twice.min(below_twice.wrapping_sub(self.divisor))
    }

    /// Non-negative remainder of a signed number.
    ///
    /// Vector instructions do not return the high half of a 64 by 64 bit product, so it is computed from 32 by 32 bit
    /// products. The lowest of the four and the fractions of the two middle ones are omitted: the quotient is too small
    /// by up to two more, the remainder is below `4 * d`, and with the bias below `5 * d`.
    #[inline(always)]
    pub(super) fn of_signed(self, value: i64) -> i64 {
        const LOW: u64 = u32::MAX as u64;
        let value = value as u64 ^ 1 << 63;
        let (low, high) = (value & LOW, value >> 32);
        let (reciprocal_low, reciprocal_high) = (self.reciprocal & LOW, self.reciprocal >> 32);
        let quotient = high * reciprocal_high + ((high * reciprocal_low) >> 32) + ((low * reciprocal_high) >> 32);
        let remainder = value.wrapping_sub(quotient.wrapping_mul(self.divisor)) + self.bias;
        let remainder = remainder.min(remainder.wrapping_sub(4 * self.divisor));
        let remainder = remainder.min(remainder.wrapping_sub(2 * self.divisor));
        self.mended(remainder) as i64
    }

    /// Like [`Self::of_signed`], computed from the two halves.
    #[inline(always)]
    pub(super) fn of_wide(self, value: i128) -> i64 {
        if let Ok(value) = i64::try_from(value) {
            return self.mended(self.of(value as u64 ^ 1 << 63) + self.bias) as i64;
        }
        let value = value as u128 ^ 1 << 127;
        // Below 2^31 * 2^31 + 2^31.
        let folded = self.of((value >> 64) as u64) * self.high + self.of(value as u64);
        self.mended(self.of(folded) + self.wide_bias) as i64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DIVISORS: [u32; 16] =
        [1, 2, 3, 5, 7, 10, 16, 100, 641, 1000, 65_535, 65_537, 1 << 30, (1 << 30) + 1, (1 << 31) - 2, (1 << 31) - 1];

    fn check(divisor: u32, value: i128) {
        let (small, large) = (Remainder32::new(divisor).unwrap(), Remainder64::new(divisor).unwrap());
        let expected = |value: i128| value.rem_euclid(i128::from(divisor));
        assert_eq!(i128::from(small.of(value as u32)), expected(i128::from(value as u32)), "{value} % {divisor}");
        assert_eq!(
            i128::from(small.of_signed(value as i32)),
            expected(i128::from(value as i32)),
            "{value} % {divisor}"
        );
        assert_eq!(
            i128::from(large.of_signed(value as i64)),
            expected(i128::from(value as i64)),
            "{value} % {divisor}"
        );
        assert_eq!(i128::from(large.of_wide(value)), expected(value), "{value} % {divisor}");
    }

    #[test]
    fn extremes_and_multiples() {
        let extremes = [i128::from(i32::MIN), i128::from(i32::MAX), i128::from(u32::MAX), i128::from(i64::MIN)];
        let more = [i128::from(i64::MAX), i128::from(u64::MAX), i128::MIN, i128::MAX, 0];
        for divisor in DIVISORS {
            for extreme in extremes.into_iter().chain(more) {
                let multiple = extreme / i128::from(divisor) * i128::from(divisor);
                for near in -2..=2 {
                    check(divisor, extreme.wrapping_add(near));
                    check(divisor, multiple.wrapping_add(near));
                }
            }
        }
    }

    #[test]
    fn no_other_divisors() {
        for divisor in [0, 1 << 31, u32::MAX] {
            assert!(Remainder32::new(divisor).is_none() && Remainder64::new(divisor).is_none());
        }
    }

    proptest! {
        #[test]
        fn is_the_euclidean_remainder(divisor in 1u32..1 << 31, value: i128, shift in 0u32..128) {
            check(divisor, value >> shift);
            check(divisor >> (shift % 31) | 1, value);
        }
    }
}
