"""Loads tables of a REST catalog, keeps them for a while, and gives each the storage that reads its files."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from icefield._core import Storage, TableMetadata, TableState
from icefield.catalog.base import CommitTableResponse
from icefield.catalog.rest.namespaces import RestNamespaces
from icefield.catalog.rest.planning import is_planned_by_server
from icefield.catalog.rest.protocol import endpoints
from icefield.catalog.rest.protocol.errors import Meanings, error_of, is_success
from icefield.catalog.rest.protocol.locks import ProcessLock
from icefield.catalog.rest.protocol.messages import Reply
from icefield.catalog.rest.protocol.names import dotted, table_of
from icefield.catalog.rest.protocol.settings import flag, number, texts_of
from icefield.catalog.rest.snapshots import completed
from icefield.catalog.rest.storage.credentials import Vended, again, location_of, replaced, vended
from icefield.catalog.rest.storage.renewal import CatalogRenewal, ExecutorRenewal, ServerRoute, Unsigned, transport_of
from icefield.catalog.rest.storage.signing import SignedRequest, Signing, signed_by, url_of
from icefield.errors import CorruptDataError, RESTError, TableReplacedError
from icefield.table import Table

if TYPE_CHECKING:
    from icefield._inputs.identifiers import Identifier, IdentifierLike

__all__ = ["Loaded", "RestLoading", "place_of"]


class Loaded(NamedTuple):
    """A table as the server gave it."""

    response: CommitTableResponse
    vended: Vended
    etag: str | None
    #: When it was given, in seconds of the monotonic clock.
    at: float
    #: Whether the server plans its scans; None if the answer does not say.
    planned: bool | None = None
    #: Whether it has only the snapshots that branches and tags name.
    of_refs: bool = False


class RestLoading(RestNamespaces):
    """The methods of a REST catalog that load tables."""

    def __init__(self, name: str, **properties: str) -> None:
        super().__init__(name, **properties)
        self._remembering = ProcessLock()
        #: The tables last seen, by name, the last one at the end; each with all credentials that the server gives.
        self._seen: OrderedDict[tuple[Identifier, bool], Loaded] = OrderedDict()
        #: Tables whose scans the server plans; never forgotten, as their manifests may have rows that it hides.
        self._planned: set[Identifier] = set()
        #: Storage by its properties.
        self._storages: OrderedDict[tuple[Identifier, tuple[object, ...]], Storage] = OrderedDict()

    def _load(self, identifier: IdentifierLike, *, of_refs: bool = False) -> Loaded:
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
        if known is not None and place_of(known) == place_of(loaded):
            self._keep(identifier, loaded)
        else:
            # Kept with its ETag it would stay without credentials, as the server would answer that it is the same.
            self._forget(identifier)
        return loaded.response

    def _read(self, reply: Reply, given: Vended | None = None) -> Loaded:
        """Return the table in an answer, with the credentials of the answer if there are no others."""
        planned: bool | None = None
        try:
            metadata, answer = _parts(reply)
            where = answer.get("metadata-location") or ""
            if not isinstance(where, str):
                raise RESTError(f"{reply.asked}: metadata-location is not a text", reply.status)
            if given is None:
                own = self._storage_properties()
                given = vended(answer, where if metadata is None else metadata.location, own)
                # Such a server may hide rows, which manifests do not.
                planned = is_planned_by_server(self._client, {**own, **texts_of(answer.get("config"))})
            if metadata is None:
                if not where:
                    raise RESTError(f"{reply.asked}: the answer has no table metadata", reply.status)
                # Some servers leave reading it to the client.
                metadata = TableState.load(self._storage_of(given), where).metadata
        except CorruptDataError as error:
            raise CorruptDataError(f"{reply.asked}: {error}", error.file, error.place, error.offset) from error
        etag = reply.headers.get("etag", "")
        # Any other ETag cannot be sent in a header.
        kept = etag if etag and etag.isascii() and etag.isprintable() else None
        return Loaded(CommitTableResponse(metadata, where), given, kept, time.monotonic(), planned)

    def _table(self, identifier: IdentifierLike, loaded: Loaded) -> Table:
        found, (namespace, table) = loaded.response, table_of(identifier)
        name = (*namespace, table)
        storage = self._storage_of(loaded.vended, name, found.metadata.location, found.metadata.table_uuid)
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
        storage = self._storage_of(known.given, identifier, known.location, state.metadata.table_uuid)
        return TableState.of(storage, state.metadata_location, state.metadata)

    def _forget_storages(self) -> None:
        super()._forget_storages()
        with self._remembering:
            self._storages.clear()

    def _vended_again(self, name: Identifier, uuid: str | None, location: str, given: Vended) -> Vended:
        """Ask for other credentials of a table, or of another place that it has files in."""
        if self._client.config.endpoints.offer(endpoints.LOAD_CREDENTIALS):
            names: dict[str, str | Identifier] = {"namespace": name[:-1], "table": name[-1]}
            answer = self._client.json(endpoints.LOAD_CREDENTIALS, names, self._missing(name))
            return again(answer, location, self._storage_properties(), given)
        self._forget(name)
        found = self._load(name)
        if uuid is not None and found.response.metadata.table_uuid not in {None, uuid}:
            raise TableReplacedError(f"{dotted(name)} is another table now, whose credentials are not for this one")
        return found.vended.at(location)

    def _credentials_route(self, name: Identifier) -> ServerRoute | None:
        """Return how an executor asks for the credentials of a table; None if it cannot."""
        config = self._client.config
        if not config.endpoints.offer(endpoints.LOAD_CREDENTIALS):
            return None
        if not flag(config.properties, "client.refresh-credentials-enabled", True):  # noqa: FBT003
            return None
        url = config.paths.of(endpoints.LOAD_CREDENTIALS, {"namespace": name[:-1], "table": name[-1]})
        token = self._client.token_of_workers()
        properties = transport_of(config.properties)
        return None if token is None or properties is None else ServerRoute(url, token, properties)

    def _signer_url(self, name: Identifier, signing: Signing) -> str:
        config = self._client.config
        route: str | None = None
        if config.endpoints.offer(endpoints.SIGN_REQUEST):
            route = config.paths.of(endpoints.SIGN_REQUEST, {"namespace": name[:-1], "table": name[-1]})
        return url_of(signing, config.paths.base, route)

    def _signer_route(self, name: Identifier, signing: Signing) -> ServerRoute | None:
        """Return how an executor has requests signed; None if it cannot."""
        token = self._client.token_of_workers() if signing.token is None else signing.token
        properties = transport_of(self._client.config.properties)
        if token is None or properties is None:
            return None
        return ServerRoute(self._signer_url(name, signing), token, properties)

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

    def _storage_of(self, given: Vended, name: Identifier = (), location: str = "", uuid: str | None = None) -> Storage:
        """Return the storage with what the server gave; equal properties share one, which keeps its connections.

        Credentials that expire are those of one table, which its ``name`` renews.
        """
        if not given.properties and not given.others:
            return self.storage
        all_given = (given, *(other for _, other in given.others))
        renews = bool(name) and any(one.expires_ms is not None or one.signing is not None for one in all_given)
        key = (name if renews else (), given.key())
        with self._remembering:
            if (found := self._storages.pop(key, None)) is None:
                below = self._storage_properties()

                def opened(one: Vended, place: str, prefixes: Mapping[str, Storage]) -> Storage:
                    expires = bool(name) and (one.expires_ms is not None or one.signing is not None)
                    renewal = CatalogRenewal(self, name, place, one, below, uuid) if expires else None
                    return Storage(replaced(below, one.properties), renewal=renewal, prefixes=prefixes)

                others = {prefix: opened(other, location_of(prefix), {}) for prefix, other in given.others}
                found = self._with_keys(opened(given, location, others))
            self._storages[key] = found
            while len(self._storages) > self._most():
                self._storages.popitem(last=False)
        return found

    # What is remembered

    def _most(self) -> int:
        return number(self._client.config.properties, "rest-table-cache.max-entries", 100)

    def _remembered(self, name: Identifier, *, of_refs: bool = False) -> Loaded | None:
        oldest = number(self._client.config.properties, "rest-table-cache.expire-after-write-ms", 300_000) / 1000
        with self._remembering:
            found = self._seen.get((name, of_refs))
        if found is None or time.monotonic() - found.at > oldest:
            return None
        # New credentials come with the whole answer only.
        ends = (found.vended.expires_ms, *(other.expires_ms for _, other in found.vended.others))
        first = min((end for end in ends if end is not None), default=None)
        return found if first is None or first / 1000 - time.time() > oldest else None

    def _keep(self, identifier: IdentifierLike, loaded: Loaded) -> Loaded:
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

    def _missing(self, identifier: IdentifierLike) -> Meanings:
        namespace, name = table_of(identifier)
        return {404: lambda _: self._missing_table(namespace, name)}

    def _meant(self, namespace: Identifier, table: str) -> str:
        # A search for similar names could list thousands.
        if len(namespace) > 1 and namespace[0] == self.name:
            return f"; leave out the name of the catalog: {dotted(namespace[1:], table)}"
        return ""


def _parts(reply: Reply) -> tuple[TableMetadata | None, dict[str, Any]]:
    """Return the metadata in an answer, which most of it is, and the other fields."""
    read = TableMetadata.from_answer(reply.body)
    if read is not None:
        return read[0], json.loads(read[1])
    # Parsing it here raises the error that says what is wrong with the answer.
    answer = reply.json()
    found = answer.get("metadata")
    return TableMetadata.from_json(found) if isinstance(found, dict) else None, answer


def place_of(loaded: Loaded) -> tuple[str | None, str]:
    """Return what credentials belong to: the uuid and the location of a table."""
    metadata = loaded.response.metadata
    return metadata.table_uuid, metadata.location
