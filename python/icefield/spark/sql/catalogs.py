"""The catalogs of a session, and what the name of a table in SQL means."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from icefield.catalog import Catalog, load_catalog
from icefield.errors import ArgumentTypeError, InvalidArgumentError, NotFoundError
from icefield.inspect import InspectTable
from icefield.spark.columns.names import quoted_path, selector
from icefield.spark.sessions.session import is_classic
from icefield.spark.sql.configured import DEFAULT_NAMESPACE, properties_of
from icefield.table import Table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["CatalogNames", "Home", "Selected", "Target"]

_SETTING = "spark.sql.catalog."
#: Classes of Spark's settings whose properties are those of a catalog of Iceberg.
_CLASSES = frozenset({"icefield", "org.apache.iceberg.spark.SparkCatalog"})
#: Names that Spark itself has at the beginning of names of tables.
_SPARKS = frozenset({"spark_catalog", "global_temp", "session", "system"})

#: Catalogs as `icefield.spark.session` takes them.
GivenCatalogs = Mapping[str, Catalog | Mapping[str, str]]


@dataclass(frozen=True)
class Target:
    """A table or namespace by its catalog and its name in that."""

    catalog_name: str
    catalog: Catalog
    identifier: tuple[str, ...]
    #: The current namespace, where the name does not begin with a catalog.
    current: tuple[str, ...] = ()

    def __str__(self) -> str:
        return ".".join((self.catalog_name, *self.identifier))

    def table(self) -> Table:
        """Load the table."""
        return self.catalog.load_table(self.identifier)


class Home(NamedTuple):
    """Where names in the query of a view are found: without a catalog, and without a namespace."""

    catalog: str
    namespace: tuple[str, ...]


class _Part(NamedTuple):
    """The suffix of a table name that selects a part of the table: one of these."""

    #: A metadata table, or ``changes``.
    metadata: str | None = None
    as_of: int | str | None = None
    timestamp_ms: int | None = None
    #: Whether ``as_of`` is named as a tag.
    is_tag: bool = False


@dataclass(frozen=True)
class Selected:
    """A table, and the suffix of its name that selects a part of it: at most one of the others is set."""

    table: Table
    #: A metadata table, or ``changes``.
    metadata: str | None = None
    as_of: int | str | None = None
    timestamp_ms: int | None = None
    #: Whether ``as_of`` is named as a tag.
    is_tag: bool = False


class CatalogNames:
    """The catalogs of a session by their names, and its current catalog and namespace."""

    def __init__(self, spark: SparkSession, given: GivenCatalogs | None) -> None:
        self._spark = spark
        #: Settings of Spark about catalogs, as they are written for Java.
        self._settings = _of_settings(spark)
        self._given: dict[str, Catalog | Mapping[str, str]] = dict(self._settings)
        self._given.update(_checked(given or {}))
        self._opened: dict[str, Catalog] = {}
        #: The name of the current catalog; None where it is one of Spark's.
        self.current: str | None = None
        self.namespace: tuple[str, ...] = ()

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def names(self) -> list[str]:
        """Return the names of the catalogs."""
        return sorted(self._given)

    def catalog(self, name: str) -> Catalog:
        """Return a catalog, opening it when it is first asked for."""
        if name not in self._opened:
            given = self._given[name]
            if given is self._settings.get(name):
                given = properties_of(name, self._settings[name])
            self._opened[name] = given if isinstance(given, Catalog) else load_catalog(name, **given)
        return self._opened[name]

    def close(self) -> None:
        """Close the catalogs that were opened here, not those that were passed open."""
        for name, catalog in self._opened.items():
            if catalog is not self._given[name]:
                catalog.close()
        self._opened.clear()

    def target(self, parts: tuple[str, ...]) -> Target | None:
        """Return what a name means; None if it is one of Spark's.

        As in Spark the first of several parts is a catalog if there is one of that name, and the rest is of the current
        catalog otherwise. A name of one part goes before as that of a temporary view.
        """
        head, *rest = parts
        if rest and head in self._given:
            return Target(head, self.catalog(head), tuple(rest))
        if self.current is None or (rest and self._is_sparks(head)) or (not rest and self.is_temporary(head)):
            return None
        catalog = self.catalog(self.current)
        return Target(self.current, catalog, parts if rest else (*self.namespace, head), self.namespace)

    def view_target(self, parts: tuple[str, ...]) -> Target | None:
        """Return what the name of a view in a catalog means, whatever temporary views there are."""
        if len(parts) > 1 or self.current is None:
            return self.target(parts)
        return Target(self.current, self.catalog(self.current), (*self.namespace, *parts), self.namespace)

    def full(self, parts: tuple[str, ...], home: Home) -> tuple[str, ...]:
        """Return a name in the query of a view with its catalog in front."""
        if len(parts) == 1:
            return (home.catalog, *home.namespace, *parts)
        return parts if parts[0] in self._given or self._is_sparks(parts[0]) else (home.catalog, *parts)

    def target_of_view(self, parts: tuple[str, ...], home: Home) -> Target | None:
        """Return what a name in the query of a view means; None if it is one of Spark's."""
        head, *rest = self.full(parts, home)
        return Target(head, self.catalog(head), tuple(rest)) if head in self._given else None

    def namespace_target(self, parts: tuple[str, ...]) -> Target | None:
        """Return what the name of a namespace means, without parts the current one; None if it is one of Spark's."""
        if parts and parts[0] in self._given:
            return Target(parts[0], self.catalog(parts[0]), parts[1:])
        if self.current is None or (parts and self._is_sparks(parts[0])):
            return None
        return Target(self.current, self.catalog(self.current), parts or self.namespace)

    def selected(self, target: Target, load: Callable[[Catalog, tuple[str, ...]], Table] | None = None) -> Selected:
        """Load a table; its name may be followed by a metadata table, ``changes``, ``branch_b``, ``tag_t`` and so on.

        A table of the very name goes before, as in Java. ``t.files`` is of the table ``t`` in the current namespace if
        there is no namespace ``t``.
        """
        load = load or (lambda catalog, identifier: catalog.load_table(identifier))
        catalog, (*name, last) = target.catalog, target.identifier
        try:
            return Selected(load(catalog, target.identifier))
        except NotFoundError:
            chosen = _chosen(last)
            if len(name) == 1 and target.current and not catalog.namespace_exists(name):
                name = [*target.current, *name]
            if chosen is None or len(name) < 2:  # noqa: PLR2004 - a namespace and a table
                raise
        return Selected(load(catalog, tuple(name)), *chosen)

    def use(self, name: tuple[str, ...], *, is_namespace: bool) -> bool:
        """Make a catalog or namespace the current one; return whether it is one of icefield's."""
        if not is_namespace and name[0] in self._given:
            target: Target | None = Target(name[0], self.catalog(name[0]), name[1:])
        else:
            target = self.namespace_target(name)
        if target is None:
            return False
        if target.identifier:
            # It raises if there is no such namespace.
            target.catalog.load_namespace_properties(target.identifier)
        default = target.catalog.properties.get(DEFAULT_NAMESPACE)
        first = tuple(default.split(".")) if default else ()
        self.current, self.namespace = target.catalog_name, target.identifier or first
        return True

    def _is_sparks(self, name: str) -> bool:
        return name in _SPARKS or self._spark.conf.get(f"{_SETTING}{name}", None) is not None

    def is_temporary(self, name: str) -> bool:
        """Return whether a name is that of a temporary view of the session."""
        if is_classic(self._spark):
            catalog = self._spark._jsparkSession.sessionState().catalog()  # noqa: SLF001
            return bool(catalog.getRawTempView(name).isDefined())
        from pyspark.errors import AnalysisException

        try:
            return bool(self._spark.catalog.getTable(quoted_path([name])).isTemporary)
        except AnalysisException:
            return False


