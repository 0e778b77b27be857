//! Shapes in well-known binary: their parts and bounding boxes ("Appendix G"; "Bounds for Variant, Geometry, and
//! Geography").

use super::geo::GeoBound;

/// Maximum nesting of collections.
const DEPTH: usize = 32;

/// Minimum and maximum coordinates of shapes: x, y, z, m.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct GeoBox {
    ranges: [Option<(f64, f64)>; 4],
}

impl GeoBox {
    /// Adds a shape in ISO well-known binary or PostGIS's extension of it. Null and NaN coordinates are skipped, so an
    /// empty point adds nothing. Returns false if the bytes are not a shape; the box is invalid then.
    #[must_use]
    pub fn add(&mut self, wkb: &[u8]) -> bool {
        shape(self, wkb, 0).is_some_and(<[u8]>::is_empty)
    }

    /// Returns the lower and the upper corner; `None` without an x or a y.
    #[must_use]
    pub fn corners(&self) -> Option<(GeoBound, GeoBound)> {
        let [x, y, z, m] = self.ranges;
        let corner =
            |pick: fn((f64, f64)) -> f64| Some(GeoBound { x: pick(x?), y: pick(y?), z: z.map(pick), m: m.map(pick) });
        Some((corner(|range| range.0)?, corner(|range| range.1)?))
    }

    fn grow(&mut self, values: [Option<f64>; 4]) {
        for (range, value) in self.ranges.iter_mut().zip(values) {
            let Some(value) = value.filter(|value| !value.is_nan()) else { continue };
            *range = Some(range.map_or((value, value), |(low, high)| (low.min(value), high.max(value))));
        }
    }
}

/// A part of a shape, in x and y.
#[derive(Debug, Clone, PartialEq)]
pub enum Part {
    /// Points without edges.
    Points(Vec<[f64; 2]>),
    /// Points connected by straight edges.
    Line(Vec<[f64; 2]>),
    /// Rings; the first is the outer one.
    Polygon(Vec<Vec<[f64; 2]>>),
}

/// Passes the parts of a shape in ISO well-known binary, or PostGIS's extension of it, to `take`. Returns false if the
/// bytes are not a shape; some parts may have been passed already.
#[must_use]
pub fn visit(wkb: &[u8], take: &mut dyn FnMut(Part)) -> bool {
    let mut parts = Parts { take, ring: Vec::new(), rings: Vec::new() };
    shape(&mut parts, wkb, 0).is_some_and(<[u8]>::is_empty)
}

/// Receives a shape while it is read.
trait Sink {
    /// Receives a point: x, y, z, m, as far as the shape has them.
    fn point(&mut self, values: [Option<f64>; 4]);
    /// Ends a line, a ring of a polygon or a single point: all points since the last end belong to it.
    fn end_line(&mut self) {}
    fn end_ring(&mut self) {}
    fn end_point(&mut self) {}
    /// Ends a polygon: all rings since the last end belong to it.
    fn end_polygon(&mut self) {}
}

impl Sink for GeoBox {
    fn point(&mut self, values: [Option<f64>; 4]) {
        self.grow(values);
    }
}

struct Parts<'a> {
    take: &'a mut dyn FnMut(Part),
    ring: Vec<[f64; 2]>,
    rings: Vec<Vec<[f64; 2]>>,
}

impl Sink for Parts<'_> {
    fn point(&mut self, [x, y, ..]: [Option<f64>; 4]) {
        if let (Some(x), Some(y)) = (x, y) {
            self.ring.push([x, y]);
        }
    }

    fn end_line(&mut self) {
        (self.take)(Part::Line(std::mem::take(&mut self.ring)));
    }

    fn end_ring(&mut self) {
        self.rings.push(std::mem::take(&mut self.ring));
    }

    fn end_point(&mut self) {
        (self.take)(Part::Points(std::mem::take(&mut self.ring)));
    }

    fn end_polygon(&mut self) {
        (self.take)(Part::Polygon(std::mem::take(&mut self.rings)));
    }
}

