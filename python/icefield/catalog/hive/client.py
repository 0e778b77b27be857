"""Connections to a metastore, and its errors."""

from __future__ import annotations

import io
import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from icefield._inputs.secrets import revealed
from icefield._support.optional import require
from icefield.catalog.hive.protocol import PROTOCOL
from icefield.errors import (
    CommitStateUnknownException,
    InvalidArgumentError,
    NoSuchPropertyException,
    StorageError,
    UnsupportedFeatureError,
)

__all__ = ["Metastore", "RefusedError", "protocol"]

_PORT = 9083
_CONNECT_SECONDS = 10
_ANSWER_SECONDS = 60


class RefusedError(StorageError):
    """The metastore answered with an exception; ``kind`` is its name."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


@cache
def protocol() -> Any:
    """Return the classes of the protocol."""
    return require("thriftpy2").load_fp(io.StringIO(PROTOCOL), "icefield_metastore_thrift")


class Metastore:
    """A metastore, at one of several addresses: the first that can be reached is asked."""

    def __init__(self, catalog: str, properties: Mapping[str, str]) -> None:
        given = revealed(properties)
        self._catalog = catalog
        if given.get("hive.kerberos-authentication", "").lower() == "true":
            raise UnsupportedFeatureError(
                "catalog property hive.kerberos-authentication: Kerberos is not supported; a REST catalog may stand "
                "before a metastore that requires it"
            )
        if not (uri := given.get("uri")):
            msg = "Hive catalogs require the property 'uri', for example thrift://host:9083"
            raise NoSuchPropertyException(msg)
        self._addresses = [_address(each.strip()) for each in uri.split(",")]
        user, _, group = given.get("ugi", "").partition(":")
        self._user = (user, [group] if group else [])
        #: Whether the server is one of those that are asked in the old way, once it is known.
        self._is_old: bool | None = None

    @contextmanager
    def open(self) -> Iterator[Connection]:
        """Open a connection, which one thread uses."""
        require("thriftpy2")
        failures = []
        for host, port in self._addresses:
            try:
                client = _client(host, port)
            except OSError as error:
                failures.append(f"{host}:{port}: {error}")
                continue
            try:
                connection = Connection(f"catalog {self._catalog}: metastore {host}:{port}", client)
                if self._user[0]:
                    connection.read("set_ugi", *self._user)
                yield connection
            finally:
                client.close()
            return
        raise StorageError(f"catalog {self._catalog}: no metastore can be reached: {'; '.join(failures)}")

    def ask(self, call: str, *arguments: object) -> Any:
        """Ask on a connection of its own what changes nothing."""
        with self.open() as connection:
            return connection.read(call, *arguments)

    def table(self, connection: Connection, database: str, name: str) -> Any:
        """Return a table; metastores before 3.0 have the first of the calls, those since 4.0 the second only."""
        if self._is_old is None:
            try:
                found = connection.read("get_table_req", protocol().GetTableRequest(dbName=database, tblName=name))
            except RefusedError as error:
                if error.kind != "TApplicationException":
                    raise
                self._is_old = True
            else:
                self._is_old = False
                return found.table
        if self._is_old:
            return connection.read("get_table", database, name)
        return connection.read("get_table_req", protocol().GetTableRequest(dbName=database, tblName=name)).table

    def tables(self, connection: Connection, database: str, names: list[str]) -> list[Any]:
        """Return several tables."""
        try:
            request = protocol().GetTablesRequest(dbName=database, tblNames=names)
            return list(connection.read("get_table_objects_by_name_req", request).tables)
        except RefusedError as error:
            if error.kind != "TApplicationException":
                raise
            return list(connection.read("get_table_objects_by_name", database, names))


class Connection:
    """An open connection."""

    def __init__(self, where: str, client: Any) -> None:
        self._where = where
        self._client = client

    def ask(self, call: str, *arguments: object) -> Any:
        """Send a call.

        Raises
        ------
        RefusedError
            If the metastore answered with an exception.
        CommitStateUnknownException
            If there was no answer.

        """
        thrift = require("thriftpy2.thrift")
        where = f"{self._where}: {call}"
        try:
            return getattr(self._client, call)(*arguments)
        except (require("thriftpy2.transport").TTransportException, OSError, EOFError) as error:
            raise CommitStateUnknownException(f"{where}: {getattr(error, 'message', None) or error}") from error
        except thrift.TException as error:
            kind = type(error).__name__
            raise RefusedError(f"{where}: {kind}: {getattr(error, 'message', None)}", kind) from error

    def read(self, call: str, *arguments: object) -> Any:
        """Send a call that changes nothing, after which nothing is unknown."""
        try:
            return self.ask(call, *arguments)
        except CommitStateUnknownException as error:
            raise StorageError(str(error)) from error.__cause__


def _client(host: str, port: int) -> Any:
    """Return a client on a new connection, whose answers are waited for so long and no longer."""
    connected = socket.create_connection((host, port), _CONNECT_SECONDS)
    connected.settimeout(_ANSWER_SECONDS)
    rpc, transport = require("thriftpy2.rpc"), require("thriftpy2.transport")
    through = rpc.TBufferedTransportFactory().get_transport(transport.TSocket(sock=connected))
    return rpc.TClient(protocol().Metastore, rpc.TBinaryProtocolFactory().get_protocol(through))


def _address(uri: str) -> tuple[str, int]:
    """Return host and port of ``thrift://host:port``."""
    parts = urlsplit(uri)
    try:
        port = parts.port
    except ValueError:
        port = 0
    if parts.scheme not in {"thrift", "hive"} or not parts.hostname or port == 0 or parts.path.strip("/"):
        raise InvalidArgumentError(f"catalog property 'uri': expected thrift://host:9083, got {uri!r}")
    return parts.hostname, port or _PORT
