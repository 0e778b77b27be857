//! Ranges of snapshots, bounded by ids or times as in Java's changelogs ("Point in Time Reads" in Appendix F).

use super::TableMetadata;
use crate::{Error, Result};

/// One end of a range of snapshots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotBound {
    /// A snapshot, by its id.
    Snapshot(i64),
    /// The last snapshot at or before this time (milliseconds from the epoch).
    Time(i64),
}

/// A range of snapshots of one branch, by id.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SnapshotRange {
    /// The snapshot before the range; `None` if the range begins with the first snapshot of the table.
    pub after: Option<i64>,
    /// The last snapshot of the range; `None` for the newest one of the branch.
    pub last: Option<i64>,
}

impl TableMetadata {
    /// Returns the snapshots of a branch (`main` by default) after `start`, up to `end`; `None` if there are none.
    ///
    /// # Errors
    /// `Invalid` if the start is not before the end, or if snapshots after the start have been expired.
    pub fn snapshots_between(
        &self,
        branch: Option<&str>,
        start: Option<SnapshotBound>,
        end: Option<SnapshotBound>,
    ) -> Result<Option<SnapshotRange>> {
        if let (Some(SnapshotBound::Time(start)), Some(SnapshotBound::Time(end))) = (start, end)
            && start >= end
        {
            return Err(Error::invalid(format!("start timestamp {start} must be before end timestamp {end}")));
        }
        let head = match branch {
            None => self.current_snapshot_id(),
            Some(name) => self.reference(name).map(|reference| reference.snapshot_id),
        };
        let newest_first = || head.into_iter().flat_map(|id| self.ancestors(id));
        let until = |time| newest_first().find(|snapshot| snapshot.timestamp_ms <= time);
        let after = match start {
            None => None,
            Some(SnapshotBound::Snapshot(id)) => Some(id),
            Some(SnapshotBound::Time(time)) => {
                if newest_first().next().is_none_or(|newest| newest.timestamp_ms < time) {
                    return Ok(None);
                }
                let found = until(time).map(|snapshot| snapshot.snapshot_id);
                let is_cut = || newest_first().last().is_some_and(|oldest| oldest.parent_snapshot_id.is_some());
                if found.is_none() && is_cut() {
                    let message = format!("cannot find a snapshot older than {time} ms: older ones have been expired");
                    return Err(Error::invalid(message));
                }
                found
            }
        };
        let last = match end {
            None => None,
            Some(SnapshotBound::Snapshot(id)) => Some(id),
            Some(SnapshotBound::Time(time)) => match until(time).map(|snapshot| snapshot.snapshot_id) {
                found if found.is_none() || found == after => return Ok(None),
                found => found,
            },
        };
        Ok(Some(SnapshotRange { after, last }))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Limits;

    /// Snapshots 1, 2, 3 of the main branch at 1000, 2000 and 3000 ms; 4, a child of 2 on the branch `side`, at 4000.
    fn metadata(expired: &[i64]) -> TableMetadata {
        let snapshot = |id: i64, parent: Option<i64>| {
            let mut json = json!({
                "snapshot-id": id, "sequence-number": id, "timestamp-ms": id * 1000, "schema-id": 0,
                "manifest-list": format!("{id}.avro"), "summary": {"operation": "append"},
            });
            if let Some(parent) = parent {
                json["parent-snapshot-id"] = parent.into();
            }
            json
        };
        let all = [snapshot(1, None), snapshot(2, Some(1)), snapshot(3, Some(2)), snapshot(4, Some(2))];
        let kept: Vec<_> =
            all.into_iter().filter(|json| !expired.iter().any(|id| json["snapshot-id"] == *id)).collect();
        let json = json!({
            "format-version": 2, "table-uuid": "00000000-0000-0000-0000-000000000000", "location": "file:///t",
            "last-sequence-number": 4, "last-updated-ms": 4000, "last-column-id": 0, "current-schema-id": 0,
            "schemas": [{"type": "struct", "schema-id": 0, "fields": []}],
            "default-spec-id": 0, "partition-specs": [{"spec-id": 0, "fields": []}], "last-partition-id": 999,
            "default-sort-order-id": 0, "sort-orders": [{"order-id": 0, "fields": []}],
            "current-snapshot-id": 3, "snapshots": kept,
            "refs": {"main": {"snapshot-id": 3, "type": "branch"}, "side": {"snapshot-id": 4, "type": "branch"}},
        });
        TableMetadata::from_json(json.to_string().as_bytes(), &Limits::default()).unwrap()
    }

    #[test]
    fn times_mean_the_snapshots_of_a_branch() {
        let metadata = metadata(&[]);
        let range = |after, last| Some(SnapshotRange { after, last });
        let (snapshot, time) = (SnapshotBound::Snapshot, SnapshotBound::Time);
        let cases = [
            (None, None, None, range(None, None)),
            (None, Some(time(500)), None, range(None, None)),
            (None, Some(time(1000)), None, range(Some(1), None)),
            (None, Some(time(2500)), None, range(Some(2), None)),
            (None, Some(time(3000)), None, range(Some(3), None)),
            (None, Some(time(3001)), None, None),
            (None, None, Some(time(999)), None),
            (None, None, Some(time(2999)), range(None, Some(2))),
            (None, None, Some(time(i64::MAX)), range(None, Some(3))),
            (None, Some(time(i64::MIN)), Some(time(1000)), range(None, Some(1))),
            (None, Some(time(2000)), Some(time(2999)), None),
            (None, Some(snapshot(1)), Some(time(2000)), range(Some(1), Some(2))),
            (None, Some(snapshot(2)), Some(time(2000)), None),
            (None, Some(time(1000)), Some(snapshot(3)), range(Some(1), Some(3))),
            (Some("side"), Some(time(2000)), None, range(Some(2), None)),
            (Some("side"), None, Some(time(9000)), range(None, Some(4))),
            (Some("side"), Some(time(4001)), None, None),
            (Some("other"), Some(time(0)), None, None),
        ];
        for (branch, start, end, expected) in cases {
            let found = metadata.snapshots_between(branch, start, end).unwrap();
            assert_eq!(found, expected, "{branch:?} {start:?} {end:?}");
        }
    }

    #[test]
    fn a_start_among_expired_snapshots_is_an_error() {
        let metadata = metadata(&[1]);
        let between = |start| metadata.snapshots_between(None, Some(SnapshotBound::Time(start)), None);
        assert!(between(1999).unwrap_err().to_string().contains("older ones have been expired"));
        assert_eq!(between(2000).unwrap(), Some(SnapshotRange { after: Some(2), last: None }));
    }

    #[test]
    fn a_start_must_be_before_its_end() {
        let found = metadata(&[]).snapshots_between(None, Some(SnapshotBound::Time(5)), Some(SnapshotBound::Time(5)));
        assert_eq!(found.unwrap_err().to_string(), "start timestamp 5 must be before end timestamp 5");
    }
}
