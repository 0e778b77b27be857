"""How commands open the catalog and the tables that they are given."""

from __future__ import annotations

from pathlib import Path

import click

from icefield.catalog import Catalog, load_catalog
from icefield.catalog.configuration import catalog_names, default_catalog
from icefield.catalog.sql import SqlCatalog
from icefield.errors import InvalidArgumentError
from icefield.table import Table

__all__ = ["catalog_of", "location_of", "table_of"]


def table_of(context: click.Context, name: str) -> Table:
    """Open a table by its name in the catalog, or by the path of a metadata file or of an export."""
    if name.endswith(".zip") and Path(name).is_file():
        return Table.from_export(name)
    # Of a folder, the error names its newest metadata file.
    if name.endswith((".json", ".json.gz")) or "://" in name or ("/" in name and Path(name).is_dir()):
        return Table.from_metadata(name, **context.obj[1])
    return catalog_of(context).load_table(name)


def catalog_of(context: click.Context) -> Catalog:
    """Open the catalog that is named; without a name the configured one, or the one that the database holds."""
    name, properties = context.obj
    if name is not None:
        return load_catalog(name, **properties)
    if not {"uri", "type"} & properties.keys():
        return load_catalog(_configured(), **properties)
    opened = load_catalog(None, **properties)
    held = opened.catalog_names() if isinstance(opened, SqlCatalog) else []
    if not held or opened.name in held:
        return opened
    if len(held) > 1:
        raise InvalidArgumentError(f"this database contains the catalogs {', '.join(held)}: choose one with --catalog")
    opened.close()
    return load_catalog(held[0], **properties)


def _configured() -> str:
    """Return the name of the default catalog, or that of the only one that is configured."""
    default, known = default_catalog(), catalog_names()
    return known[0] if len(known) == 1 and default.lower() not in known else default


def location_of(path: str) -> str:
    """Return the location of a file: an existing path as an absolute one, anything else unchanged."""
    local = Path(path)
    return str(local.absolute()) if local.exists() else path
