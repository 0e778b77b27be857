"""Catalogs of Spark's settings, ``spark.sql.catalog.NAME.*``, in the properties that icefield takes."""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote

from icefield.errors import UnsupportedFeatureError

__all__ = ["DEFAULT_NAMESPACE", "properties_of"]

#: The namespace that is current after USE of the catalog alone.
DEFAULT_NAMESPACE = "default-namespace"
#: Classes of Java by what they are here.
_KINDS = {
    "org.apache.iceberg.jdbc.JdbcCatalog": "sql",
    "org.apache.iceberg.rest.RESTCatalog": "rest",
    "org.apache.iceberg.hadoop.HadoopCatalog": "hadoop",
    "org.apache.iceberg.aws.glue.GlueCatalog": "glue",
    "org.apache.iceberg.hive.HiveCatalog": "hive",
    "org.apache.iceberg.inmemory.InMemoryCatalog": "in-memory",
}
_TYPES = {"jdbc": "sql"}
_USER, _PASSWORD = "jdbc.user", "jdbc.password"


def properties_of(name: str, settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of a catalog as `icefield.load_catalog` takes them.

    Parameters
    ----------
    name
        Name of the catalog.
    settings
        Its settings, without ``spark.sql.catalog.NAME.`` in front.

    Raises
    ------
    UnsupportedFeatureError
        If the catalog is of a Java class, or in a database, that icefield does not know.

    """
    found = dict(settings)
    written = found.pop("catalog-impl", None)
    if written is not None:
        if written not in _KINDS:
            raise UnsupportedFeatureError(
                f"spark.sql.catalog.{name}.catalog-impl={written} is not supported; supported: {', '.join(_KINDS)}"
            )
        found["type"] = _KINDS[written]
    elif "type" in found:
        found["type"] = _TYPES.get(found["type"].lower(), found["type"])
    if "uri" in found and found["uri"].startswith("jdbc:"):
        found["uri"] = _database(
            name, found["uri"].removeprefix("jdbc:"), found.pop(_USER, ""), found.pop(_PASSWORD, "")
        )
    return found


def _database(name: str, url: str, user: str, password: str) -> str:
    """Return the URL of a database as SQLAlchemy has it."""
    kind, _, rest = url.partition(":")
    if kind == "sqlite":
        return f"sqlite:///{rest.removeprefix('file:').partition('?')[0]}"
    if kind == "postgresql" and rest.startswith("//"):
        secret = f":{quote(password, safe='')}" if password else ""
        login = f"{quote(user, safe='')}{secret}@" if user else ""
        return f"postgresql://{login}{rest.removeprefix('//')}"
    raise UnsupportedFeatureError(
        f"spark.sql.catalog.{name}.uri=jdbc:{kind}:… is not supported; supported: jdbc:sqlite:, jdbc:postgresql://"
    )
