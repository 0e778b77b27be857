//! Statistics of uuid columns: those that hold in both orders in which readers compare uuids (`value::uuid`).
//!
//! The Java library skips row groups by the statistics of Parquet, which are of unsigned bytes, in its own signed order, and so would lose
//! rows of any row group with uuids on both sides of `80000000-...`.

use icefield_format::value::uuid::in_both_orders;
use parquet::arrow::arrow_writer::ArrowColumnChunk;
use parquet::basic::LogicalType;
use parquet::data_type::FixedLenByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::statistics::{Statistics, ValueStatistics};

/// Leaves a chunk of uuids the bounds that hold in both orders, or none.
pub(super) fn keep_common_bounds(chunk: &mut ArrowColumnChunk) -> Result<(), ParquetError> {
    let found = chunk.close();
    if found.metadata.column_descr().logical_type_ref() != Some(&LogicalType::Uuid) {
        return Ok(());
    }
    let Some(changed) = found.metadata.statistics().and_then(common) else { return Ok(()) };
    let metadata: ColumnChunkMetaData = found.metadata.clone().into_builder().set_statistics(changed).build()?;
    chunk.close_mut().metadata = metadata;
    Ok(())
}

fn common(statistics: &Statistics) -> Option<Statistics> {
    let Statistics::FixedLenByteArray(own) = statistics else { return None };
    let number = |value: &FixedLenByteArray| value.data().try_into().ok().map(u128::from_be_bytes);
    let (min, max) = (number(own.min_opt()?)?, number(own.max_opt()?)?);
    let bytes = |bound: Option<u128>| bound.map(|bound| FixedLenByteArray::from(bound.to_be_bytes().to_vec()));
    let (lower, upper) = match in_both_orders(min, max) {
        (Some(lower), Some(upper)) => (Some(lower), Some(upper)),
        // Readers may take one bound alone for none.
        _ => (None, None),
    };
    let (exact_min, exact_max) = (lower == Some(min), upper == Some(max));
    let changed = ValueStatistics::new(bytes(lower), bytes(upper), own.distinct_count(), own.null_count_opt(), false)
        .with_min_is_exact(exact_min)
        .with_max_is_exact(exact_max);
    Some(Statistics::FixedLenByteArray(changed))
}
