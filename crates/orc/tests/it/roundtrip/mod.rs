//! Laws of the writer: whatever is written, in any form, is read back unchanged, also with encryption.

mod arbitrary;
mod encryption;
mod merge;

use std::sync::Arc;

use arbitrary::{Draw, assert_same, column};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::Schema;
use bytes::Bytes;
use icefield_orc::{ArrowOptions, Pool, ReadOptions, Reader, Writer, WriterOptions, WrittenFile};
use proptest::prelude::*;

/// Writes batches, each split into parts of `part` rows.
fn write(
    schema: &Schema,
    batches: &[RecordBatch],
    part: usize,
    options: WriterOptions,
) -> icefield_orc::Result<(Bytes, WrittenFile)> {
    let mut writer = Writer::try_new(Vec::new(), schema, options)?;
    for batch in batches {
        for start in (0..batch.num_rows()).step_by(part) {
            writer.write(&batch.slice(start, part.min(batch.num_rows() - start)))?;
        }
    }
    let (bytes, file) = writer.finish()?;
    Ok((bytes.into(), file))
}

/// A pool with a thread for each closure.
#[derive(Debug)]
struct Threads;

impl Pool for Threads {
    fn run(&self, work: Vec<Box<dyn FnOnce() + Send + '_>>) {
        std::thread::scope(|scope| work.into_iter().for_each(|one| drop(scope.spawn(one))));
    }

    fn spawn(&self, task: Box<dyn FnOnce() + Send>) -> bool {
        drop(std::thread::spawn(task));
        true
    }
}

fn read(reader: &Reader<Bytes>, arrow: &ArrowOptions, batch_size: usize) -> icefield_orc::Result<Vec<RecordBatch>> {
    reader.batches(ReadOptions { arrow: arrow.clone(), batch_size, ..ReadOptions::default() })?.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_again(seed in proptest::collection::vec(any::<u8>(), 0..64)) {
        let mut draw = Draw::new(&seed);
        let types = arbitrary::schema(&mut draw);
        let arrow = arbitrary::arrow(&mut draw);
        let (schema, batches) = arbitrary::batches(&mut draw, &types, &arrow);
        let options = arbitrary::options(&mut draw, &types);
        let part = draw.pick(&[1 << 20, 97, 1000]);
        let (bytes, file) = write(&schema, &batches, part, options.clone()).unwrap();
        let reader = Reader::open(bytes.clone()).unwrap();
        let got = read(&reader, &arrow, draw.pick(&[8192, 100])).unwrap();
        assert_same(&schema, &batches, &got);

        // Columns that are encoded in parallel give the same file.
        let mut writer = Writer::try_new(Vec::new(), &schema, options.clone()).unwrap();
        writer.set_pool(Some(Arc::new(Threads)));
        for batch in &batches {
            for start in (0..batch.num_rows()).step_by(part) {
                writer.write(&batch.slice(start, part.min(batch.num_rows() - start))).unwrap();
            }
        }
        prop_assert_eq!(&writer.finish().unwrap().0, &bytes);

        // So do batches that are written in steps; and the stripes together contain all rows.
        let mut writer = Writer::try_new(Vec::new(), &schema, options.clone()).unwrap();
        for batch in &batches {
            writer.write_in_steps(batch, part, || Ok(())).unwrap();
        }
        prop_assert_eq!(&writer.finish().unwrap().0, &bytes);
        let options = ReadOptions { arrow: arrow.clone(), batch_size: 100, ..ReadOptions::default() };
        let stripes = 0..reader.metadata().footer.stripes.len();
        let stripes: Vec<_> = stripes.map(|stripe| reader.read_stripe(stripe, options.clone()).unwrap()).collect();
        assert_same(&schema, &batches, &stripes);

        // The writer's result matches the file.
        let metadata = reader.metadata();
        prop_assert_eq!(&file.schema, &metadata.schema);
        prop_assert_eq!(file.schema.to_string(), types.to_string());
        prop_assert_eq!(file.length, bytes.len() as u64);
        prop_assert_eq!(file.rows, batches.iter().map(|batch| batch.num_rows() as u64).sum::<u64>());
        prop_assert_eq!(file.rows, metadata.rows());
        let equal = |own: &dyn std::fmt::Debug, other: &dyn std::fmt::Debug| format!("{own:?}") == format!("{other:?}");
        prop_assert!(equal(&file.statistics, &metadata.file_statistics().unwrap()));
        prop_assert!(equal(&file.stripe_statistics, &metadata.stripe_statistics().unwrap()));
        let offsets: Vec<_> = metadata.footer.stripes.iter().filter_map(|stripe| stripe.offset).collect();
        prop_assert_eq!(file.stripes.iter().map(|stripe| stripe.offset).collect::<Vec<_>>(), offsets);

        // Read scattered rows, which the index locates.
        let rows = file.rows;
        let mut merged: Vec<std::ops::Range<u64>> = Vec::new();
        for start in (0..3).map(|third| rows * third / 3).filter(|start| *start < rows) {
            let end = (start + 5).min(rows);
            match merged.last_mut() {
                Some(last) if last.end >= start => last.end = last.end.max(end),
                _ => merged.push(start..end),
            }
        }
        let some = ReadOptions { rows: Some(merged.clone()), arrow: arrow.clone(), ..ReadOptions::default() };
        let some: Vec<_> = reader.batches(some).unwrap().collect::<Result<_, _>>().unwrap();
        for index in 0..schema.fields().len() {
            if let Some(all) = column(&got, index) {
                let parts: Vec<_> =
                    merged.iter().map(|rows| all.slice(rows.start as usize, (rows.end - rows.start) as usize)).collect();
                let parts: Vec<_> = parts.iter().map(|part| part.as_ref()).collect();
                prop_assert_eq!(Some(arrow_select::concat::concat(&parts).unwrap()), column(&some, index));
            }
        }
    }
}

