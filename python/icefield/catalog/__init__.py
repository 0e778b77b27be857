"""Catalogs: the names of tables and their current metadata.

`load_catalog` opens one by the properties given, those of the environment, and those of a file: ``.icefield.yaml`` or
``.pyiceberg.yaml`` in ``$ICEFIELD_HOME`` or ``$PYICEBERG_HOME``, the home folder, or the current folder; the first one
found is read::

    default-catalog: local
    catalog:
      local:
        uri: sqlite:///warehouse/catalog.db
        warehouse: warehouse

In the environment the first property is ``ICEFIELD_CATALOG__LOCAL__URI`` (or ``PYICEBERG_...``). ``_`` there means
``-``, and ``__`` means ``.``: ``ICEFIELD_CATALOG__LOCAL__S3__ACCESS_KEY_ID`` is ``s3.access-key-id``.
"""

from __future__ import annotations

from icefield._core import HIDDEN
from icefield._inputs.identifiers import Identifier, IdentifierLike
from icefield._inputs.secrets import guarded
from icefield.catalog.base import Catalog
from icefield.catalog.configuration import catalog_names, catalog_properties, default_catalog
from icefield.catalog.known import check as check_properties
from icefield.catalog.registry import OWN_KINDS, class_named, class_of_kind, kinds
from icefield.errors import InvalidArgumentError, NoSuchCatalogError, UnsupportedFeatureError
from icefield.table.catalog import CommitTableResponse, Migration, PropertiesUpdateSummary, TableDefinition

__all__ = [
    "Catalog",
    "CommitTableResponse",
    "Identifier",
    "IdentifierLike",
    "Migration",
    "PropertiesUpdateSummary",
    "TableDefinition",
    "list_catalogs",
    "load_catalog",
]

# The type of catalog by the scheme of its URI, if ``type`` is missing.
_SCHEMES = {"sqlite": "sql", "postgres": "sql", "postgresql": "sql", "http": "rest", "https": "rest", "thrift": "hive"}

# Unsupported catalogs, by the schemes of their URIs.
_FOREIGN = {
    "hive": "a Hive metastore (its uri is thrift://host:9083)",
    "glue": "an AWS Glue catalog (set type='glue' and no uri)",
    "arn": "an AWS Glue or S3 Tables catalog (set type='glue' and no uri, or type='rest' for S3 Tables)",
    "dynamodb": "a DynamoDB catalog (set type='dynamodb' and no uri)",
    "nessie": "a Nessie catalog (use its REST endpoint, such as http://host:19120/iceberg)",
    "mysql": "a MySQL database",
    "mariadb": "a MariaDB database",
    "mssql": "a SQL Server database",
    "oracle": "an Oracle database",
    "duckdb": "a DuckDB database",
    "jdbc": "JDBC (leave out 'jdbc:' for SQLite and PostgreSQL)",
    **dict.fromkeys(
        ("file", "s3", "s3a", "gs", "abfs", "abfss", "hdfs"),
        "a folder of files (the property 'warehouse'; with type='hadoop' the folder is the catalog)",
    ),
}


def load_catalog(name: str | None = None, **properties: str | None) -> Catalog:
    """Open a catalog.

    Parameters
    ----------
    name
        Its name; without one the configured default.
    **properties
        Properties of the catalog and its storage; they override the environment, which overrides the file.
        ``type`` is ``rest``, ``glue``, ``hive``, ``dynamodb``, ``hadoop`` (folders), ``sql``, ``in-memory``, or one
        that an installed package provides by an entry point in the group ``icefield.catalogs``. ``py-catalog-impl``
        names a class instead, a subclass of `Catalog`. Without either the scheme of ``uri`` chooses.

    Raises
    ------
    NoSuchCatalogError
        If the catalog is not configured.
    UnsupportedFeatureError
        If the type of catalog is not supported, such as Oracle, or a property cannot be honoured.
    InvalidArgumentError
        If a property is misspelt; ``docs/properties.md`` lists them.

    """
    given: object = name
    if given is not None and not isinstance(given, str):
        msg = f"catalog name must be a str, got {given!r}"
        raise InvalidArgumentError(msg)
    name = default_catalog() if name is None else name
    merged = catalog_properties(name)
    merged.update(guarded({key: value for key, value in properties.items() if value is not None}))
    if (named := merged.get("py-catalog-impl")) is not None:
        if "type" in merged:
            msg = f"catalog {name!r}: set either 'type' or 'py-catalog-impl', not both"
            raise InvalidArgumentError(msg)
        # Only the class knows its other properties.
        made = class_named(named)(name, **merged)
    else:
        kind = _kind(name, merged)
        if kind in OWN_KINDS:
            check_properties(merged, kind)
        made = class_of_kind(kind)(name, **merged)
    # A wrong name is better found now than after the first commit.
    _ = made.metrics_reporter
    return made


def _kind(name: str, properties: dict[str, str]) -> str:
    """Return the type of the catalog with these properties; the error names what is unsupported."""
    if kind := properties.get("type"):
        # Asked last: it takes longer to look through what is installed than to open a catalog.
        if kind.lower() not in OWN_KINDS and kind.lower() not in kinds():
            msg = (
                f"catalog {name!r}: catalogs of type {kind!r} are not supported; supported types: {', '.join(kinds())}"
            )
            raise UnsupportedFeatureError(msg)
        return kind.lower()
    if "catalog-impl" in properties:
        msg = (
            f"catalog {name!r}: property 'catalog-impl' names a Java class, which is not supported: set "
            f"'py-catalog-impl' to a Python class, or set 'type'; supported types: {', '.join(kinds())}"
        )
        raise UnsupportedFeatureError(msg)
    # The redacted form: a password in it is hidden.
    uri = str(properties.get("uri") or "")
    if not uri:
        known = ", ".join(catalog_names()) or "none"
        msg = f"catalog {name!r} is not configured: set 'uri' or 'type' ({', '.join(kinds())}); configured: {known}"
        raise NoSuchCatalogError(msg)
    scheme, colon, rest = uri.partition(":")
    if "@" in uri and not rest.startswith("//"):
        uri = HIDDEN  # perhaps a password, in a form that is not recognised
    # One letter before the colon is a drive of Windows.
    if not colon or len(scheme) == 1 or "/" in scheme or "\\" in scheme:
        msg = f"catalog {name!r}: uri {uri!r} is a path, not a URL; use sqlite:///{uri} for a SQLite database"
        raise InvalidArgumentError(msg)
    database = scheme.partition("+")[0].lower()
    if database in _SCHEMES:
        return _SCHEMES[database]
    what = _FOREIGN.get(database, f"a catalog with the scheme {scheme!r}")
    msg = (
        f"catalog {name!r}: {what} (uri {uri}) is not supported; "
        f"supported: https://host (REST), thrift://host:9083 (Hive), sqlite:///folder/catalog.db, "
        f"postgresql://user@host/database, or a type without a uri: 'glue', 'dynamodb', 'hadoop', 'in-memory'"
    )
    raise UnsupportedFeatureError(msg)


def list_catalogs() -> list[str]:
    """Return the names of the catalogs in the environment and the configuration file."""
    return catalog_names()
