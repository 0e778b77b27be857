"""Tables of a REST catalog."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from icefield._core import Storage, TableMetadata, TableState
from icefield._inputs.secrets import revealed
from icefield.catalog.base import CommitTableResponse, TableDefinition
from icefield.catalog.locations import absolute_location
from icefield.catalog.rest.loading import Loaded, RestLoading
from icefield.catalog.rest.planning import ServerPlanner
from icefield.catalog.rest.protocol import endpoints
from icefield.catalog.rest.protocol.errors import Meanings, error_of, is_success, outcome_of
from icefield.catalog.rest.protocol.http import UnansweredError
from icefield.catalog.rest.protocol.messages import Reply
from icefield.catalog.rest.protocol.names import dotted, identifiers_of, named, table_of
from icefield.catalog.rest.protocol.settings import flag
from icefield.catalog.rest.reports import Reports
from icefield.catalog.rest.snapshots import loads_refs
from icefield.catalog.rest.storage.credentials import vended
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    IcefieldError,
    InvalidArgumentError,
    NoSuchNamespaceError,
    NoSuchTableError,
    OAuthError,
    RESTError,
    TableAlreadyExistsError,
    UnauthorizedError,
    UnsupportedFeatureError,
)
from icefield.table import CreateTableTransaction, Table

if TYPE_CHECKING:
    from icefield._inputs.identifiers import Identifier, IdentifierLike
    from icefield.metrics import Report
    from icefield.scan import ScanPlanner

__all__ = ["RestTables"]

#: Where a table is supposed to be whose location the server chooses.
_NOWHERE = "file:///nowhere"
_REPORTING = "rest-metrics-reporting-enabled"
#: Routes of changes that are made once or not at all, and not tried again after another commit.
_CREATIONS = (
    endpoints.CREATE_TABLE,
    endpoints.REGISTER_TABLE,
    endpoints.CREATE_VIEW,
    endpoints.REGISTER_VIEW,
)
_LOGGER = logging.getLogger("icefield")


class RestTables(RestLoading):
    """The methods of a REST catalog that are about tables."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._reports = Reports(self._send_report) if flag(revealed(self.properties), _REPORTING, True) else None  # noqa: FBT003

    def list_tables(self, namespace: IdentifierLike) -> list[Identifier]:
        """List the tables directly in a namespace."""
        levels = self._levels(namespace)
        found: list[Identifier] = []
        missing = self._missing_namespace(levels)
        for page in self._client.pages(endpoints.LIST_TABLES, {"namespace": levels}, "identifiers", missing):
            found += identifiers_of(page)
        return found

    def load_table(self, identifier: IdentifierLike) -> Table:
        """Load the current state of a table."""
        of_refs = loads_refs(self._client.config.properties)
        return self._table(identifier, self._load(identifier, of_refs=of_refs))

    def load_table_metadata(self, identifier: IdentifierLike) -> CommitTableResponse:
        """Return the current metadata of a table; the server sends them only if they have changed."""
        return self._load(identifier).response

    def table_exists(self, identifier: IdentifierLike) -> bool:
        """Return whether there is a table of this name."""
        namespace, name = table_of(identifier)
        found = self._exists(endpoints.TABLE_EXISTS, {"namespace": namespace, "table": name})
        if found is not None:
            return found
        try:
            self._load(identifier)
        except (NoSuchTableError, NoSuchNamespaceError):
            return False
        return True

    def create_defined_table(self, identifier: IdentifierLike, definition: TableDefinition) -> Table:
        """Create a table by its definition; the server assigns its field ids, and its location if there is none."""
        reply = self._asked_to_create(identifier, definition, staged=False)
        loaded = self._read_of_change(reply, "created")
        _require_encryption(definition, loaded.response.metadata, f"{reply.asked}: the table was created, but")
        return self._table(identifier, self._keep(identifier, loaded))

    def stage_table(self, identifier: IdentifierLike, definition: TableDefinition) -> Table:
        """Return a new table that the server has prepared, and not yet created."""
        reply = self._asked_to_create(identifier, definition, staged=True)
        loaded = self._read(reply)
        _require_encryption(definition, loaded.response.metadata, f"{reply.asked}:")
        loaded = loaded._replace(response=CommitTableResponse(loaded.response.metadata, ""), etag=None)
        # The answer to the commit that creates it has no credentials.
        return self._table(identifier, self._keep(identifier, loaded))

    def _creation(self, identifier: IdentifierLike, definition: TableDefinition) -> CreateTableTransaction:
        # The server refuses to stage a table that exists.
        return CreateTableTransaction(self.stage_table(identifier, definition))

    def commit_table(
        self,
        identifier: IdentifierLike,
        requirements: Iterable[Mapping[str, object]],
        updates: Iterable[Mapping[str, object]],
    ) -> CommitTableResponse:
        """Apply updates to a table if it meets the requirements, all or none."""
        namespace, name = table_of(identifier)
        requirements, updates = list(requirements), list(updates)
        body = {"identifier": named(identifier), "requirements": requirements, "updates": updates}
        creates = any(requirement.get("type") == "assert-create" for requirement in requirements)
        meanings = self._meanings_of_creation(identifier) if creates else self._meanings_of_commit(identifier)
        reply = self._send_change(endpoints.COMMIT_TABLE, {"namespace": namespace, "table": name}, body, meanings)
        try:
            found = self._committed(identifier, reply)
        except IcefieldError as error:
            # The server has committed; what it answers is asked for again.
            raise CommitStateUnknownException(f"the answer to a commit cannot be read: {error}") from error
        for requirement in requirements:
            expected = requirement.get("uuid") if requirement.get("type") == "assert-table-uuid" else None
            if expected is not None and found.metadata.table_uuid != expected:
                raise CommitStateUnknownException(
                    f"{reply.asked}: the answer to a commit is another table: its uuid is {found.metadata.table_uuid}, "
                    f"and not {expected}"
                )
        return found

    def commit_tables(self, changes: Iterable[Mapping[str, object]]) -> None:
        """Commit changes of several tables, all or none; `transaction` is the usual way.

        Parameters
        ----------
        changes
            ``CommitTableRequest`` objects of the REST protocol, each with its ``identifier``.

        Raises
        ------
        CommitFailedException
            If a table does not meet its requirements; nothing was changed.
        CommitStateUnknownException
            If the outcome is unknown.

        """
        self._client.config.endpoints.require(endpoints.COMMIT_TRANSACTION, "changes of several tables in one commit")
        meanings: Meanings = {409: lambda text: CommitFailedException(f"a table was changed by another commit: {text}")}
        self._send_change(endpoints.COMMIT_TRANSACTION, {}, {"table-changes": list(changes)}, meanings)

    def register_table(self, identifier: IdentifierLike, metadata_location: str, overwrite: bool = False) -> Table:
        """Register a table that exists in storage, by the location of its metadata file."""
        namespace, name = table_of(identifier)
        self._client.config.endpoints.require(endpoints.REGISTER_TABLE, "registering tables")
        body: dict[str, object] = {"name": name, "metadata-location": metadata_location}
        if overwrite:
            body["overwrite"] = True
        meanings = self._meanings_of_creation(identifier)
        reply = self._send_change(endpoints.REGISTER_TABLE, {"namespace": namespace}, body, meanings)
        return self._table(identifier, self._keep(identifier, self._read_of_change(reply, "registered")))

    def drop_table(self, identifier: IdentifierLike, purge_requested: bool = False) -> None:
        """Drop a table; the server deletes its files if a purge is requested, and otherwise they stay."""
        namespace, name = table_of(identifier)
        query = {"purgeRequested": "true" if purge_requested else "false"}
        try:
            self._client.change(
                endpoints.DROP_TABLE,
                {"namespace": namespace, "table": name},
                self._missing(identifier),
                query=query,
                is_made=lambda error: isinstance(error, NoSuchTableError),
            )
        finally:
            self._forget(identifier)

    def rename_table(self, from_identifier: IdentifierLike, to_identifier: IdentifierLike) -> Table:
        """Rename a table; its files stay where they are."""
        self._client.config.endpoints.require(endpoints.RENAME_TABLE, "renaming tables")
        body = {"source": named(from_identifier), "destination": named(to_identifier)}
        meanings: Meanings = {**self._missing(from_identifier), 409: lambda _: self._exists_already(to_identifier)}

        def is_made(error: IcefieldError) -> bool:
            return (
                isinstance(error, (NoSuchTableError, TableAlreadyExistsError))
                and not self.table_exists(from_identifier)
                and self.table_exists(to_identifier)
            )

        self._client.change(endpoints.RENAME_TABLE, {}, meanings, body, is_made=is_made)
        self._forget(from_identifier)
        self._forget(to_identifier)
        return self.load_table(to_identifier)

    # Reports

    @property
    def _takes_reports(self) -> bool:
        return self._reports is not None or super()._takes_reports

    def _take_report(self, identifier: Identifier, report: Report) -> None:
        if self._reports is not None:
            self._reports.add(identifier, report)
        super()._take_report(identifier, report)

    def _scan_planner(self, identifier: Identifier) -> ScanPlanner | None:
        """Return what asks the server for plans, if it plans the scans of a table (``scan-planning-mode``)."""
        with self._remembering:
            if identifier not in self._planned:
                return None
        return ServerPlanner(self._client, identifier, lambda answer: self._storage_of_plan(identifier, answer))

    def _storage_of_plan(self, name: Identifier, answer: Mapping[str, Any]) -> Storage | None:
        """Return the storage with the credentials of a plan; None if it has none."""
        if not answer.get("storage-credentials"):
            return None
        loaded = self._load(name)
        location = loaded.response.metadata.location
        own = self._storage_properties()
        return self._storage_of(vended({**answer, "config": loaded.vended.properties}, location, own))

    def _send_report(self, name: Identifier, report: Report) -> None:
        if not self._client.config.endpoints.offer(endpoints.REPORT_METRICS):
            return
        # By the server's property too.
        if flag(self._client.config.properties, _REPORTING, True):  # noqa: FBT003
            names: dict[str, str | Identifier] = {"namespace": name[:-1], "table": name[-1]}
            reply = self._client.send(endpoints.REPORT_METRICS, names, body=report)
            if not is_success(reply):
                raise error_of(reply, self._missing(name))

    # Changes, and what their answers mean

    def _asked_to_create(self, identifier: IdentifierLike, definition: TableDefinition, *, staged: bool) -> Reply:
        namespace, name = table_of(identifier)
        properties = {**self._table_defaults(), **definition.properties}
        location = definition.location
        if location is not None:
            location = absolute_location(location, "the location of the table")
        # What the texts of the definition mean is found by staging the table here.
        state = TableState.stage(
            self.storage,
            definition.schema,
            location or _NOWHERE,
            definition.partition_spec,
            definition.sort_order,
            properties,
        )
        document: dict[str, Any] = json.loads(state.metadata_json())
        body: dict[str, object] = {
            "name": name,
            "schema": _with_id(document, "schemas", "schema-id", "current-schema-id"),
            "partition-spec": _with_id(document, "partition-specs", "spec-id", "default-spec-id"),
            "write-order": _with_id(document, "sort-orders", "order-id", "default-sort-order-id"),
            "stage-create": staged,
            "properties": properties,
        }
        if location is not None:
            body["location"] = location
        meanings = self._meanings_of_creation(identifier)
        if staged:
            reply = self._client.send(endpoints.CREATE_TABLE, {"namespace": namespace}, body=body)
            if not is_success(reply):
                raise error_of(reply, meanings)
            return reply
        return self._send_change(endpoints.CREATE_TABLE, {"namespace": namespace}, body, meanings)

    def _send_change(
        self, route: endpoints.Route, names: Mapping[str, str | Identifier], body: object, meanings: Meanings
    ) -> Reply:
        """Send a change whose outcome counts, and return the answer to a change that was made.

        Raises
        ------
        CommitFailedException
            If the change was certainly not made.
        CommitStateUnknownException
            If it may have been made.

        """
        try:
            _ = self._client.config
        except UnansweredError as error:
            raise CommitFailedException(str(error)) from error
        try:
            reply = self._client.send(route, names, body=body)
        except UnansweredError as error:
            kind = CommitStateUnknownException if error.sent else CommitFailedException
            raise kind(str(error)) from error
        except (OAuthError, UnauthorizedError) as error:
            # The request was not sent: there was no token for it.
            if route not in (endpoints.COMMIT_TABLE, endpoints.COMMIT_TRANSACTION):
                raise
            raise CommitFailedException(str(error)) from error
        if not is_success(reply):
            found = outcome_of(reply, meanings, once=self._client.config.has_keys)
            # A creation is not tried again: what was refused is raised as the server says it.
            refused = found.__cause__ if isinstance(found, CommitFailedException) and route in _CREATIONS else None
            raise refused or found
        return reply

    def _read_of_change(self, reply: Reply, done: str) -> Loaded:
        """Return the table in the answer to a creation; an error says that there is a table now."""
        try:
            return self._read(reply)
        except UnsupportedFeatureError as error:
            raise UnsupportedFeatureError(f"{reply.asked}: the table was {done}, but {error}") from error
        except RESTError as error:
            raise RESTError(f"{reply.asked}: the table was {done}, but {error}", error.status, error.type) from error

    def _meanings_of_commit(self, identifier: IdentifierLike) -> Meanings:
        name = dotted(*table_of(identifier))
        return {409: lambda text: CommitFailedException(f"{name} was changed by another commit: {text}")}

    def _meanings_of_creation(self, identifier: IdentifierLike) -> Meanings:
        namespace, _ = table_of(identifier)
        return {**self._missing_namespace(namespace), 409: lambda _: self._exists_already(identifier)}

    def _exists_already(self, identifier: IdentifierLike) -> TableAlreadyExistsError:
        name = dotted(*table_of(identifier))
        return TableAlreadyExistsError(
            f"{name} already exists; load_table opens it, and create_table_if_not_exists does either"
        )

    def _check_absent(self, identifier: IdentifierLike) -> None:
        namespace, _ = table_of(identifier)
        if not self.namespace_exists(namespace):
            raise NoSuchNamespaceError(f"namespace {dotted(namespace)} does not exist in catalog {self.name}")
        if self.table_exists(identifier):
            raise self._exists_already(identifier)


def _with_id(document: Mapping[str, Any], field: str, name: str, current: str) -> object:
    """Return the current schema, spec or order of metadata."""
    for one in document.get(field) or []:
        if one.get(name) == document.get(current):
            return one
    raise InvalidArgumentError(f"the definition of the table has no {name} {document.get(current)}")


def _require_encryption(definition: TableDefinition, metadata: TableMetadata, place: str) -> None:
    """Refuse the table of a server that drops the properties of encryption: it would be stored unencrypted."""
    for name, value in (definition.properties or {}).items():
        if name.startswith("encryption.") and metadata.properties.get(name) != str(value):
            raise UnsupportedFeatureError(
                f"{place} the server dropped the property {name}: rows would not be encrypted"
            )