/// The writer returns what a manifest needs: field ids, counts, nulls, bounds, stripe offsets.
#[test]
fn a_finished_file_tells_its_metrics() {
    use arrow_array::{Int64Array, StringArray};
    use arrow_schema::{DataType, Field};

    let id = |number: &str| std::collections::HashMap::from([("iceberg.id".to_owned(), number.to_owned())]);
    let schema = Schema::new(vec![
        Field::new("id", DataType::Int64, true).with_metadata(id("7")),
        Field::new("name", DataType::Utf8, true).with_metadata(id("9")),
    ]);
    let columns: Vec<ArrayRef> = vec![
        Arc::new(Int64Array::from(vec![Some(5), None, Some(-3)])),
        Arc::new(StringArray::from(vec![Some("b"), Some("a"), Some("c")])),
    ];
    let batch = RecordBatch::try_new(Arc::new(schema.clone()), columns).unwrap();
    let options = WriterOptions { stripe_rows: Some(2), ..WriterOptions::default() };
    let (_, file) = write(&schema, &[batch], 10, options).unwrap();
    let ids: Vec<_> = file.schema.children.iter().map(|child| child.attribute("iceberg.id")).collect();
    assert_eq!(ids, [Some("7"), Some("9")]);
    assert_eq!(file.stripes.iter().map(|stripe| stripe.rows).collect::<Vec<_>>(), [2, 1]);
    assert_eq!(file.stripes[0].offset, 3);
    assert_eq!(file.stripes[1].offset, 3 + file.stripes[0].length);
    let numbers = &file.statistics[1];
    assert_eq!((numbers.number_of_values, numbers.has_null), (Some(2), Some(true)));
    let bounds = numbers.int_statistics.as_ref().unwrap();
    assert_eq!((bounds.minimum, bounds.maximum, bounds.sum), (Some(-3), Some(5), Some(2)));
    let bounds = file.statistics[2].string_statistics.as_ref().unwrap();
    assert_eq!((bounds.minimum.as_deref(), bounds.maximum.as_deref()), (Some(&b"a"[..]), Some(&b"c"[..])));
    assert_eq!(file.statistics[2].has_null, Some(false));
}

/// Row ranges that are close together are decoded as one, so the row groups between them must be fetched too.
#[test]
fn rows_that_are_close_with_row_groups_between_them() {
    use arrow_array::StringArray;

    let texts = |row: u64| (0..4).map(|at| format!("{:016x}", row.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> at)).collect();
    let array = Arc::new(StringArray::from_iter_values((0..2000).map(texts).collect::<Vec<String>>())) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("text", array.clone())]).unwrap();
    let options = WriterOptions {
        row_index_stride: 10,
        compression_block_size: Some(100),
        dictionary_key_size_threshold: 0.0,
        ..WriterOptions::default()
    };
    let reader = Reader::open(write(&batch.schema(), &[batch], 1000, options).unwrap().0).unwrap();
    for gap in [5, 100, 500, 700] {
        let rows = vec![3..6, 6 + gap..9 + gap, 1990..2000];
        let options = ReadOptions { rows: Some(rows), ..ReadOptions::default() };
        let got: Vec<_> = reader.batches(options).unwrap().collect::<Result<_, _>>().unwrap();
        let wanted = [array.slice(3, 3), array.slice(6 + gap as usize, 3), array.slice(1990, 10)];
        let wanted: Vec<_> = wanted.iter().map(|part| part.as_ref()).collect();
        assert_eq!(column(&got, 0), Some(arrow_select::concat::concat(&wanted).unwrap()), "gap {gap}");
    }
}

/// The writer calls `check` before each step; an error of `check` ends the file.
#[test]
fn a_writer_stops_when_it_is_told_to() {
    let array: arrow_array::ArrayRef = Arc::new(arrow_array::Int64Array::from_iter_values(0..10));
    let batch = RecordBatch::try_from_iter([("n", array)]).unwrap();
    let mut writer = Writer::try_new(Vec::new(), &batch.schema(), WriterOptions::default()).unwrap();
    let mut asked = 0;
    let check = || {
        asked += 1;
        if asked == 3 { Err(icefield_orc::Error::invalid("enough")) } else { Ok(()) }
    };
    let error = writer.write_in_steps(&batch, 4, check).unwrap_err();
    assert_eq!((error.to_string().as_str(), writer.rows()), ("enough", 8));
    assert!(writer.write(&batch).unwrap_err().to_string().contains("this writer has failed"));
}
