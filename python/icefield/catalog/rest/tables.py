"""Tables of a REST catalog."""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from icefield._core import Storage, TableMetadata, TableState
from icefield._inputs.secrets import revealed
from icefield.catalog.base import CommitTableResponse, TableDefinition
from icefield.catalog.locations import absolute_location
from icefield.catalog.rest import endpoints
from icefield.catalog.rest.client import texts_of
from icefield.catalog.rest.credentials import Vended, again, replaced, vended, warn_of_places
from icefield.catalog.rest.errors import Meanings, error_of, is_success, outcome_of
from icefield.catalog.rest.http import UnansweredError
from icefield.catalog.rest.messages import Reply
from icefield.catalog.rest.names import dotted, identifiers_of, named, table_of
from icefield.catalog.rest.namespaces import RestNamespaces
from icefield.catalog.rest.planning import ServerPlanner, is_planned_by_server
from icefield.catalog.rest.renewal import CatalogRenewal, ExecutorRenewal, ServerRoute, Unsigned, transport_of
from icefield.catalog.rest.reports import Reports
from icefield.catalog.rest.settings import flag, number
from icefield.catalog.rest.signing import SignedRequest, Signing, signed_by, url_of
from icefield.catalog.rest.snapshots import completed, loads_refs
from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    CorruptDataError,
    IcefieldError,
    InvalidArgumentError,
    NoSuchNamespaceError,
    NoSuchTableError,
    OAuthError,
    RESTError,
    TableAlreadyExistsError,
    TableReplacedError,
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
_LOGGER = logging.getLogger("icefield")


class _Loaded(NamedTuple):
    """A table as the server gave it."""

    response: CommitTableResponse
    vended: Vended
    etag: str | None
    #: When it was given, in seconds of a clock that never goes back.
    at: float
    #: Whether the server plans its scans; None if the answer does not say.
    planned: bool | None = None
    #: Whether it has only the snapshots that branches and tags name.
    of_refs: bool = False


