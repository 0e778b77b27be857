//! Text that is not UTF-8, anywhere in a batch: the writer rejects it, and readers detect it if the writer does not
//! check.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BinaryArray, Int32Array, RecordBatch, UnionArray, make_array};
use arrow_schema::{DataType, Field, Schema, UnionFields};
use icefield_orc::{ReadOptions, Reader, Writer, WriterOptions};

/// Unchecked text.
fn texts(values: &[&[u8]]) -> ArrayRef {
    let data = BinaryArray::from_vec(values.to_vec()).into_data().into_builder().data_type(DataType::Utf8);
    // SAFETY: text from the C data interface is not checked either.
    make_array(unsafe { data.build_unchecked() })
}

fn union(tags: &[i8], offsets: Option<&[i32]>, children: [ArrayRef; 2]) -> ArrayRef {
    let fields =
        ["n", "t"].iter().zip(&children).map(|(name, child)| Field::new(*name, child.data_type().clone(), true));
    let fields = UnionFields::try_new([3, 5], fields).unwrap();
    let offsets = offsets.map(|offsets| offsets.to_vec().into());
    Arc::new(UnionArray::try_new(fields, tags.to_vec().into(), offsets, children.to_vec()).unwrap())
}

fn write(values: &ArrayRef, options: WriterOptions) -> Result<Vec<u8>, String> {
    let schema = Arc::new(Schema::new(vec![Field::new("v", values.data_type().clone(), true)]));
    let mut writer = Writer::try_new(Vec::new(), &schema, options).map_err(|error| error.to_string())?;
    // The first batch is valid, so the error must count rows of the whole file.
    for batch in [values.slice(0, 1), values.clone()] {
        let batch = RecordBatch::try_new(schema.clone(), vec![batch]).unwrap();
        writer.write(&batch).map_err(|error| error.to_string())?;
    }
    writer.finish().map(|(bytes, _)| bytes).map_err(|error| error.to_string())
}

fn numbers(count: i32) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(0..count))
}

#[test]
fn texts_of_unions_are_looked_at() {
    let wrong = || texts(&[b"a", b"\xff", b"b"]);
    // The row in the second batch, if any; the first row of each case is valid.
    let cases = [
        ("dense", union(&[5, 3, 3, 5], Some(&[0, 0, 1, 1]), [numbers(2), wrong()]), Some(3)),
        ("dense, in another order", union(&[5, 5, 5], Some(&[2, 0, 1]), [numbers(0), wrong()]), Some(2)),
        ("dense, what no row has", union(&[5, 3, 5], Some(&[0, 0, 2]), [numbers(1), wrong()]), None),
        ("dense, a slice", union(&[5, 5, 3, 5], Some(&[1, 0, 0, 1]), [numbers(1), wrong()]).slice(1, 3), Some(2)),
        ("sparse", union(&[3, 5, 5], None, [numbers(3), wrong()]), Some(1)),
        ("sparse, of another variant", union(&[3, 3, 5], None, [numbers(3), wrong()]), None),
        (
            "sparse, a slice",
            union(&[5, 5, 5], None, [numbers(3), texts(&[b"\xff", b"a", b"\xff"])]).slice(1, 2),
            Some(1),
        ),
    ];
    for (what, values, row) in cases {
        match (row, write(&values, WriterOptions::default())) {
            (None, written) => {
                let reader = Reader::open(bytes::Bytes::from(written.unwrap())).unwrap();
                let rows: usize =
                    reader.batches(ReadOptions::default()).unwrap().map(|batch| batch.unwrap().num_rows()).sum();
                assert_eq!(rows, values.len() + 1, "{what}");
            }
            (Some(row), written) => {
                let expected = format!("column v.t: row {} is not UTF-8", row + 1);
                assert!(written.as_ref().is_err_and(|error| error.starts_with(&expected)), "{what}: {written:?}");
            }
        }
    }
}

#[test]
fn a_root_of_texts_is_looked_at() {
    let bare = || WriterOptions { bare_root: true, ..WriterOptions::default() };
    assert!(write(&texts(&[b"a", b"b"]), bare()).is_ok());
    let error = write(&texts(&[b"a", b"b", b"\xff"]), bare()).unwrap_err();
    assert!(error.starts_with("column v: row 3 is not UTF-8"), "{error}");
}

#[test]
fn trusted_texts_are_found_by_readers() {
    for values in [texts(&[b"a", b"\xff"]), texts(&[b"a", b"caf\xc3"])] {
        assert!(write(&values, WriterOptions::default()).unwrap_err().starts_with("column v: row 2 is not UTF-8"));
        let written = write(&values, WriterOptions { trusted_texts: true, ..WriterOptions::default() }).unwrap();
        let reader = Reader::open(bytes::Bytes::from(written)).unwrap();
        let error = reader.batches(ReadOptions::default()).unwrap().find_map(Result::err).unwrap().to_string();
        assert!(error.contains("column 1: text that is not UTF-8"), "{error}");
    }
}
