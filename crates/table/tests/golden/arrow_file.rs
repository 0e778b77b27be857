//! Reads Arrow files whose buffers are compressed with ZSTD, which the arrow crate does with a feature that only these
//! tests would need.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_ipc::convert::try_fb_to_schema;
use arrow_ipc::{Block, CompressionType, root_as_footer, root_as_message};
use arrow_schema::{DataType, Schema};
use libtest_mimic::Failed;

/// Bytes at the end of a file: the length of its footer, and the magic.
const END: usize = 4 + 6;

/// Reads the columns of a file, and its batches.
pub fn read(path: &Path) -> Result<(Arc<Schema>, Vec<RecordBatch>), Failed> {
    let bytes = std::fs::read(path)?;
    let end = bytes.len() - END;
    let length = i32::from_le_bytes(bytes[end..end + 4].try_into()?);
    let footer = root_as_footer(&bytes[end - usize::try_from(length)?..end]).map_err(|error| error.to_string())?;
    let schema = Arc::new(try_fb_to_schema(footer.schema().ok_or("a file without a schema")?)?);
    let blocks = footer.recordBatches().into_iter().flatten();
    let batches = blocks.map(|block| batch(&bytes, block, &schema)).collect::<Result<_, _>>()?;
    Ok((schema, batches))
}

fn batch(bytes: &[u8], block: &Block, schema: &Arc<Schema>) -> Result<RecordBatch, Failed> {
    let start = usize::try_from(block.offset())?;
    let body = start + usize::try_from(block.metaDataLength())?;
    // Skip a marker and the length of the message.
    let message = root_as_message(&bytes[start + 8..body]).map_err(|error| error.to_string())?;
    let about = message.header_as_record_batch().ok_or("a message that is no batch")?;
    if about.compression().is_some_and(|compression| compression.codec() != CompressionType::ZSTD) {
        return Err("a codec that is not ZSTD".into());
    }
    let buffer = |(start, length): (i64, i64)| -> Result<Buffer, Failed> {
        let start = body + usize::try_from(start)?;
        let stored = &bytes[start..start + usize::try_from(length)?];
        let (Some(_), Some((length, stored))) = (about.compression(), stored.split_first_chunk()) else {
            return Ok(Buffer::from(stored));
        };
        Ok(match i64::from_le_bytes(*length) {
            -1 => Buffer::from(stored),
            length => Buffer::from(zstd::bulk::decompress(stored, usize::try_from(length)?)?),
        })
    };
    let buffers = about.buffers().into_iter().flatten().map(|found| buffer((found.offset(), found.length())));
    let nodes = about.nodes().into_iter().flatten().map(|node| Ok(usize::try_from(node.length())?));
    let mut parts =
        Parts { nodes: nodes.collect::<Result<_, Failed>>()?, buffers: buffers.collect::<Result<_, Failed>>()? };
    let columns = schema.fields().iter().map(|field| Ok(make_array(parts.next(field.data_type())?)));
    Ok(RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<Vec<ArrayRef>, Failed>>()?)?)
}

/// The lengths and the buffers of the remaining columns, depth first.
struct Parts {
    nodes: VecDeque<usize>,
    buffers: VecDeque<Buffer>,
}

impl Parts {
    fn next(&mut self, ty: &DataType) -> Result<ArrayData, Failed> {
        let length = self.nodes.pop_front().ok_or("a column without a length")?;
        let data = ArrayData::builder(ty.clone()).len(length);
        if *ty == DataType::Null {
            return Ok(data.build()?);
        }
        let mut buffer = || self.buffers.pop_front().ok_or("a column without a buffer");
        let nulls = buffer()?;
        let data = data.null_bit_buffer((!nulls.is_empty()).then_some(nulls));
        let data = match ty {
            DataType::Utf8 | DataType::Binary => data.add_buffer(buffer()?).add_buffer(buffer()?),
            DataType::Struct(fields) => {
                let children = fields.iter().map(|field| self.next(field.data_type()));
                data.child_data(children.collect::<Result<_, _>>()?)
            }
            ty if ty.is_primitive() || matches!(ty, DataType::Boolean | DataType::FixedSizeBinary(_)) => {
                data.add_buffer(buffer()?)
            }
            other => return Err(format!("no column of {other} is known here").into()),
        };
        Ok(data.build()?)
    }
}
