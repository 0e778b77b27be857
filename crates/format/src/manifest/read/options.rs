//! Options for reading manifests.

use std::fmt;

use crate::Result;
use crate::types::StructType;
use crate::value::Value;

use crate::manifest::list::ManifestFile;
use crate::manifest::wanted::Metrics;

/// Whether files with a partition tuple may match. It is called once for each distinct tuple of a manifest.
pub type PartitionFilter<'a> = dyn Fn(&[Option<Value>]) -> Result<bool> + Sync + 'a;

/// What is read of a manifest.
#[derive(Clone, Default)]
pub struct ReadOptions<'a> {
    /// The partition type of the manifest's spec over the current schema, every field a primitive; without it, partition
    /// values come out as the manifest's own Avro schema describes them.
    pub partition_type: Option<&'a StructType>,
    /// Which metrics, and for which fields. The others are passed over.
    pub metrics: Metrics,
    /// The manifest as its list describes it: null snapshot ids, sequence numbers and row ids are filled in from it.
    /// Without it, they stay as written.
    pub inherit: Option<&'a ManifestFile>,
    /// Leave out entries of deleted files.
    pub live_only: bool,
    /// Leave out entries whose partition it excludes, before their metrics are touched.
    pub partition_filter: Option<&'a PartitionFilter<'a>>,
    /// Keep entries whose partition is excluded, all but their metrics ([`Entries::metrics_read`]).
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
