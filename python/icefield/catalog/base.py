"""The base class of all catalogs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from icefield._arguments import field_texts, property_texts
from icefield._arrow_names import without_nul
from icefield.table import Table
from icefield.table.catalog import CommitTableResponse, PropertiesUpdateSummary, TableCatalog

if TYPE_CHECKING:
    from icefield._identifiers import IdentifierLike
    from icefield.arrow import SchemaLike
    from icefield.partitioning import PartitionSpec
    from icefield.sorting import SortOrder
    from icefield.table import Transaction

__all__ = ["Catalog", "CommitTableResponse", "PropertiesUpdateSummary"]


class Catalog(TableCatalog[Table]):
    """The names of tables and their current metadata.

    Parameters
    ----------
    name
        The name of the catalog; for SQL catalogs a part of every key.
    **properties
        Properties of the catalog and its storage. Secrets among them are never printed.

    """

    def replace_table_transaction(
        self,
        identifier: IdentifierLike,
        schema: SchemaLike,
        location: str | None = None,
        partition_spec: PartitionSpec | Mapping[str, object] | Iterable[str] | str | None = None,
        sort_order: SortOrder | Mapping[str, object] | Iterable[str] | str | None = None,
        properties: Mapping[str, str] | None = None,
        *,
        partition_by: Iterable[str] | str | None = None,
        sort_by: Iterable[str] | str | None = None,
    ) -> Transaction:
        """Replace a table: other columns, partitioning, order and properties, and no rows in ``main``.

        Its history, branches and tags stay, and so do properties that are not passed. Rows that are appended in the
        transaction become visible with the rest. Whatever others commit before, it is replaced.

        Parameters
        ----------
        identifier, schema, location, partition_spec, sort_order, properties, partition_by, sort_by
            As in `create_table`; without a location, the table stays where it is.

        Raises
        ------
        NoSuchTableError
            If there is no such table.

        """
        return (
            self.load_table(identifier)
            .transaction()
            .replace(
                without_nul(schema),
                location,
                field_texts(partition_spec, partition_by, "partitioning"),
                field_texts(sort_order, sort_by, "sort order"),
                property_texts(properties),
            )
        )
