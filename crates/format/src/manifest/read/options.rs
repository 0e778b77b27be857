//! Options for reading manifests.

use std::fmt;

use crate::Result;
use crate::types::StructType;
use crate::value::Value;

use crate::manifest::list::ManifestFile;
use crate::manifest::wanted::Metrics;

/// Decides whether files with a partition tuple may match. It is called once for each distinct tuple of a manifest.
pub type PartitionFilter<'a> = dyn Fn(&[Option<Value>]) -> Result<bool> + Sync + 'a;

/// What to read from a manifest.
#[derive(Clone, Default)]
pub struct ReadOptions<'a> {
    /// Partition type of the manifest's spec for the current schema, all fields primitive. Without it, the manifest's
    /// own Avro schema determines the types.
    pub partition_type: Option<&'a StructType>,
    /// Which metrics to read, for which fields. Others are skipped.
    pub metrics: Metrics,
    /// The manifest as its list describes it: null snapshot ids, sequence numbers and row ids are inherited from it.
    /// Without it, they stay null.
    pub inherit: Option<&'a ManifestFile>,
    /// Exclude entries of deleted files.
    pub live_only: bool,
    /// Exclude entries by partition, before their metrics are read.
    pub partition_filter: Option<&'a PartitionFilter<'a>>,
    /// Keep entries that the partition filter excludes, but without their metrics ([`Entries::metrics_read`]).
    pub keep_excluded: bool,
}

impl fmt::Debug for ReadOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadOptions")
            .field("partition_type", &self.partition_type)
            .field("metrics", &self.metrics)
            .field("inherit", &self.inherit)
            .field("live_only", &self.live_only)
            .field("partition_filter", &self.partition_filter.is_some())
            .field("keep_excluded", &self.keep_excluded)
            .finish()
    }
}
