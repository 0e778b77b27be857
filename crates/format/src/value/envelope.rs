//! Boxes that shapes are tested against: which shapes in well-known binary ("Appendix G") intersect a box, and which
//! files may contain such shapes.

use super::geo::GeoBound;
use super::wkb::{self, Part};
use crate::error::{Error, Result};

/// A box in x and y that includes its edges.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Envelope {
    x: (f64, f64),
    y: (f64, f64),
}

impl Envelope {
    /// Creates a box from two corners, like `ST_MakeEnvelope(xmin, ymin, xmax, ymax)`.
    ///
    /// # Errors
    /// `Invalid` for coordinates that are not finite, or a minimum above its maximum.
    pub fn new([xmin, ymin, xmax, ymax]: [f64; 4]) -> Result<Self> {
        let own = Self { x: (xmin, xmax), y: (ymin, ymax) };
        let is_sound = own.coordinates().iter().all(|value| value.is_finite()) && xmin <= xmax && ymin <= ymax;
        if is_sound {
            return Ok(own);
        }
        Err(Error::invalid(format!(
            "an envelope has finite coordinates (xmin, ymin, xmax, ymax) with xmin <= xmax and ymin <= ymax, got \
             ({xmin}, {ymin}, {xmax}, {ymax})"
        )))
    }

    /// The coordinates `xmin`, `ymin`, `xmax`, `ymax`.
    #[must_use]
    pub fn coordinates(&self) -> [f64; 4] {
        [self.x.0, self.y.0, self.x.1, self.y.1]
    }

    /// Whether shapes within these bounds of a geometry column may intersect the box; unreadable bounds exclude
    /// nothing.
    #[must_use]
    pub fn may_meet(&self, lower: Option<&[u8]>, upper: Option<&[u8]>) -> bool {
        let corner = |bytes: Option<&[u8]>| GeoBound::from_bytes(bytes?).ok();
        let (lower, upper) = (corner(lower), corner(upper));
        let is_left = upper.is_some_and(|upper| upper.x < self.x.0 || upper.y < self.y.0);
        let is_right = lower.is_some_and(|lower| lower.x > self.x.1 || lower.y > self.y.1);
        // Bounds that wrap around are not a box of a geometry, so they exclude nothing.
        let wraps = lower.zip(upper).is_some_and(|(lower, upper)| lower.x > upper.x);
        wraps || !(is_left || is_right)
    }

    /// Whether a shape with straight edges has a point in the box; `None` if the bytes are not a shape. A shape without
    /// points has none.
    #[must_use]
    pub fn meets(&self, shape: &[u8]) -> Option<bool> {
        let mut found = false;
        let is_shape = wkb::visit(shape, &mut |part| found = found || self.meets_part(&part));
        is_shape.then_some(found)
    }

    fn meets_part(&self, part: &Part) -> bool {
        match part {
            Part::Points(points) => points.iter().any(|point| self.has(*point)),
            Part::Line(points) => self.meets_line(points),
            Part::Polygon(rings) => {
                rings.iter().any(|ring| self.meets_line(ring)) || is_inside([self.x.0, self.y.0], rings)
            }
        }
    }

    fn has(&self, [x, y]: [f64; 2]) -> bool {
        x >= self.x.0 && x <= self.x.1 && y >= self.y.0 && y <= self.y.1
    }

    fn meets_line(&self, points: &[[f64; 2]]) -> bool {
        match points {
            [point] => self.has(*point),
            points => points.windows(2).any(|pair| matches!(pair, [start, end] if self.meets_edge(*start, *end))),
        }
    }

    /// Whether an edge intersects the box (Liang-Barsky clipping: the part of the edge between the sides of the box).
    fn meets_edge(&self, start: [f64; 2], end: [f64; 2]) -> bool {
        let (mut first, mut last) = (0.0_f64, 1.0_f64);
        let axes = [(start[0], end[0], self.x), (start[1], end[1], self.y)];
        for (from, to, (low, high)) in axes {
            let step = to - from;
            if step == 0.0 {
                if from < low || from > high {
                    return false;
                }
                continue;
            }
            let (one, other) = ((low - from) / step, (high - from) / step);
            first = first.max(one.min(other));
            last = last.min(one.max(other));
        }
        // NaN coordinates intersect nothing.
        first <= last && start.iter().chain(&end).all(|value| !value.is_nan())
    }
}