/// Reads a shape and returns the bytes after it.
fn shape<'a>(sink: &mut impl Sink, bytes: &'a [u8], depth: usize) -> Option<&'a [u8]> {
    if depth > DEPTH {
        return None;
    }
    let (order, rest) = bytes.split_first()?;
    let reader = Reader {
        is_little: match order {
            0 => false,
            1 => true,
            _ => return None,
        },
    };
    let (code, mut rest) = reader.count(rest)?;
    // PostGIS marks dimensions in the highest bits, ISO by thousands.
    let (mut has_z, mut has_m) = (code & 0x8000_0000 != 0, code & 0x4000_0000 != 0);
    if code & 0x2000_0000 != 0 {
        rest = rest.get(4..)?;
    }
    let code = code & 0x0fff_ffff;
    match code / 1000 {
        0 => {}
        1 => has_z = true,
        2 => has_m = true,
        3 => (has_z, has_m) = (true, true),
        _ => return None,
    }
    let points = Points { reader, has_z, has_m };
    match code % 1000 {
        1 => {
            let rest = points.read(sink, rest, 1)?;
            sink.end_point();
            Some(rest)
        }
        2 => {
            let rest = points.sequence(sink, rest)?;
            sink.end_line();
            Some(rest)
        }
        3 => {
            let (rings, mut rest) = reader.count(rest)?;
            for _ in 0..rings {
                rest = points.sequence(sink, rest)?;
                sink.end_ring();
            }
            sink.end_polygon();
            Some(rest)
        }
        4..=7 => {
            let (parts, mut rest) = reader.count(rest)?;
            for _ in 0..parts {
                rest = shape(sink, rest, depth + 1)?;
            }
            Some(rest)
        }
        _ => None,
    }
}

struct Points {
    reader: Reader,
    has_z: bool,
    has_m: bool,
}

impl Points {
    fn sequence<'a>(&self, sink: &mut impl Sink, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (count, rest) = self.reader.count(bytes)?;
        self.read(sink, rest, usize::try_from(count).ok()?)
    }

    fn read<'a>(&self, sink: &mut impl Sink, bytes: &'a [u8], count: usize) -> Option<&'a [u8]> {
        let size = 8 * (2 + usize::from(self.has_z) + usize::from(self.has_m));
        let (own, rest) = bytes.split_at_checked(count.checked_mul(size)?)?;
        for point in own.chunks_exact(size) {
            let mut coordinates = point.as_chunks::<8>().0.iter().map(|bytes| self.reader.number(*bytes));
            let mut next = |wanted: bool| if wanted { coordinates.next() } else { None };
            sink.point([next(true), next(true), next(self.has_z), next(self.has_m)]);
        }
        Some(rest)
    }
}

/// Reads numbers in one byte order.
#[derive(Clone, Copy)]
struct Reader {
    is_little: bool,
}

impl Reader {
    fn count(self, bytes: &[u8]) -> Option<(u32, &[u8])> {
        let (number, rest) = bytes.split_first_chunk::<4>()?;
        Some((if self.is_little { u32::from_le_bytes(*number) } else { u32::from_be_bytes(*number) }, rest))
    }

