//! Merged files have the rows of all files and the statistics of one file; errors name files that do not match, and
//! why.

use std::sync::Arc;

use arrow_array::{Int64Array, RecordBatch};
use bytes::Bytes;
use icefield_orc::proto::{ColumnStatistics, CompressionKind};
use icefield_orc::{Error, FileVersion, Merger, ReadOptions, Reader, WriterOptions};
use proptest::prelude::*;

use super::arbitrary::{self, Draw, assert_same, column};
use super::{read, write};

fn merge(files: &[Bytes]) -> icefield_orc::Result<Bytes> {
    let mut merger = Merger::try_new(Vec::new())?;
    for (number, file) in files.iter().enumerate() {
        merger.add(&format!("f{number}.orc"), &Reader::open(file.clone())?)?;
    }
    let (bytes, file) = merger.finish()?;
    assert_eq!(file.length, bytes.len() as u64);
    Ok(bytes.into())
}

/// Statistics without bytes, since padding moves stripes, and without sums of doubles, which depend on the order of
/// their parts. If such a sum is NaN, the bounds are left out too: a NaN at the start of a part hides values from them,
/// which depends on where parts end, and readers must not use them.
fn comparable(statistics: &[ColumnStatistics], others: &[ColumnStatistics]) -> String {
    let is_finite =
        |own: &ColumnStatistics| own.double_statistics.as_ref().is_some_and(|own| own.sum.is_some_and(f64::is_finite));
    let mut statistics = statistics.to_vec();
    for (own, other) in statistics.iter_mut().zip(others) {
        let bounded = is_finite(own) && is_finite(other);
        own.bytes_on_disk = None;
        if let Some(doubles) = &mut own.double_statistics {
            doubles.sum = None;
            if !bounded {
                (doubles.minimum, doubles.maximum) = (None, None);
            }
        }
    }
    format!("{statistics:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merged_files_hold_the_rows_of_all(seed in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut draw = Draw::new(&seed);
        let types = arbitrary::schema(&mut draw);
        let arrow = arbitrary::arrow(&mut draw);
        let options = arbitrary::options(&mut draw, &types);
        let parts: Vec<_> = (0..1 + draw.below(3)).map(|_| arbitrary::batches(&mut draw, &types, &arrow)).collect();
        let schema = Arc::clone(&parts[0].0);
        let files: Vec<_> = parts.iter().map(|(_, batches)| write(&schema, batches, 500, options.clone()).unwrap().0).collect();
        let merged = Reader::open(merge(&files).unwrap()).unwrap();
        let all: Vec<RecordBatch> = parts.iter().flat_map(|(_, batches)| batches.clone()).collect();
        let got = read(&merged, &arrow, 700).unwrap();
        assert_same(&schema, &all, &got);

        // One file with the same stripes has the same statistics.
        let mut writer = icefield_orc::Writer::try_new(Vec::new(), &schema, options).unwrap();
        for (_, batches) in &parts {
            for batch in batches {
                for start in (0..batch.num_rows()).step_by(500) {
                    writer.write(&batch.slice(start, 500.min(batch.num_rows() - start))).unwrap();
                }
            }
            writer.flush().unwrap();
        }
        let (_, one) = writer.finish().unwrap();
        let own = merged.metadata();
        prop_assert_eq!(own.rows(), one.rows);
        // Sums that overflow do so at different points in one file and in merged ones.
        if one.statistics.iter().all(|own| own.int_statistics.as_ref().is_none_or(|own| own.sum.is_some())
            && own.decimal_statistics.as_ref().is_none_or(|own| own.sum.is_some()))
        {
            let (merged, one) = (&own.footer.statistics, &one.statistics);
            prop_assert_eq!(merged.len(), one.len());
            prop_assert_eq!(comparable(merged, one), comparable(one, merged));
        }
        prop_assert_eq!(own.stripe_statistics().unwrap().len(), own.footer.stripes.len());

        // The index of every stripe still locates its rows.
        let rows = own.rows();
        if rows > 2 {
            let some = ReadOptions { rows: Some(vec![rows / 2..rows / 2 + 1, rows - 1..rows]), arrow: arrow.clone(), ..ReadOptions::default() };
            let some: Vec<_> = merged.batches(some).unwrap().collect::<Result<_, _>>().unwrap();
            for index in 0..schema.fields().len() {
                let all = column(&got, index).unwrap();
                let (middle, last) = (all.slice(rows as usize / 2, 1), all.slice(rows as usize - 1, 1));
                let wanted = if rows / 2 + 1 > rows - 1 { last } else { arrow_select::concat::concat(&[&middle, &last]).unwrap() };
                prop_assert_eq!(Some(wanted), column(&some, index));
            }
        }
    }
}

