"""How the schema, the partition spec, the sort order, the references and the files of a table change."""

from __future__ import annotations

from icefield.table.update.change import Change
from icefield.table.update.changes import DeleteFiles, OverwriteFiles, ReplacePartitions, RewriteFiles, RowDelta
from icefield.table.update.files import AppendFiles, UpdateSnapshot
from icefield.table.update.manifests import ManifestsPreview, ManifestWriter, RewriteManifests
from icefield.table.update.schema import UpdateSchema
from icefield.table.update.snapshots import ManageSnapshots
from icefield.table.update.sorting import UpdateSortOrder
from icefield.table.update.spec import UpdateSpec
from icefield.table.update.statistics import UpdateStatistics

__all__ = [
    "AppendFiles",
    "Change",
    "DeleteFiles",
    "ManageSnapshots",
    "ManifestWriter",
    "ManifestsPreview",
    "OverwriteFiles",
    "ReplacePartitions",
    "RewriteFiles",
    "RewriteManifests",
    "RowDelta",
    "UpdateSchema",
    "UpdateSnapshot",
    "UpdateSortOrder",
    "UpdateSpec",
    "UpdateStatistics",
]
