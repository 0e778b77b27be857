//! Statistics of geometries: their types and bounding box, from well-known binary (ISO and extended).

use std::collections::BTreeSet;

use super::Summary;
use crate::proto::{BoundingBox, ColumnStatistics as Message, GeospatialStatistics};

/// Maximum depth of nested collections.
const MAX_DEPTH: usize = 32;
/// Flags of the extended form in the type code.
const EXTENDED_Z: u32 = 0x8000_0000;
const EXTENDED_M: u32 = 0x4000_0000;
const EXTENDED_SRID: u32 = 0x2000_0000;

/// Statistics of `geometry`. For `geography` nothing is collected, because its edges can extend beyond the bounding box
/// of its points.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shapes {
    planar: bool,
    /// Whether a value was not a valid geometry; there are no statistics then.
    unknown: bool,
    /// The ranges of x, y, z and m.
    ranges: [Option<(f64, f64)>; 4],
    kinds: BTreeSet<i32>,
}

impl Shapes {
    /// The statistics of no values of `geometry` (planar) or `geography`.
    pub(crate) fn new(planar: bool) -> Self {
        Self { planar, ..Self::default() }
    }

    /// Adds a value.
    pub(crate) fn add(&mut self, value: &[u8]) {
        if !self.planar || self.unknown {
            return;
        }
        let mut reader = Wkb { rest: value, big: false, ranges: &mut self.ranges };
        match reader.geometry(0).filter(|_| reader.rest.is_empty()) {
            Some(kind) => {
                self.kinds.insert(kind);
            }
            None => self.unknown = true,
        }
    }
}

fn widen(range: &mut Option<(f64, f64)>, low: f64, high: f64) {
    // Empty points have NaN as coordinates.
    if !low.is_nan() && !high.is_nan() {
        let (least, most) = range.unwrap_or((low, high));
        *range = Some((least.min(low), most.max(high)));
    }
}

struct Wkb<'a> {
    rest: &'a [u8],
    big: bool,
    ranges: &'a mut [Option<(f64, f64)>; 4],
}

impl Wkb<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, rest) = self.rest.split_first_chunk::<N>()?;
        self.rest = rest;
        Some(*head)
    }

    fn word(&mut self) -> Option<u32> {
        let bytes = self.take()?;
        Some(if self.big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    }

    /// Reads a geometry and returns its ISO type code.
    fn geometry(&mut self, depth: usize) -> Option<i32> {
        let [order] = self.take()?;
        self.big = match order {
            0 => true,
            1 => false,
            _ => return None,
        };
        let code = self.word()?;
        let base = code & !(EXTENDED_Z | EXTENDED_M | EXTENDED_SRID);
        let (kind, iso) = (base % 1000, base / 1000);
        let has_z = code & EXTENDED_Z != 0 || iso & 1 != 0;
        let has_m = code & EXTENDED_M != 0 || iso & 2 != 0;
        if iso > 3 || depth > MAX_DEPTH {
            return None;
        }
        if code & EXTENDED_SRID != 0 {
            self.word()?;
        }
        match kind {
            1 => self.point(has_z, has_m)?,
            2 => self.points(has_z, has_m)?,
            3 => (0..self.word()?).try_for_each(|_| self.points(has_z, has_m))?,
            4..=7 => (0..self.word()?).try_for_each(|_| self.geometry(depth + 1).map(drop))?,
            _ => return None,
        }
        i32::try_from(kind + 1000 * (u32::from(has_z) + 2 * u32::from(has_m))).ok()
    }

    fn points(&mut self, has_z: bool, has_m: bool) -> Option<()> {
        (0..self.word()?).try_for_each(|_| self.point(has_z, has_m))
    }

    fn point(&mut self, has_z: bool, has_m: bool) -> Option<()> {
        for (axis, there) in [true, true, has_z, has_m].into_iter().enumerate() {
            if there {
                let bytes = self.take()?;
                let value = if self.big { f64::from_be_bytes(bytes) } else { f64::from_le_bytes(bytes) };
                widen(self.ranges.get_mut(axis)?, value, value);
            }
        }
        Some(())
    }
}

impl Summary for Shapes {
    fn merge(&mut self, later: &Self) {
        self.unknown |= later.unknown;
        for (range, later) in self.ranges.iter_mut().zip(later.ranges) {
            if let Some((low, high)) = later {
                widen(range, low, high);
            }
        }
        self.kinds.extend(&later.kinds);
    }

    fn put(&self, message: &mut Message) {
        let mut own = GeospatialStatistics::default();
        let [x, y, z, m] = self.ranges.map(|range| (range.map(|range| range.0), range.map(|range| range.1)));
        if !self.unknown && self.planar {
            own.geospatial_types = self.kinds.iter().copied().collect();
            let ranges =
                BoundingBox { xmin: x.0, xmax: x.1, ymin: y.0, ymax: y.1, zmin: z.0, zmax: z.1, mmin: m.0, mmax: m.1 };
            own.bbox = (x.0.is_some() && y.0.is_some()).then(|| Box::new(ranges));
        }
        message.geospatial_statistics = Some(Box::new(own));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn little(code: u32, words: &[u32], numbers: &[f64]) -> Vec<u8> {
        let mut bytes = vec![1];
        bytes.extend(code.to_le_bytes());
        words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
        numbers.iter().for_each(|number| bytes.extend(number.to_le_bytes()));
        bytes
    }

    fn shown(values: &[Vec<u8>]) -> GeospatialStatistics {
        let mut shapes = Shapes::new(true);
        values.iter().for_each(|value| shapes.add(value));
        let mut message = Message::default();
        shapes.put(&mut message);
        *message.geospatial_statistics.unwrap()
    }

    #[test]
    fn boxes_and_kinds() {
        let point = little(1, &[], &[3.0, -4.0]);
        let extended = little(EXTENDED_Z | EXTENDED_SRID | 1, &[4326], &[1.0, 2.0, 9.0]);
        let empty = little(1, &[], &[f64::NAN, f64::NAN]);
        let line = little(2002, &[2], &[0.0, 0.0, 5.0, 7.0, 7.0, 6.0]);
        let mut collection = little(7, &[1], &[]);
        collection.extend(&point);
        let own = shown(&[point, extended, empty, line, collection]);
        assert_eq!(own.geospatial_types, [1, 7, 1001, 2002]);
        let bbox = own.bbox.unwrap();
        assert_eq!((bbox.xmin, bbox.xmax, bbox.ymin, bbox.ymax), (Some(0.0), Some(7.0), Some(-4.0), Some(7.0)));
        assert_eq!((bbox.zmin, bbox.zmax, bbox.mmin, bbox.mmax), (Some(9.0), Some(9.0), Some(5.0), Some(6.0)));
    }

    #[test]
    fn what_is_no_geometry_leaves_nothing_said() {
        let cut = little(2, &[1 << 30], &[0.0]);
        let mut deep = Vec::new();
        (0..50).for_each(|_| deep.extend(little(7, &[1], &[])));
        for bad in [cut, deep, vec![], vec![2, 0, 0, 0, 0], little(9, &[], &[])] {
            assert_eq!(shown(&[little(1, &[], &[1.0, 1.0]), bad]), GeospatialStatistics::default());
        }
    }
}
