//! Parses and formats transforms ("Partition Specs" in Appendix C).

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::transform::Transform;

/// Maximum width and number of buckets, which the reference implementation stores as 32-bit signed integers.
const LARGEST: u32 = i32::MAX as u32;

impl Transform {
    /// Parses a transform, in any case. Unknown transforms are kept as written.
    ///
    /// # Errors
    /// `Invalid` for `bucket` or `truncate` with a number that is zero or does not fit in 31 bits.
    pub fn parse(text: &str) -> Result<Self> {
        if let Some((name, digits)) = text.strip_suffix(']').and_then(|text| text.split_once('[')) {
            let make = match name.to_ascii_lowercase().as_str() {
                "bucket" => Some(Self::Bucket as fn(u32) -> Self),
                "truncate" => Some(Self::Truncate as fn(u32) -> Self),
                _ => None,
            };
            let numeric = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            if let Some(make) = make.filter(|_| numeric) {
                let number = digits.parse().ok().filter(|number| (1..=LARGEST).contains(number));
                return number.map(make).ok_or_else(|| {
                    Error::invalid(format!("transform {text}: the number must be between 1 and {LARGEST}"))
                });
            }
        }
        Ok(match text.to_ascii_lowercase().as_str() {
            "identity" => Self::Identity,
            "void" => Self::Void,
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            _ => Self::Unknown(text.into()),
        })
    }
}

impl Transform {
    /// Name without a number: `bucket` for `bucket[16]`. For an unknown transform, its whole text.
    pub fn name(&self) -> &str {
        match self {
            Self::Identity => "identity",
            Self::Bucket(_) => "bucket",
            Self::Truncate(_) => "truncate",
            Self::Year => "year",
            Self::Month => "month",
            Self::Day => "day",
            Self::Hour => "hour",
            Self::Void => "void",
            Self::Unknown(text) => text,
        }
    }
}

impl FromStr for Transform {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Transform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bucket(number) | Self::Truncate(number) => write!(f, "{}[{number}]", self.name()),
            _ => f.write_str(self.name()),
        }
    }
}