    fn number(self, bytes: [u8; 8]) -> f64 {
        if self.is_little { f64::from_le_bytes(bytes) } else { f64::from_be_bytes(bytes) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let text: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        (0..text.len() / 2).map(|at| u8::from_str_radix(&text[2 * at..2 * at + 2], 16).unwrap()).collect()
    }

    fn point(code: u32, coordinates: &[f64]) -> Vec<u8> {
        let head = [&[1], &code.to_le_bytes()[..]].concat();
        coordinates.iter().fold(head, |mut out, value| {
            out.extend(value.to_le_bytes());
            out
        })
    }

    fn parts(code: u32, parts: &[Vec<u8>]) -> Vec<u8> {
        let mut out = [&[1], &code.to_le_bytes()[..], &(parts.len() as u32).to_le_bytes()].concat();
        parts.iter().for_each(|part| out.extend(part));
        out
    }

    /// A line, whose points have no headers of their own.
    fn line(code: u32, points: &[[f64; 2]]) -> Vec<u8> {
        let points: Vec<Vec<u8>> =
            points.iter().map(|point| point.iter().flat_map(|v| v.to_le_bytes()).collect()).collect();
        parts(code, &points)
    }

    fn boxed(shapes: &[Vec<u8>]) -> Option<(Vec<f64>, Vec<f64>)> {
        let mut found = GeoBox::default();
        for shape in shapes {
            assert!(found.add(shape), "{shape:02x?}");
            for cut in 0..shape.len() {
                assert!(!GeoBox::default().add(&shape[..cut]), "{shape:02x?} cut at {cut}");
            }
        }
        let list =
            |corner: GeoBound| [Some(corner.x), Some(corner.y), corner.z, corner.m].into_iter().flatten().collect();
        found.corners().map(|(lower, upper)| (list(lower), list(upper)))
    }

    #[test]
    fn boxes_of_shapes() {
        let nan = f64::NAN;
        let polygon = {
            let rings = [
                line(2, &[[0.0, 0.0], [9.0, 1.0], [2.0, 7.0], [0.0, 0.0]]),
                line(2, &[[1.0, 1.0], [2.0, 1.0], [1.0, 1.0]]),
            ];
            let rings: Vec<Vec<u8>> = rings.iter().map(|ring| ring[5..].to_vec()).collect();
            parts(3, &rings)
        };
        let xy = |low: [f64; 2], high: [f64; 2]| Some((low.to_vec(), high.to_vec()));
        assert_eq!(boxed(&[point(1, &[1.0, 2.0])]), xy([1.0, 2.0], [1.0, 2.0]));
        assert_eq!(boxed(&[point(1, &[1.0, 2.0]), point(1, &[-1.0, 5.0])]), xy([-1.0, 2.0], [1.0, 5.0]));
        assert_eq!(boxed(&[hex("00 00000001 3ff0000000000000 c000000000000000")]), xy([1.0, -2.0], [1.0, -2.0]));
        assert_eq!(boxed(&[line(2, &[[3.0, 4.0], [1.0, 6.0]])]), xy([1.0, 4.0], [3.0, 6.0]));
        assert_eq!(boxed(std::slice::from_ref(&polygon)), xy([0.0, 0.0], [9.0, 7.0]));
        assert_eq!(boxed(&[parts(4, &[point(1, &[1.0, 1.0]), point(1, &[2.0, 0.0])])]), xy([1.0, 0.0], [2.0, 1.0]));
        assert_eq!(boxed(&[parts(7, &[polygon, parts(5, &[line(2, &[[-4.0, 8.0]])])])]), xy([-4.0, 0.0], [9.0, 8.0]));
        assert_eq!(boxed(&[point(1001, &[1.0, 2.0, 3.0])]), Some((vec![1.0, 2.0, 3.0], vec![1.0, 2.0, 3.0])));
        assert_eq!(boxed(&[point(0x8000_0001, &[1.0, 2.0, 3.0])]), Some((vec![1.0, 2.0, 3.0], vec![1.0, 2.0, 3.0])));
        let measured = GeoBox { ranges: [Some((1.0, 1.0)), Some((2.0, 2.0)), None, Some((3.0, 3.0))] };
        let mut found = GeoBox::default();
        assert!(found.add(&point(2001, &[1.0, 2.0, 3.0])));
        assert_eq!(found, measured);
        assert_eq!(boxed(&[point(3001, &[1.0, 2.0, 3.0, 4.0])]).unwrap().0, [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(boxed(&[hex("01 01000020 e6100000 000000000000f03f 0000000000000040")]), xy([1.0, 2.0], [1.0, 2.0]));
        // Each coordinate counts for its own dimension; a shape without coordinates has no box.
        assert_eq!(boxed(&[point(1, &[nan, nan])]), None);
        assert_eq!(boxed(&[point(1, &[1.0, nan])]), None);
        assert_eq!(boxed(&[point(1, &[1.0, nan]), point(1, &[nan, 2.0])]), xy([1.0, 2.0], [1.0, 2.0]));
        assert_eq!(boxed(&[parts(7, &[]), line(2, &[])]), None);
    }

    #[test]
    fn what_is_no_shape() {
        for bytes in ["", "02 00000001", "01 00000000", "01 08000000", "01 a10f0000", "01 02000000 ffffffff"] {
            assert!(!GeoBox::default().add(&hex(bytes)), "{bytes}");
        }
        let deep = (0..DEPTH + 1).fold(point(1, &[1.0, 1.0]), |inner, _| parts(7, &[inner]));
        assert!(!GeoBox::default().add(&deep));
        assert!(!GeoBox::default().add(&[point(1, &[1.0, 1.0]), vec![0]].concat()), "bytes behind the shape");
    }

    proptest! {
        #[test]
        fn any_bytes(bytes in any::<Vec<u8>>(), code in 1_u8..8) {
            let _ = GeoBox::default().add(&bytes);
            let _ = GeoBox::default().add(&[&[1, code, 0, 0, 0], &bytes[..]].concat());
        }
    }
}
