//! Bounds of geometry and geography columns ("Bounds for Variant, Geometry, and Geography"; "Bound serialization").

use crate::error::{Error, Result};

/// A corner of the bounding box of all shapes in a file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoBound {
    /// Easting or longitude.
    pub x: f64,
    /// Northing or latitude.
    pub y: f64,
    /// Elevation, if the shapes have one.
    pub z: Option<f64>,
    /// Measure, if the shapes have one.
    pub m: Option<f64>,
}

impl GeoBound {
    /// Writes `x:y`, `x:y:z`, `x:y:NaN:m` or `x:y:z:m`, eight bytes each, little endian.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(32);
        out.extend(self.x.to_le_bytes());
        out.extend(self.y.to_le_bytes());
        match (self.z, self.m) {
            (None, None) => {}
            (Some(z), None) => out.extend(z.to_le_bytes()),
            (z, Some(m)) => {
                out.extend(z.unwrap_or(f64::NAN).to_le_bytes());
                out.extend(m.to_le_bytes());
            }
        }
        out
    }

    /// Reads what [`GeoBound::to_bytes`] writes; NaN means a missing coordinate.
    ///
    /// # Errors
    /// `Corrupt` unless there are two, three or four coordinates.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let (coordinates, rest) = bytes.as_chunks::<8>();
        let at = |i: usize| coordinates.get(i).map(|bytes| f64::from_le_bytes(*bytes));
        match (at(0), at(1)) {
            (Some(x), Some(y)) if rest.is_empty() && coordinates.len() <= 4 => {
                let present = |value: &f64| !value.is_nan();
                Ok(Self { x, y, z: at(2).filter(present), m: at(3).filter(present) })
            }
            _ => Err(Error::corrupt("", format!("expected 16, 24 or 32 bytes for a bound, got {}", bytes.len()))),
        }
    }
}