class RestTables(RestNamespaces):
    """What a REST catalog does with tables."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._remembering = Lock()
        #: The tables last seen, by name, the last one at the end; each with all credentials that the server gives.
        self._seen: OrderedDict[tuple[Identifier, bool], _Loaded] = OrderedDict()
        self._reports = Reports(self._send_report) if flag(revealed(self.properties), _REPORTING, True) else None  # noqa: FBT003
        #: Tables whose scans the server plans; never forgotten, as their manifests may have rows that it hides.
        self._planned: set[Identifier] = set()
        #: Storage by its properties.
        self._storages: OrderedDict[tuple[Identifier, tuple[tuple[str, str], ...]], Storage] = OrderedDict()

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
        loaded = self._read(reply)
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
            return self._committed(identifier, reply)
        except IcefieldError as error:
            # The server has committed; what it answers is asked for again.
            raise CommitStateUnknownException(f"the answer to a commit cannot be read: {error}") from error

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
        return self._table(identifier, self._keep(identifier, self._read(reply)))

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

    # What servers answer

    def _load(self, identifier: IdentifierLike, *, of_refs: bool = False) -> _Loaded:
        namespace, name = table_of(identifier)
        known = self._remembered((*namespace, name), of_refs=of_refs)
        headers = {"if-none-match": known.etag} if known is not None and known.etag else {}
        reply = self._client.send(
            endpoints.LOAD_TABLE,
            {"namespace": namespace, "table": name},
            query={"snapshots": "refs"} if of_refs else None,
            headers=headers,
        )
        if reply.status == 304 and known is not None:  # noqa: PLR2004
            return known
        if not is_success(reply):
            self._forget(identifier)
            raise error_of(reply, self._missing(identifier))
        return self._keep(identifier, self._read(reply)._replace(of_refs=of_refs))

    def _committed(self, identifier: IdentifierLike, reply: Reply) -> CommitTableResponse:
        """Return the table in the answer to a commit, which has no credentials by the protocol."""
        namespace, name = table_of(identifier)
        with self._remembering:
            known = self._seen.get(((*namespace, name), False)) or self._seen.get(((*namespace, name), True))
        loaded = self._read(reply, Vended({}) if known is None else known.vended)
        if known is not None and _place(known) == _place(loaded):
            self._keep(identifier, loaded)
        else:
            # Kept with its ETag it would stay without credentials, as the server would answer that it is the same.
            self._forget(identifier)
        return loaded.response

    def _read(self, reply: Reply, given: Vended | None = None) -> _Loaded:
        """Return the table in an answer, with the credentials of the answer if there are no others."""
        answer = reply.json()
        planned: bool | None = None
        found, where = answer.get("metadata"), answer.get("metadata-location") or ""
        if not isinstance(where, str):
            raise RESTError(f"{reply.asked}: metadata-location is not a text", reply.status)
        if given is None:
            own = self._storage_properties()
            location = str(found.get("location") or where) if isinstance(found, dict) else where
            given = vended(answer, location, own)
            # Such a server may hide rows, which manifests do not.
            planned = is_planned_by_server(self._client, {**own, **texts_of(answer.get("config"))})
            if isinstance(found, dict):
                warn_of_places(answer, found, reply.asked)
        try:
            if isinstance(found, dict):
                metadata = TableMetadata.from_json(found)
            elif where:  # some servers leave reading it to the client
                metadata = TableState.load(self._storage_of(given), where).metadata
            else:
                raise RESTError(f"{reply.asked}: the answer has no table metadata", reply.status)
        except CorruptDataError as error:
            raise CorruptDataError(f"{reply.asked}: {error}", error.file, error.place, error.offset) from error
        return _Loaded(
            CommitTableResponse(metadata, where), given, reply.headers.get("etag"), time.monotonic(), planned
        )

    def _table(self, identifier: IdentifierLike, loaded: _Loaded) -> Table:
        found, (namespace, table) = loaded.response, table_of(identifier)
        name = (*namespace, table)
        storage = self._storage_of(loaded.vended, name, found.metadata.location)
        made = Table(name, TableState.of(storage, found.metadata_location, found.metadata), self)
        if loaded.of_refs:
            made._rest = lambda: self._completed(name, storage, found)  # noqa: SLF001
        return made

    def _completed(self, name: Identifier, storage: Storage, known: CommitTableResponse) -> TableState:
        """Return a table with the snapshots that it was loaded without."""
        whole = self._load(name).response
        if whole.metadata_location == known.metadata_location:
            return TableState.of(storage, whole.metadata_location, whole.metadata)
        if whole.metadata.table_uuid != known.metadata.table_uuid:
            raise TableReplacedError(f"{dotted(name)} is another table now: load it again")
        return TableState.of(storage, known.metadata_location, completed(known.metadata, whole.metadata))

    def _attached(self, identifier: Identifier, state: TableState) -> TableState:
        known = state.storage.renewal
        if not isinstance(known, ExecutorRenewal):
            return super()._attached(identifier, state)
        storage = self._storage_of(known.given, identifier, known.location)
        return TableState.of(storage, state.metadata_location, state.metadata)

    def _forget_storages(self) -> None:
        super()._forget_storages()
        with self._remembering:
            self._storages.clear()

    def _vended_again(self, name: Identifier, location: str, given: Vended) -> Vended:
        """Ask for other credentials of a table."""
        if self._client.config.endpoints.offer(endpoints.LOAD_CREDENTIALS):
            names: dict[str, str | Identifier] = {"namespace": name[:-1], "table": name[-1]}
            answer = self._client.json(endpoints.LOAD_CREDENTIALS, names, self._missing(name))
            return again(answer, location, self._storage_properties(), given)
        self._forget(name)
        return self._load(name).vended

    def _credentials_route(self, name: Identifier) -> ServerRoute | None:
        """Return how an executor asks for the credentials of a table; None if it cannot."""
        config = self._client.config
        if not config.endpoints.offer(endpoints.LOAD_CREDENTIALS):
            return None
        if not flag(config.properties, "client.refresh-credentials-enabled", True):  # noqa: FBT003
            return None
        url = config.paths.of(endpoints.LOAD_CREDENTIALS, {"namespace": name[:-1], "table": name[-1]})
        token = self._client.token()
        return None if token is None else ServerRoute(url, token, transport_of(config.properties))

    def _signer_url(self, name: Identifier, signing: Signing) -> str:
        config = self._client.config
        route: str | None = None
        if config.endpoints.offer(endpoints.SIGN_REQUEST):
            route = config.paths.of(endpoints.SIGN_REQUEST, {"namespace": name[:-1], "table": name[-1]})
        return url_of(signing, config.paths.base, route)

    def _signer_route(self, name: Identifier, signing: Signing) -> ServerRoute | None:
        """Return how an executor has requests signed; None if it cannot."""
        token = self._client.token() if signing.token is None else signing.token
        properties = transport_of(self._client.config.properties)
        return None if token is None else ServerRoute(self._signer_url(name, signing), token, properties)

    def _signed(self, name: Identifier, signing: Signing, request: Unsigned) -> SignedRequest:
        """Have the server sign a request, with the token of the table if it has one."""
        url = self._signer_url(name, signing)
        return signed_by(lambda asked: self._client.post(asked, signing.token), url, signing, request)

    def _opened(self, identifier: IdentifierLike, state: TableState) -> Table:
        namespace, name = table_of(identifier)
        return Table((*namespace, name), state, self)

    def _storage_properties(self) -> dict[str, str]:
        # The server's defaults and overrides are among them.
        merged = {**super()._storage_properties(), **self._client.config.properties}
        allowed = super()._storage_properties().get("io.allowed-locations")
        return merged if allowed is None else {**merged, "io.allowed-locations": allowed}

    def _storage_of(self, given: Vended, name: Identifier = (), location: str = "") -> Storage:
        """Return the storage with what the server gave; the same for the same, as it keeps its connections.

        Credentials that expire are those of one table, which its ``name`` renews.
        """
        if not given.properties:
            return self.storage
        renews = bool(name) and (given.expires_ms is not None or given.signing is not None)
        signing = (given.signing.uri, given.signing.endpoint, given.signing.token) if given.signing else ()
        key = (name if renews else (), (*sorted(given.properties.items()), *(("signing", str(one)) for one in signing)))
        with self._remembering:
            if (found := self._storages.pop(key, None)) is None:
                below = self._storage_properties()
                renewal = CatalogRenewal(self, name, location, given, below) if renews else None
                found = self._with_keys(Storage(replaced(below, given.properties), renewal=renewal))
            self._storages[key] = found
            while len(self._storages) > self._most():
                self._storages.popitem(last=False)
        return found

    # What is remembered

    def _most(self) -> int:
        return number(self._client.config.properties, "rest-table-cache.max-entries", 100)

    def _remembered(self, name: Identifier, *, of_refs: bool = False) -> _Loaded | None:
        oldest = number(self._client.config.properties, "rest-table-cache.expire-after-write-ms", 300_000) / 1000
        with self._remembering:
            found = self._seen.get((name, of_refs))
        if found is None or time.monotonic() - found.at > oldest:
            return None
        # New credentials come with the whole answer only.
        expires = found.vended.expires_ms
        return found if expires is None or expires / 1000 - time.time() > oldest else None

    def _keep(self, identifier: IdentifierLike, loaded: _Loaded) -> _Loaded:
        namespace, table = table_of(identifier)
        name = (*namespace, table)
        with self._remembering:
            self._seen.pop((name, loaded.of_refs), None)
            self._seen[name, loaded.of_refs] = loaded
            if loaded.planned is not None:
                (self._planned.add if loaded.planned else self._planned.discard)(name)
            while len(self._seen) > self._most():
                self._seen.popitem(last=False)
        return loaded

    def _forget(self, identifier: IdentifierLike) -> None:
        namespace, name = table_of(identifier)
        with self._remembering:
            for of_refs in (False, True):
                self._seen.pop(((*namespace, name), of_refs), None)

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
            raise outcome_of(reply, meanings, once=self._client.config.has_keys)
        return reply

    def _missing(self, identifier: IdentifierLike) -> Meanings:
        namespace, name = table_of(identifier)
        return {404: lambda _: self._missing_table(namespace, name)}

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

    def _meant(self, namespace: Identifier, table: str) -> str:
        # To look for similar names could list thousands.
        if len(namespace) > 1 and namespace[0] == self.name:
            return f"; leave out the name of the catalog: {dotted(namespace[1:], table)}"
        return ""


def _place(loaded: _Loaded) -> tuple[str | None, str]:
    """Return what credentials are given for."""
    metadata = loaded.response.metadata
    return metadata.table_uuid, metadata.location


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
