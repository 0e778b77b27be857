"""The DynamoDB catalog, with the items of Java's and PyIceberg's.

The item of a table has the key ``NAMESPACE.TABLE`` and its namespace, that of a namespace the key ``NAMESPACE``.
Properties begin with ``p.``; each change gives an item another version ``v``, on which Java's commits insist.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from icefield._inputs.arguments import property_texts
from icefield._inputs.identifiers import Identifier, IdentifierLike, namespace_tuple, table_tuple
from icefield.catalog.aws import AwsService, RefusedError
from icefield.catalog.base import PropertiesUpdateSummary
from icefield.catalog.metastore import LOCATION, PREVIOUS, TABLE_TYPE, MetastoreCatalog, changed
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    IcefieldError,
    InvalidArgumentError,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    StorageError,
    TableAlreadyExistsError,
)

__all__ = ["DynamoDbCatalog"]

_NAMESPACE = "NAMESPACE"
_INDEX = "namespace-identifier"
_UNMET = "ConditionalCheckFailedException"
_KEYS = {"identifier": "HASH", "namespace": "RANGE"}
#: Seconds until a new table of DynamoDB is there.
_WAIT = 120.0


class DynamoDbCatalog(MetastoreCatalog):
    """A catalog in a table of DynamoDB, which is created with the first namespace.

    Parameters
    ----------
    name
        Its name, which is stored nowhere.
    **properties
        ``dynamodb.table-name`` (``iceberg`` by default), ``dynamodb.region``, ``dynamodb.endpoint`` and others, and
        the properties of the storage.

    """

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._service = AwsService(name, "dynamodb", self.properties)
        self._table = self.properties.get("dynamodb.table-name") or self.properties.get("table-name") or "iceberg"

    def _names(self, identifier: IdentifierLike) -> tuple[str, str]:
        namespace, name = table_tuple(identifier)
        return ".".join(namespace), name

    def _folder_of(self, warehouse: str, namespace: Identifier) -> str:
        return f"{warehouse}/{'.'.join(namespace)}.db"

    # Items

    def _item(self, identifier: str, namespace: str) -> dict[str, str] | None:
        """Return an item with its attributes as text; ``None`` if there is none, or no table of DynamoDB yet."""
        try:
            answer = self._service.read(
                "get_item", TableName=self._table, ConsistentRead=True, Key=_key(identifier, namespace)
            )
        except RefusedError as error:
            if error.code == "ResourceNotFoundException":
                return None
            raise
        return _attributes(answer["Item"]) if "Item" in answer else None

    def _query(self, condition: str, values: Mapping[str, str], index: str | None = None) -> list[dict[str, str]]:
        given = {f":{name}": {"S": value} for name, value in values.items()}
        where = {"IndexName": index} if index else {"ConsistentRead": True}
        try:
            pages = list(
                self._service.pages(
                    "query",
                    TableName=self._table,
                    KeyConditionExpression=condition,
                    ExpressionAttributeValues=given,
                    ExpressionAttributeNames={"#n": "namespace"},
                    **where,
                )
            )
        except RefusedError as error:
            if error.code == "ResourceNotFoundException":
                return []
            raise
        return [_attributes(item) for page in pages for item in page["Items"]]

    def _transact(self, *parts: dict[str, dict[str, Any]]) -> None:
        """Carry out several changes or none; sent again, it is the same transaction."""
        items = [{kind: {"TableName": self._table, **about}} for part in parts for kind, about in part.items()]
        self._service.ask("transact_write_items", TransactItems=items)

    # Pointers

    def load_pointer(self, identifier: IdentifierLike) -> str:
        """Return the location of the metadata file of a table."""
        return self._location_in(identifier, _properties(self._require_item(identifier)))

    def _require_item(self, identifier: IdentifierLike) -> dict[str, str]:
        namespace, name = self._names(identifier)
        if (item := self._item(f"{namespace}.{name}", namespace)) is None:
            raise self._missing_table(table_tuple(identifier)[0], name)
        return item

    def add_pointer(self, identifier: IdentifierLike, metadata_location: str) -> None:
        """Add a table, unless there is one of this name."""
        namespace, name = self._names(identifier)
        properties = {TABLE_TYPE: "ICEBERG", LOCATION: metadata_location, PREVIOUS: ""}
        item = _new(f"{namespace}.{name}", namespace, properties)
        try:
            self._transact(_exists(namespace), _put(item))
        except RefusedError as error:
            if error.repeated and self._is_at(identifier, metadata_location, error):
                return
            raise self._refused(error, identifier) from error
        except CommitStateUnknownException as error:
            if not self._is_at(identifier, metadata_location, error):
                raise

    def _refused(self, error: RefusedError, identifier: IdentifierLike) -> IcefieldError:
        """Return the error for an item that was not put, where the first part was to find its namespace."""
        namespace, name = self._names(identifier)
        unmet = [reason == "ConditionalCheckFailed" for reason in error.parts]
        if error.code == "ResourceNotFoundException" or unmet[:1] == [True]:
            return NoSuchNamespaceError(f"namespace {namespace} does not exist in catalog {self.name}")
        if unmet[1:2] == [True]:
            return TableAlreadyExistsError(f"{namespace}.{name} already exists")
        return CommitFailedException(str(error))

    def swap_pointer(self, identifier: IdentifierLike, base: str, new: str) -> None:
        """Point a table at new metadata if it still points at ``base``, by a condition."""
        namespace, name = self._names(identifier)
        try:
            self._service.ask(
                "update_item",
                TableName=self._table,
                Key=_key(f"{namespace}.{name}", namespace),
                ConditionExpression="#l = :base",
                UpdateExpression="SET #l = :new, #p = :base, v = :v, updated_at = :now",
                ExpressionAttributeNames={"#l": f"p.{LOCATION}", "#p": f"p.{PREVIOUS}"},
                ExpressionAttributeValues={
                    ":base": {"S": base},
                    ":new": {"S": new},
                    ":v": {"S": str(uuid.uuid4())},
                    ":now": {"N": _now()},
                },
            )
        except RefusedError as error:
            if error.repeated and self._is_at(identifier, new, error):
                return
            lost = error.code == _UNMET
            message = f"{namespace}.{name} was changed by another commit" if lost else str(error)
            raise CommitFailedException(message) from error

    def remove_pointer(self, identifier: IdentifierLike) -> None:
        """Remove a table; its files stay."""
        namespace, name = self._names(identifier)
        self.load_pointer(identifier)  # what is not an Iceberg table stays
        try:
            self._delete(f"{namespace}.{name}", namespace)
        except RefusedError as error:
            if error.code != _UNMET:
                raise
            if not error.repeated:
                raise self._missing_table(table_tuple(identifier)[0], name) from None

    def _delete(self, identifier: str, namespace: str) -> None:
        self._service.ask(
            "delete_item",
            TableName=self._table,
            Key=_key(identifier, namespace),
            ConditionExpression="attribute_exists(identifier)",
        )

    def rename_pointer(self, old: IdentifierLike, new: IdentifierLike) -> None:
        """Rename a table in one transaction, unless there is one of the new name."""
        namespace, name = self._names(old)
        to_namespace, to_name = self._names(new)
        item = self._require_item(old)
        self._location_in(old, _properties(item))
        renamed = _new(f"{to_namespace}.{to_name}", to_namespace, _properties(item), item.get("created_at"))
        unchanged = {
            "Key": _key(f"{namespace}.{name}", namespace),
            "ConditionExpression": "v = :v",
            "ExpressionAttributeValues": {":v": {"S": item["v"]}},
        }
        try:
            self._transact(_exists(to_namespace), _put(renamed), {"Delete": unchanged})
        except RefusedError as error:
            if error.parts[2:] == ["ConditionalCheckFailed"]:
                raise CommitFailedException(
                    f"{namespace}.{name} was changed while it was renamed; rename it again"
                ) from error
            raise self._refused(error, new) from error

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the tables directly in a namespace, by an index that may lag by some seconds."""
        levels = self._require_namespace(namespace)
        start = len(".".join(levels)) + 1
        return sorted((*levels, identifier[start:]) for identifier in self._identifiers(levels))

    def _identifiers(self, levels: Identifier) -> list[str]:
        found = self._query("#n = :n", {"n": ".".join(levels)}, _INDEX)
        return [item["identifier"] for item in found if item["identifier"] != _NAMESPACE]

    # Namespaces

    def list_namespaces(self, namespace: IdentifierLike = ()) -> list[Identifier]:
        """List the namespaces directly under one; by default, under the root."""
        levels = self._require_namespace(namespace) if namespace else ()
        depth = len(levels) + 1
        return sorted({name[:depth] for name in self._all_namespaces(levels) if len(name) >= depth})

    def _all_namespaces(self, above: Identifier) -> list[Identifier]:
        """Return all namespaces under one."""
        beneath = f"{'.'.join(above)}." if above else ""
        condition = "identifier = :i AND begins_with(#n, :n)" if beneath else "identifier = :i AND #n > :n"
        found = self._query(condition, {"i": _NAMESPACE, "n": beneath or " "})
        return [tuple(item["namespace"].split(".")) for item in found]

    def create_namespace(self, namespace: IdentifierLike, properties: Mapping[str, str] | None = None) -> None:
        """Create a namespace; the first one creates the table of DynamoDB."""
        levels = namespace_tuple(namespace)
        if not levels:
            raise InvalidArgumentError("the root namespace cannot be created")
        name = ".".join(levels)
        put = _put(_new(_NAMESPACE, name, property_texts(properties)))
        try:
            self._transact(put)
        except RefusedError as error:
            if error.parts[:1] == ["ConditionalCheckFailed"]:
                raise NamespaceAlreadyExistsError(f"namespace {name} already exists") from None
            if error.code != "ResourceNotFoundException":
                raise
            self._create_table()
            self._put_first(put, name)

    def _put_first(self, put: dict[str, dict[str, Any]], name: str) -> None:
        try:
            self._transact(put)
        except RefusedError as error:
            if error.parts[:1] == ["ConditionalCheckFailed"]:  # another process made the table, and was faster
                raise NamespaceAlreadyExistsError(f"namespace {name} already exists") from None
            raise

    def _create_table(self) -> None:
        keys = [{"AttributeName": key, "KeyType": kind} for key, kind in _KEYS.items()]
        index = [{"AttributeName": "namespace", "KeyType": "HASH"}, {"AttributeName": "identifier", "KeyType": "RANGE"}]
        try:
            self._service.ask(
                "create_table",
                TableName=self._table,
                AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in _KEYS],
                KeySchema=keys,
                GlobalSecondaryIndexes=[
                    {"IndexName": _INDEX, "KeySchema": index, "Projection": {"ProjectionType": "KEYS_ONLY"}}
                ],
                BillingMode="PAY_PER_REQUEST",
            )
        except RefusedError as error:
            if error.code != "ResourceInUseException":  # another process is making it
                raise
        until = time.monotonic() + _WAIT
        while self._service.read("describe_table", TableName=self._table)["Table"]["TableStatus"] != "ACTIVE":
            if time.monotonic() > until:
                raise StorageError(f"catalog {self.name}: the table {self._table} of DynamoDB is not there yet")
            time.sleep(1)

    def drop_namespace(self, namespace: IdentifierLike) -> None:
        """Drop an empty namespace."""
        levels = self._require_namespace(namespace)
        name = ".".join(levels)
        if not levels:
            raise InvalidArgumentError("the root namespace cannot be dropped")
        inside = [*self._identifiers(levels), *(".".join(beneath) for beneath in self._all_namespaces(levels))]
        if inside:
            raise NamespaceNotEmptyError(f"namespace {name} is not empty: it contains {inside[0]}")
        try:
            self._delete(_NAMESPACE, name)
        except RefusedError as error:
            if error.code != _UNMET:
                raise

    def load_namespace_properties(self, namespace: IdentifierLike) -> dict[str, str]:
        """Return the properties of a namespace."""
        levels = namespace_tuple(namespace)
        if (item := self._item(_NAMESPACE, ".".join(levels) or " ")) is None:
            raise NoSuchNamespaceError(f"namespace {'.'.join(levels)} does not exist in catalog {self.name}")
        return _properties(item)

    def update_namespace_properties(
        self, namespace: IdentifierLike, removals: Iterable[str] | str = (), updates: Mapping[str, str] | None = None
    ) -> PropertiesUpdateSummary:
        """Remove and set properties of a namespace, all or none."""
        name = ".".join(self._require_namespace(namespace))
        if (item := self._item(_NAMESPACE, name)) is None:
            raise NoSuchNamespaceError(f"namespace {name} does not exist in catalog {self.name}")
        properties, summary = changed(_properties(item), removals, updates)
        try:
            self._service.ask(
                "put_item",
                TableName=self._table,
                Item=_new(_NAMESPACE, name, properties, item.get("created_at")),
                ConditionExpression="v = :v",
                ExpressionAttributeValues={":v": {"S": item["v"]}},
            )
        except RefusedError as error:
            if error.code != _UNMET:
                raise
            raise CommitFailedException(f"namespace {name} was changed meanwhile; try again") from error
        return summary

    def _require_namespace(self, namespace: IdentifierLike) -> Identifier:
        levels = namespace_tuple(namespace)
        # A namespace may have been created without those above it, which are listed and have no properties.
        if levels and self._item(_NAMESPACE, ".".join(levels)) is None and not self._all_namespaces(levels):
            raise NoSuchNamespaceError(f"namespace {'.'.join(levels)} does not exist in catalog {self.name}")
        return levels

    def close(self) -> None:
        """Close connections."""
        self._service.close()