def _chosen(last: str) -> _Part | None:
    """Return what the last part of a name selects of a table, if it does."""
    if last.lower() in (*InspectTable.names, "changes"):
        return _Part(last.lower())
    found = selector(last)
    if found is None:
        return None
    kind, value = found
    if kind in ("branch", "tag"):
        return _Part(as_of=value, is_tag=kind == "tag")
    return _Part(as_of=int(value)) if kind == "snapshot_id" else _Part(timestamp_ms=int(value))


def _checked(given: GivenCatalogs) -> GivenCatalogs:
    for name, catalog in given.items():
        if not isinstance(name, str) or not name or "`" in name:
            raise InvalidArgumentError(f"the name of a catalog in SQL must be a text without backquotes, got {name!r}")
        if not isinstance(catalog, Catalog | Mapping):
            raise ArgumentTypeError(
                f"catalog {name!r}: expected an icefield.Catalog or a mapping with its properties, got {catalog!r}"
            )
    return given


def _of_settings(spark: SparkSession) -> dict[str, dict[str, str]]:
    """Return the catalogs of ``spark.sql.catalog.*`` that say they are Iceberg's, and that Spark cannot open itself."""
    if not is_classic(spark):
        return {}
    state = spark._jsparkSession.sessionState()  # noqa: SLF001
    settings = {
        key.removeprefix(_SETTING): value
        for key, value in dict(state.conf().settings()).items()
        if key.startswith(_SETTING)
    }
    found = {}
    for name, value in settings.items():
        if "." not in name and value in _CLASSES and not _has_class(spark, value):
            prefix = f"{name}."
            found[name] = {key.removeprefix(prefix): settings[key] for key in settings if key.startswith(prefix)}
    return found


def _has_class(spark: SparkSession, name: str) -> bool:
    """Return whether Spark has a class: then its catalog is Spark's own business."""
    from py4j.protocol import Py4JError

    try:
        loader = spark.sparkContext._jvm.java.lang.Thread.currentThread().getContextClassLoader()  # type: ignore[union-attr]  # noqa: SLF001
        loader.loadClass(name)
    except Py4JError:
        return False
    return True
