"""The routes of the protocol, and which of them a server has."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple
from urllib.parse import quote, unquote

from icefield.errors import UnsupportedFeatureError

__all__ = ["Endpoints", "Paths", "Route"]


class Route(NamedTuple):
    """A method and a path, as the protocol writes them."""

    method: str
    path: str

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


_NAMESPACE = "/v1/{prefix}/namespaces/{namespace}"
_TABLE = f"{_NAMESPACE}/tables/{{table}}"
_VIEW = f"{_NAMESPACE}/views/{{view}}"

CONFIG = Route("GET", "/v1/config")
LIST_NAMESPACES = Route("GET", "/v1/{prefix}/namespaces")
CREATE_NAMESPACE = Route("POST", "/v1/{prefix}/namespaces")
LOAD_NAMESPACE = Route("GET", _NAMESPACE)
NAMESPACE_EXISTS = Route("HEAD", _NAMESPACE)
DROP_NAMESPACE = Route("DELETE", _NAMESPACE)
UPDATE_NAMESPACE = Route("POST", f"{_NAMESPACE}/properties")
LIST_TABLES = Route("GET", f"{_NAMESPACE}/tables")
CREATE_TABLE = Route("POST", f"{_NAMESPACE}/tables")
REGISTER_TABLE = Route("POST", f"{_NAMESPACE}/register")
LOAD_TABLE = Route("GET", _TABLE)
TABLE_EXISTS = Route("HEAD", _TABLE)
COMMIT_TABLE = Route("POST", _TABLE)
DROP_TABLE = Route("DELETE", _TABLE)
LOAD_CREDENTIALS = Route("GET", f"{_TABLE}/credentials")
SIGN_REQUEST = Route("POST", f"{_TABLE}/sign")
RENAME_TABLE = Route("POST", "/v1/{prefix}/tables/rename")
COMMIT_TRANSACTION = Route("POST", "/v1/{prefix}/transactions/commit")
REPORT_METRICS = Route("POST", f"{_TABLE}/metrics")
PLAN_SCAN = Route("POST", f"{_TABLE}/plan")
FETCH_PLAN = Route("GET", f"{_TABLE}/plan/{{plan-id}}")
CANCEL_PLAN = Route("DELETE", f"{_TABLE}/plan/{{plan-id}}")
FETCH_TASKS = Route("POST", f"{_TABLE}/tasks")
LIST_VIEWS = Route("GET", f"{_NAMESPACE}/views")
CREATE_VIEW = Route("POST", f"{_NAMESPACE}/views")
LOAD_VIEW = Route("GET", _VIEW)
VIEW_EXISTS = Route("HEAD", _VIEW)
REPLACE_VIEW = Route("POST", _VIEW)
DROP_VIEW = Route("DELETE", _VIEW)
RENAME_VIEW = Route("POST", "/v1/{prefix}/views/rename")
REGISTER_VIEW = Route("POST", f"{_NAMESPACE}/register-view")

#: What a server has that does not list its routes, by the protocol.
_OF_OLD = (
    LIST_NAMESPACES,
    CREATE_NAMESPACE,
    LOAD_NAMESPACE,
    DROP_NAMESPACE,
    UPDATE_NAMESPACE,
    LIST_TABLES,
    CREATE_TABLE,
    LOAD_TABLE,
    COMMIT_TABLE,
    DROP_TABLE,
    REGISTER_TABLE,
    RENAME_TABLE,
    COMMIT_TRANSACTION,
    REPORT_METRICS,
)
_OF_OLD_WITH_VIEWS = (LIST_VIEWS, CREATE_VIEW, LOAD_VIEW, REPLACE_VIEW, DROP_VIEW, RENAME_VIEW)


class Endpoints:
    """The routes that a server has.

    Parameters
    ----------
    listed
        The routes that the server lists, as ``METHOD /path``; an old server lists none.
    views
        Whether a server that lists none has views.

    """

    def __init__(self, listed: Iterable[str], *, views: bool = False) -> None:
        of_old = (*_OF_OLD, *(_OF_OLD_WITH_VIEWS if views else ()))
        self._offered = {_normal(text) for text in listed} or {_normal(str(route)) for route in of_old}

    def offer(self, route: Route) -> bool:
        """Return whether the server has a route."""
        return _normal(str(route)) in self._offered

    def require(self, route: Route, what: str) -> None:
        """Refuse what the server cannot do.

        Raises
        ------
        UnsupportedFeatureError
            If the server does not have the route.

        """
        if not self.offer(route):
            raise UnsupportedFeatureError(f"the server does not support this: {what} ({route})")


def _normal(text: str) -> str:
    """Return a route without the names of its parameters, which servers write in several ways."""
    method, _, path = text.strip().partition(" ")
    return f"{method.upper()} /{re.sub(r'{[^}]*}', '{}', path).strip(' /')}"


class Paths:
    """Where tables and namespaces are on a server.

    Parameters
    ----------
    base
        The URL of the catalog.
    prefix
        What the server wants between ``v1`` and the rest; maybe nothing.
    separator
        What separates the levels of a namespace, percent-encoded.

    """

    def __init__(self, base: str, prefix: str = "", separator: str = "%1F") -> None:
        #: The URL of the catalog.
        self.base = base.rstrip("/")
        # It may be encoded already.
        self._prefix = quote(prefix.strip("/"), safe="/%:@!$&'()*+,;=~")
        self._separator = separator

    def of(self, route: Route, names: Mapping[str, str | tuple[str, ...]]) -> str:
        """Return the URL of a route with these names in it."""
        path = route.path.replace("/{prefix}", f"/{self._prefix}" if self._prefix else "")
        for name, value in names.items():
            parts = (value,) if isinstance(value, str) else value
            # Encoded as the server tells it, the separator is not taken for the same sign in a level.
            path = path.replace(f"{{{name}}}", self._separator.join(map(_encoded, parts)))
        return self.base + path

    def joined(self, namespace: tuple[str, ...]) -> str:
        """Return the levels of a namespace as one text, which is not encoded."""
        return unquote(self._separator).join(namespace)


def _encoded(part: str) -> str:
    # Two dots would be resolved as the folder above.
    return quote(part, safe="") if part.strip(".") else part.replace(".", "%2E")
