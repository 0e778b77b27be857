//! ORC data files ("Appendix A: ORC").

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{Schema as ArrowSchema, SchemaRef};
use icefield_format::metadata::properties::ORC_BLOOM_FILTER_COLUMNS;
use icefield_format::types::Schema;
use icefield_orc::{TypeDescription, Writer, WriterOptions};

use super::floats::Floats;
use super::options::OrcOptions;
use super::{metrics, schema};
use crate::error::{Error, Result};
use crate::file::modes::Modes;
use crate::file::shapes::Shapes;
use crate::file::sink::Sink;
use crate::file::{FileWriter, WrittenFile};
use crate::orc_pool::ProcessPool;
use crate::storage::Storage;

/// Shared by all ORC files of one writer.
#[derive(Debug)]
pub struct OrcLayout {
    table: Arc<Schema>,
    modes: Modes,
    /// The stored columns with the attributes of their types.
    arrow: SchemaRef,
    options: WriterOptions,
    floats: Floats,
}

impl OrcLayout {
    /// The layout of files with a table schema whose batches arrive as `arrow`.
    pub fn new(schema: &Arc<Schema>, arrow: &ArrowSchema, options: &OrcOptions, modes: Modes) -> Result<Self> {
        let arrow = schema::with_attributes(schema, arrow)?;
        let types = TypeDescription::from_arrow(&arrow).map_err(|error| Error::unsupported(error.to_string()))?;
        if let Some(column) =
            options.writer.bloom_filter_columns.iter().find(|column| types.find_path(column).is_none())
        {
            let property = ORC_BLOOM_FILTER_COLUMNS.name;
            return Err(Error::invalid(format!(
                "table property '{property}': expected names of columns of the table, got '{column}'"
            )));
        }
        let floats = Floats::new(schema, &modes)?;
        Ok(Self { table: schema.clone(), modes, arrow, options: options.writer.clone(), floats })
    }
}

/// An ORC file being written.
#[derive(Debug)]
pub struct OrcWriter {
    path: String,
    layout: Arc<OrcLayout>,
    writer: Writer<Sink>,
    sink: Sink,
    floats: Floats,
    shapes: Shapes,
}

impl OrcWriter {
    /// Starts a file.
    pub fn create(storage: &Storage, path: String, layout: Arc<OrcLayout>) -> Result<Self> {
        let sink = Sink::new(storage.output(&path)?);
        let writer = Writer::try_new(sink.clone(), &layout.arrow, layout.options.clone())
            .map_err(|error| failed(&path, &sink, error))?;
        let floats = layout.floats.clone();
        let shapes = Shapes::new(&layout.table, &layout.modes);
        Ok(Self { path, layout, writer, sink, floats, shapes })
    }
}

impl FileWriter for OrcWriter {
    fn write(&mut self, batches: &[RecordBatch], side_by_side: bool) -> Result<()> {
        self.shapes.add(batches);
        self.writer.set_pool(side_by_side.then(|| Arc::new(ProcessPool) as _));
        for batch in batches {
            self.floats.add(batch)?;
            self.writer.write(batch).map_err(|error| failed(&self.path, &self.sink, error))?;
        }
        Ok(())
    }

    fn close_group(&mut self) -> Result<()> {
        self.writer.flush().map_err(|error| failed(&self.path, &self.sink, error))
    }

    fn memory(&self) -> usize {
        self.writer.memory()
    }

    fn size(&self) -> u64 {
        self.writer.estimated_length()
    }

    fn finish(self: Box<Self>) -> Result<WrittenFile> {
        let Self { path, layout, writer, sink, floats, shapes } = *self;
        let (_, file) = writer.finish().map_err(|error| failed(&path, &sink, error))?;
        let mut metrics = metrics::of_file(&file, &floats, &layout.table, &layout.modes)?;
        shapes.finish(&mut metrics);
        let bytes = sink.finish()?;
        Ok(WrittenFile { path, bytes, metrics, key_metadata: None })
    }

    fn abort(self: Box<Self>) {
        self.sink.abort();
    }
}

/// The error of a write: the store's own error if it failed, otherwise the encoder's.
fn failed(path: &str, sink: &Sink, error: icefield_orc::Error) -> Error {
    sink.failure().unwrap_or_else(|| Error::column("(data)", format!("cannot be written to {path}: {error}")))
}
