"""The metadata of a view: its JSON document, and how updates change it ("View Specification")."""

from __future__ import annotations

import copy
import gzip
import json
import time
import uuid
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from icefield.errors import (
    CommitFailedException,
    CorruptDataError,
    InvalidArgumentError,
    UnsupportedFeatureError,
    ValidationException,
)

__all__ = [
    "Document",
    "SQLViewRepresentation",
    "ViewHistoryEntry",
    "ViewVersion",
    "changed",
    "check",
    "check_dialects",
    "created",
    "file_name",
    "from_bytes",
    "replacing",
    "to_bytes",
]

#: The metadata of a view as the specification has them in JSON.
Document: TypeAlias = Mapping[str, Any]

#: What stands for the schema, or version, that an earlier update of the same request adds.
LAST = -1
_FORMAT = 1
_KEPT = "version.history.num-entries"
_MAY_DROP = "replace.drop-dialect.allowed"
_CODEC = "write.metadata.compression-codec"
#: The most bytes of a metadata file, after decompression.
_LARGEST = 1 << 28
_LISTS = ("schemas", "versions", "version-log")
#: What the members of a document are, and of the objects in its lists, where they are there.
_KINDS: Mapping[str, type] = {"properties": dict, "current-version-id": int}
_KINDS_IN: Mapping[str, Mapping[str, type]] = {
    "schemas": {"schema-id": int},
    "versions": {
        "version-id": int,
        "schema-id": int,
        "timestamp-ms": int,
        "default-namespace": list,
        "summary": dict,
    },
    "version-log": {"version-id": int, "timestamp-ms": int},
}


@dataclass(frozen=True)
class SQLViewRepresentation:
    """The query of a view in one dialect of SQL."""

    sql: str
    #: Its dialect, such as ``spark``.
    dialect: str
    type: Literal["sql"] = "sql"


