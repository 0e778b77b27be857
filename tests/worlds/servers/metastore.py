"""A Hive metastore on a loopback port, in a thread: it keeps all in memory, and loses answers."""

from __future__ import annotations

import copy
import io
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import thriftpy2
from thriftpy2.rpc import make_server

from icefield.catalog.hive.client import protocol
from icefield.catalog.hive.protocol import PROTOCOL

_NEW = "get_table_req", "get_table_objects_by_name_req"


class Handler:
    """What the metastore has."""

    def __init__(self, types: Any) -> None:
        self.types = types
        self.databases: dict[str, Any] = {"default": self.types.Database(name="default", parameters={})}
        self.tables: dict[tuple[str, str], Any] = {}
        self.locks: dict[int, tuple[str, str]] = {}
        self.number = 0
        #: Each call, in order.
        self.asked: list[str] = []
        #: Calls that end the connection, before or after they are carried out.
        self.breaks: dict[str, str] = {}
        #: Locks that are told to be given up when they show signs of life.
        self.forgets = False
        self.port = 0
        self.lock_of_all = threading.RLock()

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        if name.startswith("_") or not callable(found) or name == "types":
            return found

        def called(*arguments: Any) -> Any:
            with self.lock_of_all:
                self.asked.append(name)
                how = self.breaks.pop(name, "")
                if how == "before":
                    raise ConnectionError(name)
                answer = found(*arguments)
                if how == "after":
                    raise ConnectionError(name)
                return copy.deepcopy(answer)

        return called

    def set_ugi(self, user: str, groups: list[str]) -> list[str]:
        return [user, *groups]

    def get_all_databases(self) -> list[str]:
        return list(self.databases)

    def get_database(self, name: str) -> Any:
        if name not in self.databases:
            raise self.types.NoSuchObjectException(message=name)
        return self.databases[name]

    def create_database(self, database: Any) -> None:
        if database.name in self.databases:
            raise self.types.AlreadyExistsException(message=database.name)
        self.databases[database.name] = database

    def alter_database(self, name: str, database: Any) -> None:
        self.databases[name] = database

    def drop_database(self, name: str, _data: bool, _cascade: bool) -> None:
        self.get_database(name)
        if any(of == name for of, _ in self.tables):
            raise self.types.InvalidOperationException(message="not empty")
        del self.databases[name]

    def get_all_tables(self, name: str) -> list[str]:
        return [table for database, table in self.tables if database == name]

    def get_table(self, database: str, name: str) -> Any:
        if (database, name) not in self.tables:
            raise self.types.NoSuchObjectException(message=name)
        return self.tables[database, name]

    def get_table_req(self, request: Any) -> Any:
        return self.types.GetTableResult(table=self.get_table(request.dbName, request.tblName))

    def get_table_objects_by_name(self, database: str, names: list[str]) -> list[Any]:
        return [self.tables[database, name] for name in names]

    def get_table_objects_by_name_req(self, request: Any) -> Any:
        return self.types.GetTablesResult(tables=self.get_table_objects_by_name(request.dbName, request.tblNames))

    def create_table(self, table: Any) -> None:
        key = table.dbName, table.tableName
        if table.dbName not in self.databases:
            raise self.types.InvalidObjectException(message=table.dbName)
        if key in self.tables:
            raise self.types.AlreadyExistsException(message=table.tableName)
        self.tables[key] = table

    def drop_table(self, database: str, name: str, _data: bool) -> None:
        self.get_table(database, name)
        del self.tables[database, name]

    def alter_table_with_environment_context(self, database: str, name: str, table: Any, context: Any) -> None:
        known = self.get_table(database, name)
        expected = context.properties.get("expected_parameter_key")
        if expected and known.parameters[expected] != context.properties["expected_parameter_value"]:
            raise self.types.MetaException(message=f"The table has been modified: {expected}")
        if (table.dbName, table.tableName) != (database, name) and (table.dbName, table.tableName) in self.tables:
            raise self.types.InvalidOperationException(message="already exists")
        del self.tables[database, name]
        self.tables[table.dbName, table.tableName] = table

    def lock(self, request: Any) -> Any:
        [part] = request.component
        self.number += 1
        self.locks[self.number] = part.dbname, part.tablename
        return self.types.LockResponse(lockid=self.number, state=self._state(self.number))

    def _state(self, number: int) -> int:
        first = next(each for each, place in self.locks.items() if place == self.locks[number])
        return 1 if first == number else 2

    def check_lock(self, request: Any) -> Any:
        return self.types.LockResponse(lockid=request.lockid, state=self._state(request.lockid))

    def unlock(self, request: Any) -> None:
        self.locks.pop(request.lockid, None)

    def heartbeat(self, _request: Any) -> None:
        if self.forgets:
            raise self.types.NoSuchLockException(message="the lock has expired")


@contextmanager
def metastore(*, old: bool = False) -> Iterator[Handler]:
    """Run a metastore; an old one does not have the calls that came with 3.0."""
    types = protocol()
    if old:
        text = PROTOCOL
        for name in _NEW:
            text = text.replace(f" {name}(", f" {name}_to_come(")
        types = thriftpy2.load_fp(io.StringIO(text), "old_metastore_thrift")
    handler = Handler(types)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        handler.port = free.getsockname()[1]
    # Connections that were promised to end end by an error in their thread, which nobody need see.
    threading.excepthook, before = (lambda _: None), threading.excepthook
    server = make_server(types.Metastore, handler, "127.0.0.1", handler.port, client_timeout=None)
    server.daemon = True
    running = threading.Thread(target=server.serve, daemon=True)
    running.start()
    while True:
        try:
            socket.create_connection(("127.0.0.1", handler.port), 1).close()
            break
        except OSError:
            continue
    try:
        yield handler
    finally:
        server.close()
        threading.excepthook = before
