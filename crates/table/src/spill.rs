//! Rows that exceed memory: batches in a temporary file, as a stream in Arrow's IPC format.
//!
//! The file is in the system's temporary folder (`TMPDIR`) and unnamed, so that it disappears with the process
//! however that ends.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};

use crate::error::{Error, Result};
use crate::interrupt;

/// Bytes read or written at once.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// A temporary file for any number of streams, one after the other.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: Arc<File>,
    end: u64,
}

/// Batches in a temporary file; the file is deleted with the last of them.
#[derive(Debug, Clone)]
pub(crate) struct Spilled {
    file: Arc<File>,
    start: u64,
}

/// The batches of a temporary file, in order.
#[derive(Debug)]
pub(crate) struct SpillReader(StreamReader<BufReader<Positioned>>);

/// A file read and written at explicit positions, so that several users can share it.
#[derive(Debug)]
struct Positioned {
    file: Arc<File>,
    position: u64,
}

impl SpillFile {
    /// An empty file.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written.
    pub(crate) fn create() -> Result<Self> {
        let file = tempfile::tempfile().map_err(|error| failed("create", &error))?;
        Ok(Self { file: Arc::new(file), end: 0 })
    }

    /// Appends a stream of batches to the file.
    ///
    /// # Errors
    /// The disk is full, or fails; errors of the batches.
    pub(crate) fn add(
        &mut self,
        schema: &SchemaRef,
        batches: impl IntoIterator<Item = Result<RecordBatch>>,
    ) -> Result<Spilled> {
        let start = self.end;
        let target = BufWriter::with_capacity(BUFFER_BYTES, Positioned { file: self.file.clone(), position: start });
        let mut stream = StreamWriter::try_new(target, schema).map_err(|error| of_arrow("write", error))?;
        for batch in batches {
            interrupt::check()?;
            stream.write(&batch?).map_err(|error| of_arrow("write", error))?;
        }
        let buffer = stream.into_inner().map_err(|error| of_arrow("write", error))?;
        let written = buffer.into_inner().map_err(|error| failed("write", error.error()))?;
        self.end = written.position;
        Ok(Spilled { file: written.file, start })
    }
}

impl Spilled {
    /// Reads the batches from the beginning. Several readers can be used independently.
    ///
    /// # Errors
    /// The disk fails.
    pub(crate) fn read(&self) -> Result<SpillReader> {
        let file = BufReader::with_capacity(BUFFER_BYTES, Positioned { file: self.file.clone(), position: self.start });
        StreamReader::try_new(file, None).map(SpillReader).map_err(|error| of_arrow("read", error))
    }
}

impl Iterator for SpillReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(|error| of_arrow("read", error)))
    }
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(&*self.file, buffer, self.position)?;
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(&*self.file, buffer, self.position)?;
        self.position += u64::try_from(read).unwrap_or(u64::MAX);
        Ok(read)
    }
}