@dataclass(frozen=True, init=False)
class ViewVersion:
    """A version of a view: its query in one or several dialects of SQL.

    Parameters
    ----------
    queries, representations
        The query by its dialect, or as PyIceberg has it: a list of `SQLViewRepresentation`, or of dicts with
        these fields. One of both.
    default_namespace
        Where names of one part in the query are found.
    default_catalog
        The catalog of names that begin with none; ``None`` for that of the view.
    summary
        What made the version: ``engine-name``, ``engine-version``.
    version_id, schema_id, timestamp_ms
        Its id, the id of its columns among the schemas of the view, and when it was made, in milliseconds from the
        epoch. `icefield.catalog.Catalog.create_view` assigns the ids.

    """

    queries: Mapping[str, str]
    default_namespace: tuple[str, ...]
    default_catalog: str | None
    summary: Mapping[str, str]
    version_id: int
    schema_id: int
    timestamp_ms: int

    def __init__(
        self,
        queries: Mapping[str, str] | None = None,
        default_namespace: Sequence[str] = (),
        default_catalog: str | None = None,
        summary: Mapping[str, str] | None = None,
        version_id: int = 1,
        schema_id: int = 0,
        timestamp_ms: int = 0,
        *,
        representations: Iterable[SQLViewRepresentation | Mapping[str, str]] | None = None,
    ) -> None:
        if (queries is None) == (representations is None):
            raise InvalidArgumentError("expected the queries by their dialects, or representations, and not both")
        given = queries if queries is not None else _by_dialect(representations or ())
        namespace = (default_namespace,) if isinstance(default_namespace, str) else tuple(default_namespace)
        fields = (given, namespace, default_catalog, summary or {}, version_id, schema_id, timestamp_ms)
        for name, value in zip(self.__dataclass_fields__, fields, strict=True):
            object.__setattr__(self, name, value)

    @property
    def representations(self) -> list[SQLViewRepresentation]:
        """The query in each dialect."""
        return [SQLViewRepresentation(text, dialect) for dialect, text in self.queries.items()]

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> ViewVersion:
        """Return a version of a document; representations that are not SQL are left out."""
        listed = found.get("representations")
        queries = {
            str(one["dialect"]): str(one["sql"])
            for one in (listed if isinstance(listed, list) else [])
            if isinstance(one, dict) and "dialect" in one and "sql" in one
        }
        catalog = found.get("default-catalog")
        return cls(
            queries,
            tuple(map(str, found.get("default-namespace") or ())),
            None if catalog is None else str(catalog),
            {str(key): str(value) for key, value in (found.get("summary") or {}).items()},
            _number(found, "version-id"),
            _number(found, "schema-id"),
            _number(found, "timestamp-ms"),
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as documents and requests have it.

        Raises
        ------
        InvalidArgumentError
            If there is no query, or a dialect has two.

        """
        given: object = self.queries
        if not isinstance(given, Mapping) or not given or not all(isinstance(text, str) for text in given.values()):
            raise InvalidArgumentError(
                f"expected the query by its dialect, such as {{'spark': 'SELECT 1'}}, got {self.queries!r}"
            )
        seen: set[str] = set()
        for dialect in self.queries:
            if dialect.lower() in seen:
                raise _two_queries(dialect)
            seen.add(dialect.lower())
        made: dict[str, Any] = {
            "version-id": self.version_id,
            "timestamp-ms": self.timestamp_ms or time.time_ns() // 1_000_000,
            "schema-id": self.schema_id,
            "summary": dict(self.summary) or {"engine-name": "icefield"},
            "representations": [
                {"type": "sql", "sql": text, "dialect": dialect} for dialect, text in self.queries.items()
            ],
            "default-namespace": list(self.default_namespace),
        }
        if self.default_catalog is not None:
            made["default-catalog"] = self.default_catalog
        return made


def _by_dialect(representations: Iterable[SQLViewRepresentation | Mapping[str, str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for given in representations:
        one = _representation(given) if isinstance(given, Mapping) else given
        if one.dialect in found:
            raise _two_queries(one.dialect)
        found[one.dialect] = one.sql
    return found


def _representation(given: Mapping[str, str]) -> SQLViewRepresentation:
    try:
        return SQLViewRepresentation(**{"type": "sql", **given})  # type: ignore[arg-type]
    except TypeError:
        raise InvalidArgumentError(
            f"a representation of a view has the fields type, sql and dialect, got {', '.join(map(str, given))}"
        ) from None


def _two_queries(dialect: str) -> InvalidArgumentError:
    return InvalidArgumentError(f"a version of a view has one query in a dialect, got two in {dialect!r}")


@dataclass(frozen=True)
class ViewHistoryEntry:
    """When a version became the current one."""

    #: In milliseconds from the epoch.
    timestamp_ms: int
    version_id: int


def _number(found: Mapping[str, Any], name: str) -> int:
    value = found.get(name)
    return value if isinstance(value, int) else LAST


# Files


def to_bytes(document: Document) -> bytes:
    """Return the content of a metadata file; it is compressed by gzip unless a property of the view says otherwise."""
    content = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    return gzip.compress(content, mtime=0) if _is_compressed(document) else content


def file_name(document: Document, number: int) -> str:
    """Return the location of a new metadata file, the number of which counts the changes of the view."""
    folder = _properties(document).get("write.metadata.path") or f"{str(document['location']).rstrip('/')}/metadata"
    end = ".gz.metadata.json" if _is_compressed(document) else ".metadata.json"
    return f"{folder.rstrip('/')}/{number:05}-{uuid.uuid4()}{end}"


def from_bytes(content: bytes, where: str) -> Document:
    """Read the content of a metadata file.

    Raises
    ------
    CorruptDataError
        If it is not the metadata of a view; ``where`` is the file, for the message.
    UnsupportedFeatureError
        If it is of a later version of the format.

    """
    try:
        if content[:2] == b"\x1f\x8b":
            reader = zlib.decompressobj(31)
            content = reader.decompress(content, _LARGEST + 1)
            if len(content) > _LARGEST:
                raise CorruptDataError(f"{where}: larger than {_LARGEST:,} bytes", where)
            if not reader.eof:
                raise CorruptDataError(f"{where}: the compressed file is cut off", where)
        found = json.loads(content)
    except (ValueError, RecursionError, zlib.error) as error:
        if isinstance(error, CorruptDataError):
            raise
        raise CorruptDataError(f"{where}: the metadata of a view cannot be read: {error}", where) from None
    checked(found, where)
    document: Document = found
    return document


def checked(found: object, where: str) -> None:
    """Check what the specification requires of a document.

    Raises
    ------
    CorruptDataError, UnsupportedFeatureError
        As `from_bytes`.

    """
    if not isinstance(found, dict):
        raise CorruptDataError(f"{where}: expected the metadata of a view, got {type(found).__name__}", where)
    if (version := found.get("format-version")) != _FORMAT:
        if isinstance(version, int) and version > _FORMAT:
            raise UnsupportedFeatureError(f"{where}: version {version} of the format of views is not supported")
        raise CorruptDataError(f"{where}: format-version: expected 1, got {version!r}", where, "/format-version")
    _check_members(found, where)
    current = found.get("current-version-id")
    version = None if current is None else _by_id(found["versions"], "version-id", current)
    if version is None:
        raise CorruptDataError(f"{where}: there is no version {current!r}", where, "/current-version-id")
    if version.get("schema-id") is None or _by_id(found["schemas"], "schema-id", version["schema-id"]) is None:
        raise CorruptDataError(f"{where}: there is no schema {version.get('schema-id')!r}", where, "/versions")


def _check_members(found: Mapping[str, Any], where: str) -> None:
    for name in ("view-uuid", "location"):
        if not isinstance(found.get(name), str):
            raise CorruptDataError(f"{where}: {name}: expected a text, got {found.get(name)!r}", where, f"/{name}")
    for name in _LISTS:
        listed = found.get(name)
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            raise CorruptDataError(f"{where}: {name}: expected a list of objects", where, f"/{name}")
    _check_kinds(found, _KINDS, where, "")
    for name, kinds in _KINDS_IN.items():
        for place, one in enumerate(found[name]):
            _check_kinds(one, kinds, where, f"/{name}/{place}")


def _check_kinds(found: Mapping[str, Any], kinds: Mapping[str, type], where: str, place: str) -> None:
    for name, kind in kinds.items():
        value = found.get(name)
        if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
            expected = {dict: "an object", list: "a list", int: "a number"}[kind]
            raise CorruptDataError(f"{where}: {place}/{name}: expected {expected}", where, f"{place}/{name}")


def _is_compressed(document: Document) -> bool:
    codec = _properties(document).get(_CODEC, "gzip").lower()
    if codec not in {"gzip", "none"}:
        raise InvalidArgumentError(f"property {_CODEC} of a view: expected gzip or none, got {codec!r}")
    return codec == "gzip"


def _properties(document: Document) -> dict[str, str]:
    return {str(key): str(value) for key, value in (document.get("properties") or {}).items()}


def _by_id(listed: Iterable[Mapping[str, Any]], name: str, wanted: object) -> Mapping[str, Any] | None:
    return next((one for one in listed if one.get(name) == wanted), None)


# Changes


def created(location: str, columns: Document, version: ViewVersion, properties: Mapping[str, str]) -> Document:
    """Return the metadata of a new view.

    Parameters
    ----------
    location
        The base location.
    columns
        The schema, in JSON.
    version, properties
        The first version, and the properties.

    """
    made = {
        "view-uuid": str(uuid.uuid4()),
        "format-version": _FORMAT,
        "location": location,
        "schemas": [],
        "current-version-id": 0,
        "versions": [],
        "version-log": [],
        "properties": {},
    }
    first = {**version.to_json(), "version-id": 1, "schema-id": LAST}
    return changed(
        made,
        [
            {"action": "set-properties", "updates": dict(properties)},
            {"action": "add-schema", "schema": {**columns, "schema-id": 0}},
            {"action": "add-view-version", "view-version": first},
            {"action": "set-current-view-version", "view-version-id": LAST},
        ],
    )


def check(document: Document, requirements: Iterable[Mapping[str, object]]) -> None:
    """Check the requirements of a change.

    Raises
    ------
    CommitFailedException
        If one is not met.

    """
    for requirement in requirements:
        kind = requirement.get("type")
        if kind != "assert-view-uuid":
            raise InvalidArgumentError(f"unknown requirement of a view: {kind!r}")
        if requirement.get("uuid") != document["view-uuid"]:
            raise CommitFailedException(
                f"expected the view {requirement.get('uuid')}, found {document['view-uuid']}: it was replaced meanwhile"
            )


def changed(document: Document, updates: Iterable[Mapping[str, Any]]) -> Document:
    """Return the document with updates of the REST protocol, and without the versions that are too many then.

    Raises
    ------
    InvalidArgumentError
        If an update is invalid.
    ValidationException
        If the current version has no query in a dialect that the former one had, unless a property allows it.

    """
    change = _Change(document)
    for update in updates:
        change.apply(update)
    return change.finished(document)


class _Change:
    """A change of a document under way."""

    def __init__(self, document: Document) -> None:
        self.made: dict[str, Any] = copy.deepcopy(dict(document))
        self.properties: dict[str, str] = dict(self.made.get("properties") or {})
        self.schema: int | None = None
        self.version: int | None = None
        self.added: set[int] = set()
        #: When which version became the current one.
        self.entry: dict[str, int] | None = None

    def apply(self, update: Mapping[str, Any]) -> None:
        forms: dict[str, tuple[str, Callable[[Any], None]]] = {
            "assign-uuid": ("uuid", self._assign),
            "upgrade-format-version": ("format-version", self._upgrade),
            "set-location": ("location", self._set_location),
            "set-properties": ("updates", self._set_properties),
            "remove-properties": ("removals", self._remove_properties),
            "add-schema": ("schema", self._add_schema),
            "add-view-version": ("view-version", self._add_version),
            "set-current-view-version": ("view-version-id", self._set_current),
        }
        kind = str(update.get("action"))
        if kind not in forms:
            raise InvalidArgumentError(f"unknown update of a view: {kind!r}")
        part, change = forms[kind]
        if part not in update:
            raise InvalidArgumentError(f"the update {kind} of a view has no {part}")
        change(update[part])

    def _assign(self, wanted: object) -> None:
        if wanted != self.made["view-uuid"]:
            raise InvalidArgumentError("the uuid of a view cannot be changed")

    def _upgrade(self, version: object) -> None:
        if version != self.made["format-version"]:
            raise InvalidArgumentError(f"version {version} of the format of views is not supported")

    def _set_location(self, location: object) -> None:
        self.made["location"] = str(location)

    def _set_properties(self, updates: Mapping[str, object]) -> None:
        self.properties.update({str(key): str(value) for key, value in updates.items()})

    def _remove_properties(self, removals: Iterable[str]) -> None:
        for name in removals:
            self.properties.pop(name, None)

    def _add_schema(self, schema: Mapping[str, Any]) -> None:
        known = next((one for one in self.made["schemas"] if one.get("fields") == schema.get("fields")), None)
        if known is None:
            number = 1 + max((_number(one, "schema-id") for one in self.made["schemas"]), default=-1)
            known = {**schema, "schema-id": number}
            self.made["schemas"].append(known)
        self.schema = _number(known, "schema-id")

    def _add_version(self, given: Mapping[str, Any]) -> None:
        version = dict(given)
        if version.get("schema-id") == LAST:
            if self.schema is None:
                raise InvalidArgumentError("a version has the last schema, and no schema was added")
            version["schema-id"] = self.schema
        if _by_id(self.made["schemas"], "schema-id", version.get("schema-id")) is None:
            raise InvalidArgumentError(f"a version has the unknown schema {version.get('schema-id')}")
        known = next((one for one in self.made["versions"] if _same(one, version)), None)
        if known is not None:
            self.version = _number(known, "version-id")
            return
        largest = max((_number(one, "version-id") for one in self.made["versions"]), default=0)
        self.version = version["version-id"] = max(_number(version, "version-id"), largest + 1)
        self.added.add(self.version)
        self.made["versions"].append(version)

    def _set_current(self, number: int) -> None:
        if number == LAST:
            if self.version is None:
                raise InvalidArgumentError("the last version is to be the current one, and no version was added")
            number = self.version
        if number == self.made["current-version-id"]:
            return
        version = _by_id(self.made["versions"], "version-id", number)
        if version is None:
            raise InvalidArgumentError(f"the view has no version {number}")
        self.made["current-version-id"] = number
        # A version that is current again became so now.
        when = version["timestamp-ms"] if number in self.added else time.time_ns() // 1_000_000
        self.entry = {"timestamp-ms": when, "version-id": number}

    def finished(self, before: Document) -> Document:
        made = self.made
        made["properties"] = self.properties
        if self.entry is not None:
            made["version-log"].append(self.entry)
        current = _by_id(made["versions"], "version-id", made["current-version-id"])
        former = _by_id(before["versions"], "version-id", before["current-version-id"])
        if former is not None and current is not None:
            check_dialects(former, current, self.properties)
        text = self.properties.get(_KEPT, "10")
        if not text.isascii() or not text.isdigit() or int(text) < 1:
            raise InvalidArgumentError(f"property {_KEPT} of a view: expected a positive integer, got {text!r}")
        most = max(int(text), len({*self.added, made["current-version-id"]}))
        newest = sorted((_number(one, "version-id") for one in made["versions"]), reverse=True)
        kept = {made["current-version-id"]}
        for number in newest:
            if len(kept) < most:
                kept.add(number)
        made["versions"] = [one for one in made["versions"] if one["version-id"] in kept]
        log: list[Any] = []
        for entry in made["version-log"]:
            # The history begins after the last version that is not known any more.
            log = [*log, entry] if entry.get("version-id") in kept else []
        made["version-log"] = log
        return made


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    parts = ("schema-id", "representations", "default-namespace", "default-catalog", "summary")
    return all(one.get(part) == other.get(part) for part in parts)


def check_dialects(former: Mapping[str, Any], current: Mapping[str, Any], properties: Mapping[str, str]) -> None:
    """Check that a version has all dialects of the one before.

    Raises
    ------
    ValidationException
        If it lacks one, and no property of the view allows that.

    """
    if properties.get(_MAY_DROP, "false").lower() == "true":
        return
    old, new = ({name.lower() for name in ViewVersion.from_json(one).queries} for one in (former, current))
    if lost := sorted(old - new):
        raise ValidationException(
            f"the view has a query in {', '.join(lost)}, which the new version has not: pass all of its dialects, or "
            f"set the property {_MAY_DROP}=true of the view"
        )


def replacing(
    document: Document, columns: Mapping[str, Any], version: ViewVersion, properties: Mapping[str, str]
) -> Sequence[dict[str, Any]]:
    """Return the updates that make a version the current one; none if it is that already.

    What the view has already is named by its id: Java's server refuses to add it again.

    Raises
    ------
    ValidationException
        As `changed`.

    """
    schemas, versions = (
        [one for one in document.get(part) or [] if isinstance(one, dict)] for part in ("schemas", "versions")
    )
    current = document.get("current-version-id")
    known = _by_id(versions, "version-id", current)
    own = {**_properties(document), **properties}
    new = {**version.to_json(), "schema-id": LAST}
    if known is not None:
        check_dialects(known, new, own)
    updates: list[dict[str, Any]] = []
    if any(_properties(document).get(name) != value for name, value in properties.items()):
        updates.append({"action": "set-properties", "updates": dict(properties)})
    same = next((one for one in schemas if one.get("fields") == columns.get("fields")), None)
    if same is None:
        updates.append({"action": "add-schema", "schema": dict(columns)})
    else:
        new["schema-id"] = same.get("schema-id")
    former = next((one for one in versions if _same(one, new)), None)
    if former is not None:
        number = former.get("version-id")
        if number != current:
            updates.append({"action": "set-current-view-version", "view-version-id": number})
        return updates
    new["version-id"] = 1 + max((_number(one, "version-id") for one in versions), default=0)
    updates.append({"action": "add-view-version", "view-version": new})
    updates.append({"action": "set-current-view-version", "view-version-id": LAST})
    return updates
