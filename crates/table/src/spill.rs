//! Rows that exceed memory: batches in a temporary file, as a stream in Arrow's IPC format.
//!
//! The file is in the system's temporary folder (`TMPDIR`) and unnamed, so that it disappears with the process
//! however that ends. Rows of encrypted tables are encrypted in it, by a key that is nowhere else, because blocks of a
//! deleted file stay on its disk.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Cursor, Read, Write};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
use icefield_format::encryption::{Cipher, keys};

use crate::error::{Error, Result};
use crate::interrupt;

/// Bytes read or written at once.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;
/// Bytes of the key of a file.
const KEY_BYTES: usize = 16;
/// Bytes of the length before an encrypted block.
const LENGTH_BYTES: usize = 4;

/// A temporary file for any number of streams, one after the other.
#[derive(Debug)]
pub(crate) struct SpillFile {
    file: Arc<Shared>,
    end: u64,
}

/// Batches in a temporary file; the file is deleted with the last of them.
#[derive(Debug, Clone)]
pub(crate) struct Spilled {
    file: Arc<Shared>,
    start: u64,
}

/// The batches of a temporary file, in order.
#[derive(Debug)]
pub(crate) struct SpillReader(StreamReader<BufReader<Blocks>>);

#[derive(Debug)]
struct Shared {
    file: File,
    cipher: Option<Cipher>,
}

/// A file read and written at explicit positions, so that several users can share it.
#[derive(Debug)]
struct Positioned {
    file: Arc<Shared>,
    position: u64,
}

/// What is written at once, as it is or encrypted: then each block has its length before it, and is bound to its place.
struct Blocks {
    file: Positioned,
    /// The decrypted block that is being read.
    open: Cursor<Vec<u8>>,
}

/// Does not print rows.
impl std::fmt::Debug for Blocks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Blocks").field("file", &self.file).finish_non_exhaustive()
    }
}

impl SpillFile {
    /// An empty file, for rows of an encrypted table or of another one.
    ///
    /// # Errors
    /// The folder for temporary files cannot be written; a system without random bytes.
    pub(crate) fn create(is_encrypted: bool) -> Result<Self> {
        let cipher = is_encrypted.then(|| Cipher::new(&keys::new_key(KEY_BYTES)?)).transpose()?;
        let file = tempfile::tempfile().map_err(|error| failed("create", &error))?;
        Ok(Self { file: Arc::new(Shared { file, cipher }), end: 0 })
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
        let target = BufWriter::with_capacity(BUFFER_BYTES, Blocks::at(&self.file, start));
        let mut stream = StreamWriter::try_new(target, schema).map_err(|error| of_arrow("write", error))?;
        for batch in batches {
            interrupt::check()?;
            stream.write(&batch?).map_err(|error| of_arrow("write", error))?;
        }
        let buffer = stream.into_inner().map_err(|error| of_arrow("write", error))?;
        let written = buffer.into_inner().map_err(|error| failed("write", error.error()))?;
        self.end = written.file.position;
        Ok(Spilled { file: written.file.file, start })
    }
}

impl Spilled {
    /// Whether the rows are encrypted.
    pub(crate) fn is_encrypted(&self) -> bool {
        self.file.cipher.is_some()
    }

    /// Reads the batches from the beginning. Several readers can be used independently.
    ///
    /// # Errors
    /// The disk fails.
    pub(crate) fn read(&self) -> Result<SpillReader> {
        let file = BufReader::with_capacity(BUFFER_BYTES, Blocks::at(&self.file, self.start));
        StreamReader::try_new(file, None).map(SpillReader).map_err(|error| of_arrow("read", error))
    }
}

impl Iterator for SpillReader {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(|error| of_arrow("read", error)))
    }
}

impl Blocks {
    fn at(file: &Arc<Shared>, position: u64) -> Self {
        Self { file: Positioned { file: file.clone(), position }, open: Cursor::default() }
    }
}