def _now() -> str:
    return str(round(time.time() * 1000))


def _key(identifier: str, namespace: str) -> dict[str, dict[str, str]]:
    return {"identifier": {"S": identifier}, "namespace": {"S": namespace}}


def _new(
    identifier: str, namespace: str, properties: Mapping[str, str], created: str | None = None
) -> dict[str, dict[str, str]]:
    now = _now()
    return {
        **_key(identifier, namespace),
        "v": {"S": str(uuid.uuid4())},
        "created_at": {"N": created or now},
        "updated_at": {"N": now},
        **{f"p.{name}": {"S": value} for name, value in properties.items()},
    }


def _put(item: Mapping[str, object]) -> dict[str, dict[str, Any]]:
    return {"Put": {"Item": item, "ConditionExpression": "attribute_not_exists(identifier)"}}


def _exists(namespace: str) -> dict[str, dict[str, Any]]:
    condition = "attribute_exists(identifier)"
    return {"ConditionCheck": {"Key": _key(_NAMESPACE, namespace), "ConditionExpression": condition}}


def _attributes(item: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    return {name: text for name, value in item.items() for text in value.values()}


def _properties(item: Mapping[str, str]) -> dict[str, str]:
    return {name[2:]: value for name, value in item.items() if name.startswith("p.")}
