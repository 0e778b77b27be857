"""What the REST protocol of Iceberg allows to send, by its OpenAPI document: routes, parameters, bodies field by field.

``tests/data/rest/open-api.json`` is ``open-api/rest-catalog-open-api.yaml`` of Apache Iceberg of August 2026,
without what is for readers only.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs

DOCUMENT = Path(__file__).parents[2] / "data" / "rest" / "open-api.json"
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


class Operation(NamedTuple):
    """A method of a path."""

    method: str
    path: str
    document: Mapping[str, Any]
    parameters: list[Mapping[str, Any]]

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@cache
def document() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DOCUMENT.read_text())
    return found


@cache
def operations() -> list[tuple[re.Pattern[str], Operation]]:
    """Each operation, with what matches the end of the path of its requests."""
    made = []
    for path, item in document()["paths"].items():
        pattern = re.escape(path).replace(re.escape("/{prefix}"), "(?P<prefix>/.+?)??")
        pattern = re.sub(r"\\\{[^/]*?\\\}", "[^/]+", pattern)
        for method, one in item.items():
            if method != "parameters":
                parameters = [resolved(p) for p in [*item.get("parameters", []), *one.get("parameters", [])]]
                made.append((re.compile(f"(/.*?)?{pattern}"), Operation(method.upper(), path, one, parameters)))
    return made


def resolved(node: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in node:
        found: Any = document()
        for part in node["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        node = found
    return node


def operation(method: str, path: str) -> Operation | None:
    """The operation of a request; that with the shortest prefix, where several match."""
    found = [
        (len(matched.groupdict().get("prefix") or ""), one.path.count("{"), one)
        for pattern, one in operations()
        if one.method == method and (matched := pattern.fullmatch(path))
    ]
    return min(found, default=(0, 0, None), key=lambda one: one[:2])[2]


def problems(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: Any) -> list[str]:
    """What of a request the protocol does not allow."""
    one = operation(method, path)
    if one is None and "/v1/" not in path:
        return []  # of another server, which gives tokens
    if one is None:
        return [f"{method} {path}: no route of the protocol"]
    found = list(_of_parameters(one, query, headers))
    content = resolved(one.document.get("requestBody", {})).get("content", {})
    if not content:
        found += ["a body"] if body else []
    elif body in ("", None):
        found += ["no body"]
    elif isinstance(body, str):
        form = content.get("application/x-www-form-urlencoded")
        given = {name: values[0] for name, values in parse_qs(body, keep_blank_values=True).items()}
        wrong = ["a form"] if form is None else of_schema(given, form["schema"])
        # They may be in a header; and a client may have a secret alone.
        found += [one for one in wrong if one not in ("/client_id: missing", "/client_secret: missing")]
    else:
        found += of_schema(body, content["application/json"]["schema"])
    return [f"{one}: {problem}" for problem in found]


def _of_parameters(one: Operation, query: Mapping[str, str], headers: Mapping[str, str]) -> Iterator[str]:
    known = {parameter["name"]: parameter for parameter in one.parameters if parameter["in"] == "query"}
    for name, value in query.items():
        if name not in known:
            yield f"query parameter {name}"
        elif choices := resolved(known[name].get("schema", {})).get("enum"):
            if value not in choices:
                yield f"query parameter {name}={value}: not one of {choices}"
        elif resolved(known[name].get("schema", {})).get("type") == "boolean" and value not in {"true", "false"}:
            yield f"query parameter {name}={value}: not true or false"
    for parameter in one.parameters:
        if parameter["in"] == "query" and parameter.get("required") and parameter["name"] not in query:
            yield f"query parameter {parameter['name']} is missing"
    if "idempotency-key" in headers:
        names = [parameter["name"].lower() for parameter in one.parameters if parameter["in"] == "header"]
        if "idempotency-key" not in names:
            yield "header Idempotency-Key"


def of_schema(value: Any, schema: Mapping[str, Any], place: str = "") -> list[str]:
    """What of a value a schema does not allow: missing and unknown fields, types, choices."""
    fields = _fields(schema)
    unknown = [] if fields is None or not isinstance(value, dict) else sorted(value.keys() - fields)
    return [*_wrong(value, schema, place), *(f"{place}/{name}: unknown" for name in unknown)]


def _fields(schema: Mapping[str, Any]) -> set[str] | None:
    """The names of all fields that a schema has; None where any are allowed."""
    schema = resolved(schema)
    found: set[str] = set(schema.get("properties", {}))
    parts = [*schema.get("allOf", []), *schema.get("oneOf", []), *schema.get("anyOf", [])]
    parts += [{"$ref": where} for where in schema.get("discriminator", {}).get("mapping", {}).values()]
    if schema.get("additionalProperties") or not (found or parts):
        return None
    for part in parts:
        if (own := _fields_of_part(part)) is None:
            return None
        found |= own
    return found


def _fields_of_part(part: Mapping[str, Any]) -> set[str] | None:
    plain = resolved(part)
    # A base with a discriminator lists those that stand on it.
    without = {name: value for name, value in plain.items() if name != "discriminator"}
    if set(without) <= {"type", "required"}:
        return set()
    return _fields(without)


def _wrong(value: Any, schema: Mapping[str, Any], place: str) -> list[str]:
    schema = resolved(schema)
    if value is None:
        return [] if schema.get("nullable") else [f"{place or '/'}: null"]
    kind = schema.get("type")
    if kind and (not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean")):
        return [f"{place or '/'}: {type(value).__name__}, expected {kind}"]
    choices = schema.get("enum", [schema["const"]] if "const" in schema else None)
    found = [f"{place}: {value!r}, expected one of {choices}"] if choices and value not in choices else []
    if isinstance(value, dict):
        found += _wrong_object(value, schema, place)
    if isinstance(value, list) and "items" in schema:
        for at, one in enumerate(value):
            found += of_schema(one, schema["items"], f"{place}/{at}")
    return found + _wrong_parts(value, schema, place)


def _wrong_parts(value: Any, schema: Mapping[str, Any], place: str) -> list[str]:
    found = []
    for part in schema.get("allOf", []):
        # What it stands on chooses among those that stand on it.
        found += _wrong(value, {k: v for k, v in resolved(part).items() if k != "discriminator"}, place)
    mapping = schema.get("discriminator", {}).get("mapping")
    if mapping and isinstance(value, dict):
        chosen = value.get(schema["discriminator"]["propertyName"])
        return found + (
            _wrong(value, {"$ref": mapping[chosen]}, place) if chosen in mapping else [f"{place}: {chosen!r}"]
        )
    for choice in ("oneOf", "anyOf"):
        # Fields that none of them has are found before.
        tried = [_wrong(value, one, place) for one in schema.get(choice, [])]
        if tried and all(tried):
            found += min(tried, key=len)
    return found


def _wrong_object(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> list[str]:
    found = [f"{place}/{name}: missing" for name in schema.get("required", []) if name not in value]
    properties = schema.get("properties", {})
    more = schema.get("additionalProperties")
    for name, one in value.items():
        if name in properties:
            found += of_schema(one, properties[name], f"{place}/{name}")
        elif isinstance(more, dict):
            found += of_schema(one, more, f"{place}/{name}")
    return found