/// Whether a point, which must not be on an edge, is inside an odd number of rings.
fn is_inside([x, y]: [f64; 2], rings: &[Vec<[f64; 2]>]) -> bool {
    let crosses = |pair: &&[[f64; 2]]| match pair {
        [[x1, y1], [x2, y2]] => (*y1 > y) != (*y2 > y) && x < (x2 - x1) * (y - y1) / (y2 - y1) + x1,
        _ => false,
    };
    rings.iter().flat_map(|ring| ring.windows(2)).filter(crosses).count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(code: u32, rest: &[&[u8]]) -> Vec<u8> {
        [&[1], &code.to_le_bytes()[..], &rest.concat()].concat()
    }

    fn points(points: &[[f64; 2]]) -> Vec<u8> {
        points.iter().flatten().flat_map(|value| value.to_le_bytes()).collect()
    }

    fn counted(list: &[[f64; 2]]) -> Vec<u8> {
        [&(list.len() as u32).to_le_bytes()[..], &points(list)].concat()
    }

    fn point(x: f64, y: f64) -> Vec<u8> {
        bytes(1, &[&points(&[[x, y]])])
    }

    fn line(list: &[[f64; 2]]) -> Vec<u8> {
        bytes(2, &[&counted(list)])
    }

    fn polygon(rings: &[&[[f64; 2]]]) -> Vec<u8> {
        let rings: Vec<Vec<u8>> = rings.iter().map(|ring| counted(ring)).collect();
        bytes(3, &[&(rings.len() as u32).to_le_bytes(), &rings.concat()])
    }

    fn square(from: f64, to: f64) -> [[f64; 2]; 5] {
        [[from, from], [to, from], [to, to], [from, to], [from, from]]
    }

    #[test]
    fn shapes_meet_the_box_where_they_have_a_point_in_it() {
        let window = Envelope::new([2.0, 2.0, 4.0, 4.0]).unwrap();
        let collection = bytes(7, &[&2_u32.to_le_bytes(), &point(9.0, 9.0), &line(&[[0.0, 3.0], [9.0, 3.0]])]);
        for (shape, expected) in [
            (point(3.0, 3.0), true),
            (point(4.0, 2.0), true),
            (point(4.1, 2.0), false),
            (point(f64::NAN, f64::NAN), false),
            (bytes(1001, &[&points(&[[3.0, 3.0]]), &9_f64.to_le_bytes()]), true),
            (line(&[[0.0, 0.0], [9.0, 9.0]]), true),
            (line(&[[0.0, 5.0], [5.0, 0.0]]), true),
            (line(&[[0.0, 4.5], [3.5, 8.0]]), false),
            (line(&[[0.0, 3.0], [1.9, 3.0]]), false),
            (line(&[[0.0, 0.0], [0.0, 9.0]]), false),
            (line(&[[3.0, 3.0]]), true),
            (line(&[]), false),
            (polygon(&[&square(0.0, 9.0)]), true),
            (polygon(&[&square(3.0, 3.5)]), true),
            (polygon(&[&square(0.0, 9.0), &square(1.0, 5.0)]), false),
            (polygon(&[&square(0.0, 9.0), &square(3.0, 5.0)]), true),
            (polygon(&[&square(5.0, 9.0)]), false),
            // A corner of a triangle's bounding box, outside of the triangle.
            (polygon(&[&[[0.0, 0.0], [5.0, 0.0], [0.0, 3.0], [0.0, 0.0]]]), false),
            (polygon(&[]), false),
            (collection, true),
        ] {
            assert_eq!(window.meets(&shape), Some(expected), "{shape:02x?}");
        }
        assert_eq!(window.meets(b"no shape"), None);
        let dot = Envelope::new([3.0, 3.0, 3.0, 3.0]).unwrap();
        assert_eq!(dot.meets(&polygon(&[&square(0.0, 9.0)])), Some(true));
        assert_eq!(dot.meets(&line(&[[0.0, 0.0], [9.0, 9.0]])), Some(true));
    }

    #[test]
    fn envelopes_have_sound_corners() {
        for corners in
            [[f64::NAN, 0.0, 1.0, 1.0], [0.0, 0.0, f64::INFINITY, 1.0], [2.0, 0.0, 1.0, 1.0], [0.0, 1.0, 1.0, 0.0]]
        {
            assert!(Envelope::new(corners).is_err(), "{corners:?}");
        }
    }

    proptest! {
        /// Bounds never exclude a file that contains a matching shape.
        #[test]
        fn bounds_lose_no_shape(
            corners in prop::array::uniform4(-9_i8..9),
            lines in prop::collection::vec(prop::collection::vec(prop::array::uniform2(-9_i8..9), 1..5), 1..4),
            closed: bool,
        ) {
            let [a, b, c, d] = corners.map(f64::from);
            let window = Envelope::new([a.min(c), b.min(d), a.max(c), b.max(d)]).unwrap();
            let shapes: Vec<Vec<u8>> = lines.iter().map(|list| {
                let mut list: Vec<[f64; 2]> = list.iter().map(|point| point.map(f64::from)).collect();
                if closed {
                    list.extend(list.first().copied());
                    return polygon(&[&list]);
                }
                line(&list)
            }).collect();
            let mut found = wkb::GeoBox::default();
            prop_assert!(shapes.iter().all(|shape| found.add(shape)));
            let (lower, upper) = found.corners().unwrap();
            let met = shapes.iter().any(|shape| window.meets(shape).unwrap());
            prop_assert!(!met || window.may_meet(Some(&lower.to_bytes()), Some(&upper.to_bytes())));
            prop_assert!(window.may_meet(None, None));
        }

        #[test]
        fn any_bytes(bytes in any::<Vec<u8>>(), code in 1_u8..8) {
            let window = Envelope::new([0.0, 0.0, 1.0, 1.0]).unwrap();
            let _ = window.meets(&bytes);
            let _ = window.meets(&[&[1, code, 0, 0, 0], &bytes[..]].concat());
            let _ = window.may_meet(Some(&bytes), Some(&bytes));
        }
    }
}
