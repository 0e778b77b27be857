//! Decides when a file is full: rows are written in pieces that become smaller as the file approaches its target
//! size, so that it closes near it. The size is checked at most as often as in the Java library, which does so every
//! 1,000 rows.

use arrow_array::RecordBatch;

use crate::arrow::size::bytes_of;

/// Minimum rows of a piece.
const LEAST_ROWS: usize = 1_000;

/// Takes from the front of `rest` as many rows as are sure to fit into `room` bytes of a file, at least the minimum.
///
/// Encoded rows are hardly ever larger than in memory, so a piece as large as the remaining space is followed by a
/// smaller one.
pub(super) fn piece(rest: &mut Vec<RecordBatch>, room: usize) -> Vec<RecordBatch> {
    let (mut piece, mut rows, mut bytes) = (Vec::new(), 0, 0);
    let mut left = std::mem::take(rest).into_iter();
    for batch in left.by_ref() {
        let whole = bytes_of(&batch);
        if whole <= room.saturating_sub(bytes) || batch.num_rows() <= LEAST_ROWS.saturating_sub(rows) {
            (rows, bytes) = (rows + batch.num_rows(), bytes + whole);
            piece.push(batch);
            continue;
        }
        let fitting = batch.num_rows() as u128 * room.saturating_sub(bytes) as u128 / whole.max(1) as u128;
        let fitting = usize::try_from(fitting).unwrap_or(usize::MAX).max(LEAST_ROWS.saturating_sub(rows));
        let fitting = fitting.min(batch.num_rows());
        if fitting > 0 {
            piece.push(batch.slice(0, fitting));
        }
        if fitting < batch.num_rows() {
            rest.push(batch.slice(fitting, batch.num_rows() - fitting));
        }
        break;
    }
    rest.extend(left);
    piece
}

/// Gives rows beyond the first `most` of a piece back to the front of `rest`; at least one row stays.
pub(super) fn limit(piece: &mut Vec<RecordBatch>, rest: &mut Vec<RecordBatch>, most: u64) {
    let mut room = usize::try_from(most).unwrap_or(usize::MAX).max(1);
    let mut back = Vec::new();
    let taken = std::mem::take(piece);
    for batch in taken {
        let fitting = batch.num_rows().min(room);
        room -= fitting;
        if fitting > 0 {
            piece.push(batch.slice(0, fitting));
        }
        if fitting < batch.num_rows() {
            back.push(batch.slice(fitting, batch.num_rows() - fitting));
        }
    }
    if !back.is_empty() {
        back.append(rest);
        *rest = back;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array};

    use super::*;

    fn longs(rows: usize) -> RecordBatch {
        let values: ArrayRef = Arc::new((0..rows as i64).collect::<Int64Array>());
        RecordBatch::try_from_iter([("v", values)]).unwrap()
    }

    #[test]
    fn rows_beyond_a_limit_go_back_in_order() {
        for (taken, most, kept) in [(vec![5, 5], 10, vec![5, 5]), (vec![5, 5], 7, vec![5, 2]), (vec![5], 0, vec![1])] {
            let mut piece: Vec<RecordBatch> = taken.iter().map(|rows| longs(*rows)).collect();
            let mut rest = vec![longs(3)];
            limit(&mut piece, &mut rest, most);
            let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).collect::<Vec<_>>();
            assert_eq!(rows(&piece), kept);
            assert_eq!(rows(&rest).iter().sum::<usize>(), taken.iter().sum::<usize>() + 3 - kept.iter().sum::<usize>());
            assert_eq!(rest.last().unwrap(), &longs(3));
        }
    }

    #[test]
    fn pieces_shrink_towards_the_target_and_lose_no_row() {
        for (batches, room, taken) in [
            (vec![10_000], usize::MAX, 10_000),
            (vec![10_000], 40_000, 5_000),
            (vec![10_000], 0, 1_000),
            (vec![600, 600, 10_000], 0, 1_000),
            (vec![3_000, 10_000], 40_000, 5_000),
            (vec![3_000, 10_000], 24_000, 3_000),
            (vec![700], 0, 700),
            (vec![0, 10_000], 8, 1_000),
        ] {
            let total: usize = batches.iter().sum();
            let mut rest: Vec<RecordBatch> = batches.iter().map(|rows| longs(*rows)).collect();
            let piece = piece(&mut rest, room);
            let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
            assert_eq!((rows(&piece), rows(&rest)), (taken, total - taken), "{batches:?} into {room}");
        }
    }
}
