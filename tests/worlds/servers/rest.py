"""A REST catalog on a loopback port, in a thread: it keeps tables in memory, and answers as a test has told it."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, quote, unquote, urlsplit

import icefield as ice
from icefield._core import Storage, TableMetadata, TableState
from icefield.view import ViewVersion
from icefield.view.metadata import changed, check, created, from_bytes
from worlds.servers.protocol import problems

#: An answer: its status, its body (an object is sent as JSON), and headers.
Answer = tuple[int, object, dict[str, str]]


class Asked(NamedTuple):
    """A request that the server got."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any

    @property
    def names(self) -> list[str]:
        """The parts of the path."""
        return [unquote(part) for part in self.path.strip("/").split("/")]


class Breaks(Exception):
    """Close the connection instead of an answer."""


class After(NamedTuple):
    """Carry the request out, and answer this."""

    answer: Answer | Breaks


def error(status: int, kind: str, message: str = "no") -> Answer:
    return status, {"error": {"message": message, "type": kind, "code": status}}, {}


class Server:
    """What the server has, and what it is told to answer."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.namespaces: dict[tuple[str, ...], dict[str, str]] = {}
        self.tables: dict[tuple[tuple[str, ...], str], tuple[str, TableMetadata]] = {}
        self.views: dict[tuple[tuple[str, ...], str], tuple[str, Any]] = {}
        #: The answer to ``/v1/config``.
        self.config: dict[str, Any] = {"defaults": {}, "overrides": {}}
        #: Each request, in order.
        self.asked: list[Asked] = []
        #: What is answered, or raised, instead of what the server would: by a function of the request; None for that.
        self.instead: list[Callable[[Asked], Answer | None]] = []
        #: What goes along with each table; and with the answer to a commit, where the protocol has nothing.
        self.with_table: dict[str, Any] = {}
        self.with_commit: dict[str, Any] = {}
        #: The most names in a page; 0 for all.
        self.page = 0
        self.lock = threading.Lock()
        self.uri = ""

    def script(self, *answers: Answer | Exception | After | None, method: str = "", ends: str = "") -> None:
        """Answer the next requests of a method whose paths end so; None answers as usual."""
        left = list(answers)

        def answer(asked: Asked) -> Answer | None:
            if not left or not asked.method.startswith(method) or not asked.path.endswith(ends):
                return None
            # Reports come when they come.
            if asked.path.endswith("/metrics") and not ends:
                return None
            now = left.pop(0)
            if isinstance(now, After):
                self.usual(asked)
                now = now.answer
            if isinstance(now, Exception):
                raise now
            return now

        self.instead.insert(0, answer)

    def of(self, method: str, ends: str = "") -> list[Asked]:
        """The requests of a method whose paths end so."""
        return [one for one in self.asked if one.method == method and one.path.endswith(ends)]

    def answer(self, asked: Asked) -> Answer:
        with self.lock:
            self.asked.append(asked)
        for instead in self.instead:
            if (found := instead(asked)) is not None:
                return found
        return self.usual(asked)

    def usual(self, asked: Asked) -> Answer:
        with self.lock:
            if asked.names[1:] == ["config"]:
                return 200, self.config, {}
            parts = asked.names[1:]
            if (prefix := self.config.get("overrides", {}).get("prefix")) is not None:
                assert parts[0] == prefix
                parts = parts[1:]
            return self._routed(asked, parts)

    def _routed(self, asked: Asked, parts: list[str]) -> Answer:
        kind, method = parts[0], asked.method
        if kind in ("tables", "views"):
            return self._rename(asked, self.tables if kind == "tables" else self.views, f"NoSuch{kind[:-1].title()}")
        if kind == "transactions":
            return self._several(asked)
        if len(parts) == 1:
            return self._all_namespaces(asked) if method == "GET" else self._create_namespace(asked)
        levels = tuple(parts[1].split("\x1f"))
        if levels not in self.namespaces:
            return error(404, "NoSuchNamespaceException")
        if len(parts) == 2:
            return self._namespace(asked, levels)
        if parts[2] in ("properties", "register"):
            return (self._properties if parts[2] == "properties" else self._register)(asked, levels)
        if parts[2] in ("views", "register-view"):
            return self._views(asked, levels, parts[3] if len(parts) > 3 else None)
        if len(parts) == 3:
            return self._list(asked, levels) if method == "GET" else self._create(asked, levels)
        if parts[4:] == ["metrics"]:
            return 204, None, {}
        return self._table(asked, levels, parts[3])

    def _paged(self, field: str, found: list[Any], asked: Asked) -> Answer:
        start = int(asked.query.get("pageToken") or 0)
        end = start + (self.page or len(found))
        answer: dict[str, Any] = {field: found[start:end]}
        if end < len(found):
            answer["next-page-token"] = str(end)
        return 200, answer, {}

    def _all_namespaces(self, asked: Asked) -> Answer:
        above = tuple(asked.query["parent"].split("\x1f")) if asked.query.get("parent") else ()
        if above and above not in self.namespaces:
            return error(404, "NoSuchNamespaceException")
        depth = len(above) + 1
        found = [list(name) for name in self.namespaces if len(name) == depth and name[:-1] == above]
        return self._paged("namespaces", found, asked)

    def _create_namespace(self, asked: Asked) -> Answer:
        levels = tuple(asked.body["namespace"])
        if levels in self.namespaces:
            return error(409, "AlreadyExistsException")
        self.namespaces[levels] = asked.body["properties"]
        return 200, {"namespace": list(levels), "properties": asked.body["properties"]}, {}

    def _namespace(self, asked: Asked, levels: tuple[str, ...]) -> Answer:
        if asked.method == "DELETE":
            namespaces = [*self.namespaces, *(namespace for namespace, _ in [*self.tables, *self.views])]
            beneath = [name for name in namespaces if name[: len(levels)] == levels]
            if len(beneath) > 1:
                return error(409, "NamespaceNotEmptyException")
            del self.namespaces[levels]
            return 204, None, {}
        return 200, {"namespace": list(levels), "properties": self.namespaces[levels]}, {}

    def _properties(self, asked: Asked, levels: tuple[str, ...]) -> Answer:
        known = self.namespaces[levels]
        removed = [name for name in asked.body["removals"] if known.pop(name, None) is not None]
        known.update(asked.body["updates"])
        missing = [name for name in asked.body["removals"] if name not in removed]
        return 200, {"removed": removed, "updated": list(asked.body["updates"]), "missing": missing}, {}

    def _list(self, asked: Asked, levels: tuple[str, ...]) -> Answer:
        found = [{"namespace": list(levels), "name": name} for namespace, name in self.tables if namespace == levels]
        return self._paged("identifiers", found, asked)

    def _create(self, asked: Asked, levels: tuple[str, ...]) -> Answer:
        body = asked.body
        if (levels, body["name"]) in self.tables or (levels, body["name"]) in self.views:
            return error(409, "AlreadyExistsException")
        made = TableState.stage(
            Storage(),
            ice.Schema.from_json(json.dumps(body["schema"])),
            body.get("location") or f"file://{self.folder}/{'.'.join(levels)}/{body['name']}",
            body["partition-spec"],
            body["write-order"],
            body["properties"],
        ).metadata
        if body["stage-create"]:
            return 200, {"metadata": json.loads(made.to_json()), **self.with_table}, {}
        return self._loaded(self._stored((levels, body["name"]), made))

    def _register(self, asked: Asked, levels: tuple[str, ...]) -> Answer:
        name, where = (levels, asked.body["name"]), asked.body["metadata-location"]
        if name in self.tables and not asked.body.get("overwrite"):
            return error(409, "AlreadyExistsException")
        text = Path(where.removeprefix("file://")).read_bytes()
        self.tables[name] = where, TableMetadata.from_json(text)
        return self._loaded(self.tables[name])

    def _stored(self, name: tuple[tuple[str, ...], str], metadata: TableMetadata) -> tuple[str, TableMetadata]:
        where = f"{metadata.location}/metadata/{len(self.asked):05}-{time.time_ns()}.metadata.json"
        if where.startswith("file://"):
            path = Path(where.removeprefix("file://"))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(metadata.to_json())
        self.tables[name] = where, metadata
        return self.tables[name]

    def _loaded(self, found: tuple[str, TableMetadata], more: dict[str, Any] | None = None) -> Answer:
        where, metadata = found
        body = {"metadata-location": where, "metadata": json.loads(metadata.to_json())}
        body.update(self.with_table if more is None else more)
        return 200, body, {"ETag": _etag(where)}

    def _table(self, asked: Asked, levels: tuple[str, ...], name: str) -> Answer:
        known = self.tables.get((levels, name))
        creates = asked.method == "POST" and {"type": "assert-create"} in asked.body["requirements"]
        if known is None and not creates:
            return error(404, "NoSuchTableException")
        if asked.method == "HEAD":
            return 204, None, {}
        if asked.method == "DELETE":
            del self.tables[levels, name]
            return 204, None, {}
        if asked.method == "POST":
            if isinstance(made := self._applied(asked.body, (levels, name)), tuple):
                return made
            return self._loaded(self._stored((levels, name), made), self.with_commit)
        assert known is not None
        if asked.headers.get("if-none-match") == _etag(known[0]):
            return 304, None, {}
        found = self._loaded(known)
        if asked.query.get("snapshots") == "refs":
            metadata: Any = found[1]["metadata"]  # type: ignore[index]
            named = {ref["snapshot-id"] for ref in metadata.get("refs", {}).values()}
            metadata["snapshots"] = [one for one in metadata.get("snapshots", []) if one["snapshot-id"] in named]
            metadata["snapshot-log"] = [one for one in metadata.get("snapshot-log", []) if one["snapshot-id"] in named]
        return found

    def _applied(self, body: Any, name: tuple[tuple[str, ...], str]) -> TableMetadata | Answer:
        known = self.tables.get(name)
        if body["requirements"] == [{"type": "assert-create"}]:
            if known is not None:
                return error(409, "AlreadyExistsException")
            return TableMetadata.create(body["updates"])
        assert known is not None
        try:
            known[1].check(json.dumps(body["requirements"]))
        except ice.CommitFailedException as unmet:
            return error(409, "CommitFailedException", str(unmet))
        return known[1].apply(json.dumps(body["updates"]), previous_file=known[0])

    def _several(self, asked: Asked) -> Answer:
        made = []
        for change in asked.body["table-changes"]:
            name = (tuple(change["identifier"]["namespace"]), change["identifier"]["name"])
            applied = self._applied(change, name)
            if isinstance(applied, tuple):
                return applied
            made.append((name, applied))
        for name, metadata in made:
            self._stored(name, metadata)
        return 204, None, {}

    def _views(self, asked: Asked, levels: tuple[str, ...], name: str | None) -> Answer:
        if name is None and asked.method == "GET":
            found = [{"namespace": list(one[0]), "name": one[1]} for one in self.views if one[0] == levels]
            return self._paged("identifiers", found, asked)
        if name is None:
            key = (levels, asked.body["name"])
            if key in self.views or key in self.tables:
                return error(409, "AlreadyExistsException")
            if where := asked.body.get("metadata-location"):
                document = from_bytes(Storage().read(where), where)
            else:
                version = ViewVersion.from_json(asked.body["view-version"])
                location = asked.body.get("location") or f"file://{self.folder}/{key[1]}"
                document = created(location, asked.body["schema"], version, asked.body["properties"])
            self.views[key] = (where or f"{document['location']}/metadata/v1.metadata.json", document)
        else:
            key = (levels, name)
            if key not in self.views:
                return error(404, "NoSuchViewException")
        where, document = self.views[key]
        if asked.method == "HEAD":
            return 204, None, {}
        if asked.method == "DELETE":
            del self.views[key]
            return 204, None, {}
        if asked.method == "POST" and name is not None:
            try:
                check(document, asked.body["requirements"])
            except ice.CommitFailedException as unmet:
                return error(409, "CommitFailedException", str(unmet))
            self.views[key] = where, changed(document, asked.body["updates"])
        return 200, {"metadata-location": where, "metadata": self.views[key][1]}, {}

    def _rename(self, asked: Asked, known: dict[Any, Any], missing: str) -> Answer:
        source, to = (
            (tuple(asked.body[end]["namespace"]), asked.body[end]["name"]) for end in ("source", "destination")
        )
        if source not in known:
            return error(404, f"{missing}Exception")
        if to[0] not in self.namespaces:
            return error(404, "NoSuchNamespaceException")
        if to in self.tables or to in self.views:
            return error(409, "AlreadyExistsException")
        known[to] = known.pop(source)
        return 204, None, {}


def _etag(where: str) -> str:
    """Return the tag of a version of a table; headers have no letters of other alphabets."""
    return f'"{quote(where, safe="/:")}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    #: Otherwise the body waits for the acknowledgement of the headers.
    disable_nagle_algorithm = True
    server: _Http

    def _handle(self) -> None:
        url = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        is_json = self.headers.get("content-type") == "application/json"
        asked = Asked(
            self.command,
            url.path,
            {name: values[0] for name, values in parse_qs(url.query, keep_blank_values=True).items()},
            {name.lower(): value for name, value in self.headers.items()},
            json.loads(body) if is_json else body.decode(),
        )
        try:
            status, answer, headers = self.server.told.answer(asked)
        except Breaks:
            self.close_connection = True
            return
        content = answer if isinstance(answer, bytes) else b"" if answer is None else json.dumps(answer).encode()
        if len(content) > 1000 and "content-encoding" not in headers:
            content, headers = gzip.compress(content, 1), {**headers, "content-encoding": "gzip"}
        self.send_response(status)
        for name, value in {"content-length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_HEAD = _handle  # noqa: N815

    def log_message(self, *_: object) -> None:
        pass


class _Http(ThreadingHTTPServer):
    daemon_threads = True
    told: Server


@contextmanager
def served(folder: Path) -> Iterator[Server]:
    """Run a server whose tables are in a folder; in the end, all that it was asked must be as the protocol has it."""
    made = Server(folder)
    http = _Http(("127.0.0.1", 0), _Handler)
    http.told = made
    made.uri = f"http://127.0.0.1:{http.server_address[1]}"
    thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield made
    finally:
        http.shutdown()
        http.server_close()
    found = {problem for one in made.asked for problem in problems(*one)}
    assert not found, "\n".join(sorted(found))
