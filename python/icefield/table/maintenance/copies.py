"""Copies of a table with its history, and rewritten paths for copies by other programs."""

from __future__ import annotations

from dataclasses import dataclass

from icefield._core import copy_table, rewrite_table_path
from icefield._inputs.locations import absolute_location
from icefield._outputs.layout import counted, size_of
from icefield._outputs.printable import printable
from icefield.table.description import DescribesTable

__all__ = ["CopiedTable", "RewrittenPaths"]


@dataclass(frozen=True, slots=True)
class RewrittenPaths:
    """What a rewrite of paths has written: the result of Java's ``rewrite_table_path``."""

    #: Name of the newest metadata file of the copy.
    latest_version: str
    #: The folder of the rewritten files.
    staging_location: str
    #: A text file with a line for each file of the copy: where it is now, a comma, and where it goes. None if it was
    #: not asked for.
    file_list_location: str | None
    #: Number of manifests with other paths.
    rewritten_manifest_file_paths_count: int
    #: Number of position delete files and deletion vectors with other paths.
    rewritten_delete_file_paths_count: int
    #: Number of all files of the copy.
    files_count: int


@dataclass(frozen=True, slots=True, repr=False)
class CopiedTable:
    """A copy of a table, or with ``dry_run`` what a copy would be."""

    #: Its metadata file, for `Table.from_metadata` and `Catalog.register_table`.
    metadata_location: str
    #: Name of the newest metadata file that an earlier copy has; None if there was none.
    start_version: str | None
    #: Number of copied files, and their bytes.
    files: int
    bytes: int
    #: Number of files that were there already.
    present_files: int
    #: Number of manifests that were written with other paths.
    rewritten_manifests: int
    #: Number of position delete files and deletion vectors that were written with other paths.
    rewritten_delete_files: int

    def __repr__(self) -> str:
        parts = [f"{counted(self.files, 'file')} of {size_of(self.bytes)}", self.metadata_location]
        parts += [f"{counted(self.present_files, 'file')} there already"] if self.present_files else []
        parts += [f"since {self.start_version}"] if self.start_version else []
        return printable(f"CopiedTable({', '.join(parts)})")


class CopiesTable(DescribesTable):
    """Copies of a table."""

    def copy_to(self, location: str, *, source_prefix: str | None = None, dry_run: bool = False) -> CopiedTable:
        """Copy the table with its history to another location.

        All snapshots, branches and tags are copied. Metadata, manifests, position delete files and deletion vectors
        contain paths of files, and are written with those of the copy; other files are copied as they are, several
        at a time, and their sizes are compared. If the location has an earlier copy, only what is new is copied. A copy
        that failed is completed by the next call; until then the location has no newer metadata file.

        The copy has the uuid of the table. Changes of the copy are not known to later calls: read it, and do not write
        to it while the table is copied again.

        Parameters
        ----------
        location
            A folder of any store that the table's properties give access to.
        source_prefix
            The prefix of all paths of the table that ``location`` replaces; by default the table's location.
        dry_run
            Write nothing, and return what would be done.

        Raises
        ------
        InvalidArgumentError
            If files of the table are outside of the prefix, if the location has another table, or if one of the
            locations contains the other.
        UnsupportedFeatureError
            If the table is encrypted.
        CorruptDataError
            If a file has another size than the table's metadata says.

        Examples
        --------
        >>> copied = table.copy_to("s3://backup/db/flights")  # doctest: +SKIP
        >>> catalog.register_table("backup.flights", copied.metadata_location)  # doctest: +SKIP

        """
        target = absolute_location(location, "location")
        if source_prefix and self._now.metadata.location.startswith("file://"):
            source_prefix = absolute_location(source_prefix, "source_prefix")
        return CopiedTable(*copy_table(self._now, target, source_prefix=source_prefix, dry_run=dry_run))

    def rewrite_table_path(
        self,
        source_prefix: str,
        target_prefix: str,
        *,
        start_version: str | None = None,
        end_version: str | None = None,
        staging_location: str | None = None,
        create_file_list: bool = True,
    ) -> RewrittenPaths:
        """Write the metadata of the table with another prefix of all paths, for a copy by another program.

        Metadata files, manifest lists, manifests, position delete files and deletion vectors are written to a staging
        location. The list of files says what to copy where. `copy_to` does both.

        Parameters
        ----------
        source_prefix
            The prefix of all paths of the table.
        target_prefix
            The one that replaces it.
        start_version
            Name or path of the newest metadata file that was copied before; by default everything is copied.
        end_version
            Name or path of the newest metadata file to copy; by default the current one.
        staging_location
            The folder to write to; by default a new folder ``copy-table-staging-…`` next to the metadata file. Remove
            it after the copy.
        create_file_list
            Write the list of files, as ``file-list`` in the staging location.

        Raises
        ------
        InvalidArgumentError
            If files of the table are outside of the prefix, or a version is not in the metadata log; nothing is
            written then.
        UnsupportedFeatureError
            If the table is encrypted.

        Examples
        --------
        >>> done = table.rewrite_table_path("hdfs://nn/db/t", "s3://bucket/db/t")  # doctest: +SKIP
        >>> done.file_list_location  # doctest: +SKIP
        'hdfs://nn/db/t/metadata/copy-table-staging-0b1c…/file-list'

        """
        return RewrittenPaths(
            *rewrite_table_path(
                self._now,
                source_prefix,
                target_prefix,
                start_version=start_version,
                end_version=end_version,
                staging_location=staging_location,
                create_file_list=create_file_list,
            )
        )
