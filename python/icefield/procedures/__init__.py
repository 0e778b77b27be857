"""The procedures of Java's connector: the same names, parameters and result columns.

SQL calls them (``CALL local.system.rollback_to_snapshot('db.t', 42)`` in `icefield.spark.session`), so does the command
line (``icefield call rollback_to_snapshot table=db.t snapshot_id=42``), and `call` in Python. The methods of tables do
the same and more.
"""

from __future__ import annotations

from difflib import get_close_matches
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from icefield.errors import InvalidArgumentError
from icefield.procedures import files, rewrites, snapshots
from icefield.procedures.declared import Arguments, Column, Parameter, Procedure, unsupported

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from icefield.catalog import Catalog

__all__ = ["call"]


def _changelog_view(_: Catalog, __: Arguments) -> list[tuple[object, ...]]:
    raise unsupported(
        "create_changelog_view",
        "it creates a view of Spark, so call it by icefield.spark.session(...).sql; "
        "table.incremental_changelog_scan() returns the same rows",
    )


def _migrate(_: Catalog, __: Arguments) -> list[tuple[object, ...]]:
    raise unsupported(
        "migrate",
        "it is about tables of Spark's own catalog, so call it by icefield.spark.session(...).sql; "
        "catalog.migrate(name, folder) and snapshot make tables of folders",
    )


#: All procedures by their names.
PROCEDURES: Final[Mapping[str, Procedure]] = MappingProxyType(
    {
        one.name: one
        for one in (
            *snapshots.PROCEDURES,
            *files.PROCEDURES,
            *rewrites.PROCEDURES,
            Procedure(
                "create_changelog_view",
                (
                    Parameter("table", "table", required=True),
                    Parameter("changelog_view", "string"),
                    Parameter("options", "map<string,string>"),
                    Parameter("compute_updates", "boolean"),
                    Parameter("identifier_columns", "array<string>"),
                    Parameter("net_changes", "boolean"),
                ),
                (Column("changelog_view", "string"),),
                _changelog_view,
            ),
            Procedure(
                "migrate",
                (
                    Parameter("table", "table", required=True),
                    Parameter("properties", "map<string,string>"),
                    Parameter("drop_backup", "boolean"),
                    Parameter("backup_table_name", "string"),
                    Parameter("parallelism", "int"),
                    Parameter("ignore_missing_files", "boolean"),
                ),
                (Column("migrated_files_count", "long"),),
                _migrate,
            ),
        )
    }
)


def find(name: str) -> Procedure:
    """Return a procedure by its name.

    Raises
    ------
    InvalidArgumentError
        If there is no such procedure.

    """
    lowered = name.lower()
    if lowered in PROCEDURES:
        return PROCEDURES[lowered]
    near = get_close_matches(lowered, PROCEDURES, 1)
    meant = f"did you mean {near[0]}?" if near else f"known: {', '.join(sorted(PROCEDURES))}"
    raise InvalidArgumentError(f"unknown procedure {name!r}; {meant}")


def call(catalog: Catalog, procedure: str, /, *positional: object, **named: object) -> pa.Table:
    """Call a procedure.

    Parameters
    ----------
    catalog
        The catalog of the table.
    procedure
        Its name.
    *positional, **named
        Its arguments. A table is ``"namespace.name"`` or a tuple, a time an aware datetime or ISO text with an offset.

    Returns
    -------
    pyarrow.Table
        The rows that Java's procedure returns.

    Raises
    ------
    InvalidArgumentError
        If a parameter is unknown, missing, or of another type; the message lists the parameters.

    Examples
    --------
    >>> from icefield.procedures import call
    >>> call(catalog, "ancestors_of", table="nyc.flights").num_rows  # doctest: +SKIP
    3

    """
    import pyarrow as pa

    found = find(procedure)
    rows = found.run(catalog, found.arguments(positional, named))
    types = {"long": pa.int64(), "int": pa.int32(), "string": pa.string(), "timestamp": pa.timestamp("us", "UTC")}
    schema = pa.schema([pa.field(one.name, types[one.type], one.nullable) for one in found.columns])
    if not rows:
        return schema.empty_table()
    columns = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(columns, schema=schema)