fn numbers(name: &str, options: WriterOptions) -> Bytes {
    let array = Arc::new(Int64Array::from(vec![1, 2, 3])) as arrow_array::ArrayRef;
    let batch = RecordBatch::try_from_iter([(name, array)]).unwrap();
    write(&batch.schema(), &[batch], 10, options).unwrap().0
}

#[test]
fn files_that_do_not_fit_are_refused_by_name_and_reason() {
    let with = |change: fn(&mut WriterOptions)| {
        let mut options =
            WriterOptions { user_metadata: vec![("who".to_owned(), b"me".to_vec())], ..WriterOptions::default() };
        change(&mut options);
        options
    };
    let first = numbers("n", with(|_| {}));
    for (other, reason) in [
        (numbers("m", with(|_| {})), "its schema is struct<m:bigint>, that of f0.orc is struct<n:bigint>"),
        (
            numbers("n", with(|options| options.compression = CompressionKind::Zlib)),
            "its compression is ZLIB, that of f0.orc is ZSTD",
        ),
        (
            numbers("n", with(|options| options.version = FileVersion::V0_11)),
            "its file version is 0.11, that of f0.orc is 0.12",
        ),
        (
            numbers("n", with(|options| options.row_index_stride = 500)),
            "its row index stride is 500, that of f0.orc is 10000",
        ),
        (
            numbers("n", with(|options| options.user_metadata = vec![("who".to_owned(), b"you".to_vec())])),
            "its user metadata who differs from that of an earlier file",
        ),
    ] {
        let refused = merge(&[first.clone(), other]).err();
        let message = format!("f1.orc cannot be merged: {reason}");
        assert!(matches!(refused, Some(Error::Invalid(text)) if text == message));
    }
    assert!(matches!(merge(&[]), Err(Error::Invalid(message)) if message.contains("nothing was merged")));
}

/// Files with different user metadata and block sizes can be merged: metadata is joined, and the largest block counts.
#[test]
fn metadata_is_joined_and_the_largest_block_counts() {
    let file = |key: &str, block: usize| {
        let user_metadata = vec![("all".to_owned(), b"same".to_vec()), (key.to_owned(), key.into())];
        numbers("n", WriterOptions { user_metadata, compression_block_size: Some(block), ..WriterOptions::default() })
    };
    let merged = Reader::open(merge(&[file("a", 1000), file("b", 70_000), file("c", 500)]).unwrap()).unwrap();
    let metadata = merged.metadata();
    assert_eq!(metadata.postscript.compression_block_size, Some(70_000));
    let names: Vec<_> = metadata.footer.metadata.iter().filter_map(|item| item.name.as_deref()).collect();
    assert_eq!(names, ["all", "a", "b", "c"]);
    assert_eq!(read(&merged, &Default::default(), 100).unwrap().iter().map(RecordBatch::num_rows).sum::<usize>(), 9);
}

/// After an error, no incomplete file can be finished.
#[test]
fn a_merge_that_failed_is_over() {
    let mut merger = Merger::try_new(Vec::new()).unwrap();
    merger.add("a", &Reader::open(numbers("a", WriterOptions::default())).unwrap()).unwrap();
    merger.add("b", &Reader::open(numbers("b", WriterOptions::default())).unwrap()).unwrap_err();
    let again = merger.add("a", &Reader::open(numbers("a", WriterOptions::default())).unwrap());
    assert!(matches!(again, Err(Error::Invalid(message)) if message.contains("has failed")));
    assert!(merger.finish().is_err());
}