impl Read for Blocks {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let shared = self.file.file.clone();
        let Some(cipher) = &shared.cipher else { return self.file.read(buffer) };
        if self.open.position() >= self.open.get_ref().len() as u64 {
            let place = self.file.position;
            let mut length = [0; LENGTH_BYTES];
            self.file.read_exact(&mut length)?;
            let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
            let changed = || io::Error::new(io::ErrorKind::InvalidData, "the file was changed by another process");
            if length > 2 * BUFFER_BYTES {
                return Err(changed());
            }
            let mut sealed = vec![0; length];
            self.file.read_exact(&mut sealed)?;
            let mut plain = std::mem::take(&mut self.open).into_inner();
            plain.clear();
            cipher.decrypt(&sealed, &place.to_le_bytes(), &mut plain).map_err(|_| changed())?;
            self.open = Cursor::new(plain);
        }
        self.open.read(buffer)
    }
}

impl Write for Blocks {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        let shared = self.file.file.clone();
        let Some(cipher) = &shared.cipher else { return self.file.write(buffer) };
        let (block, _) = buffer.split_at_checked(BUFFER_BYTES).unwrap_or((buffer, &[]));
        let mut sealed = vec![0; LENGTH_BYTES];
        let place = self.file.position.to_le_bytes();
        cipher.encrypt(block, &place, &mut sealed).map_err(|error| io::Error::other(error.to_string()))?;
        let length = u32::try_from(sealed.len() - LENGTH_BYTES).unwrap_or(u32::MAX);
        if let Some(start) = sealed.first_chunk_mut() {
            *start = length.to_le_bytes();
        }
        self.file.write_all(&sealed)?;
        Ok(block.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Positioned {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let read = std::os::unix::fs::FileExt::read_at(&self.file.file, buffer, self.position)?;
        #[cfg(windows)]
        let read = std::os::windows::fs::FileExt::seek_read(&self.file.file, buffer, self.position)?;
        self.position += u64::try_from(read).unwrap_or(u64::MAX);
        Ok(read)
    }
}

impl Write for Positioned {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        #[cfg(unix)]
        let written = std::os::unix::fs::FileExt::write_at(&self.file.file, buffer, self.position)?;
        #[cfg(windows)]
        let written = std::os::windows::fs::FileExt::seek_write(&self.file.file, buffer, self.position)?;
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
        for is_encrypted in [false, true] {
            batches_come_back(is_encrypted);
        }
    }

    fn batches_come_back(is_encrypted: bool) {
        let batches = [rows(0, 1000), rows(1000, 0), rows(1000, 700).slice(13, 600), rows(5, 1), rows(9, 3000)];
        let mut file = SpillFile::create(is_encrypted).unwrap();
        let spilled = file.add(&batches[0].schema(), batches.iter().cloned().map(Ok)).unwrap();
        let mut stored = Vec::new();
        Positioned { file: file.file.clone(), position: 0 }.read_to_end(&mut stored).unwrap();
        let is_plain = stored.windows(16).any(|bytes| bytes == b"text 7 xxxxxxxxx");
        assert_eq!(is_plain, !is_encrypted);
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
        let mut file = SpillFile::create(true).unwrap();
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
    fn blocks_of_an_encrypted_file_keep_their_places() {
        let mut file = SpillFile::create(true).unwrap();
        let streams = [rows(0, 90), rows(90, 90)].map(|part| file.add(&part.schema(), [Ok(part)]).unwrap());
        let mut first = vec![0; usize::try_from(streams[1].start).unwrap()];
        Positioned { file: file.file.clone(), position: 0 }.read_exact(&mut first).unwrap();
        Positioned { file: file.file.clone(), position: streams[1].start }.write_all(&first).unwrap();
        let error = streams[1].read().unwrap_err().to_string();
        assert!(error.contains("changed by another process"), "{error}");
        assert_eq!(streams[0].read().unwrap().count(), 1);
    }

    #[test]
    fn an_empty_file_has_no_batches() {
        let spilled = SpillFile::create(true).unwrap().add(&rows(0, 0).schema(), []).unwrap();
        assert!(spilled.read().unwrap().next().is_none());
    }
}