impl Write for Positioned {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let written = std::os::unix::fs::FileExt::write_at(&*self.file, buffer, self.position)?;
        #[cfg(windows)]
        let written = std::os::windows::fs::FileExt::seek_write(&*self.file, buffer, self.position)?;
        self.position += u64::try_from(written).unwrap_or(u64::MAX);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn failed(operation: &'static str, error: &io::Error) -> Error {
    let path = std::env::temp_dir().display().to_string();
    Error::Storage {
        path,
        operation,
        message: format!("a temporary file for rows that exceed the memory limit: {error}"),
    }
}

fn of_arrow(operation: &'static str, error: ArrowError) -> Error {
    match error {
        ArrowError::IoError(_, error) => failed(operation, &error),
        other => Error::Internal(format!("a temporary file of rows: {other}")),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder, StringBuilder, StringDictionaryBuilder};
    use arrow_array::types::Int32Type;
    use arrow_array::{
        ArrayRef, BinaryViewArray, BooleanArray, Decimal128Array, Float64Array, NullArray, StringViewArray, StructArray,
    };
    use arrow_schema::{DataType, Field, Schema};

    use super::*;

    /// Rows with many types and with field metadata, as for the extension types of variants and uuids.
    fn rows(start: i32, count: i32) -> RecordBatch {
        let numbers: Vec<i32> = (start..start + count).collect();
        let text = |number: &i32| (number % 3 != 0).then(|| format!("text {number} {}", "x".repeat(20)));
        let mut lists = ListBuilder::new(Int32Builder::new());
        let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
        let mut words = StringDictionaryBuilder::<Int32Type>::new();
        for number in &numbers {
            lists.append_option((number % 4 != 0).then(|| (0..number % 4).map(Some)));
            maps.keys().append_value(format!("k{number}"));
            maps.values().append_option((number % 2 == 0).then_some(*number));
            maps.append(number % 5 != 0).unwrap();
            words.append_value(format!("word {}", number % 7));
        }
        let doubles: Float64Array = numbers.iter().map(|n| (n % 2 == 0).then_some(f64::from(*n))).collect();
        let inner = Arc::new(Field::new("d", DataType::Float64, true));
        let columns: Vec<(&str, ArrayRef)> = vec![
            ("text", Arc::new(numbers.iter().map(text).collect::<StringViewArray>())),
            ("bytes", Arc::new(numbers.iter().map(|n| text(n).map(String::into_bytes)).collect::<BinaryViewArray>())),
            ("truth", Arc::new(numbers.iter().map(|n| (n % 2 == 0).then_some(n % 3 == 0)).collect::<BooleanArray>())),
            ("money", Arc::new(numbers.iter().map(|n| Some(i128::from(*n) << 70)).collect::<Decimal128Array>())),
            ("struct", Arc::new(StructArray::from(vec![(inner, Arc::new(doubles) as ArrayRef)]))),
            ("list", Arc::new(lists.finish())),
            ("map", Arc::new(maps.finish())),
            ("word", Arc::new(words.finish())),
            ("nothing", Arc::new(NullArray::new(numbers.len()))),
        ];
        let about = HashMap::from([("ARROW:extension:name".to_owned(), "arrow.json".to_owned())]);
        let fields = columns
            .iter()
            .map(|(name, array)| Field::new(*name, array.data_type().clone(), true).with_metadata(about.clone()));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        RecordBatch::try_new(schema, columns.into_iter().map(|(_, array)| array).collect()).unwrap()
    }

    #[test]
    fn batches_come_back_as_they_were_to_any_number_of_readers() {
        let batches = [rows(0, 1000), rows(1000, 0), rows(1000, 700).slice(13, 600), rows(5, 1)];
        let mut file = SpillFile::create().unwrap();
        let spilled = file.add(&batches[0].schema(), batches.iter().cloned().map(Ok)).unwrap();
        drop(file);
        let (mut one, mut other) = (spilled.read().unwrap(), spilled.clone().read().unwrap());
        drop(spilled);
        for batch in &batches {
            assert_eq!(&one.next().unwrap().unwrap(), batch);
            assert_eq!(&other.next().unwrap().unwrap(), batch);
        }
        assert!(one.next().is_none() && other.next().is_none());
    }

    #[test]
    fn a_file_has_several_streams() {
        let mut file = SpillFile::create().unwrap();
        let parts = [rows(0, 90), rows(90, 0), rows(90, 1200)];
        let streams = parts
            .iter()
            .map(|part| file.add(&part.schema(), [Ok(part.slice(0, part.num_rows() / 2)), Ok(part.clone())]));
        let streams: Vec<Spilled> = streams.map(Result::unwrap).collect();
        for (part, stream) in parts.iter().zip(streams).rev() {
            let batches: Vec<RecordBatch> = stream.read().unwrap().map(Result::unwrap).collect();
            assert_eq!(batches, [part.slice(0, part.num_rows() / 2), part.clone()]);
        }
        let broken = file.add(&parts[0].schema(), [Err(Error::invalid("the source"))]);
        assert_eq!(broken.unwrap_err().to_string(), "the source");
    }

    #[test]
    fn an_empty_file_has_no_batches() {
        let spilled = SpillFile::create().unwrap().add(&rows(0, 0).schema(), []).unwrap();
        assert!(spilled.read().unwrap().next().is_none());
    }
}
