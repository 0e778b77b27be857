"""Requests that a REST catalog signs, instead of giving keys: which, where, and what its signer is asked."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from test_rest_credentials import KEYS, LOCATION, ROWS

import icefield as ice
from icefield.catalog.rest import RestCatalog
from icefield.catalog.rest.storage.credentials import vended
from icefield.catalog.rest.storage.signing import signing_of, url_of
from worlds.servers.rest import Answer, Server, error

SIGNS = {"s3.remote-signing-enabled": "true"}
SIGNER = {"s3.signer": "S3V4RestSigner"}


@pytest.mark.parametrize(
    ("answer", "location", "own", "signs"),
    [
        ({"config": SIGNS}, LOCATION, {}, True),
        ({}, LOCATION, SIGNS, True),
        ({}, LOCATION, {}, False),
        ({"config": {"s3.remote-signing-enabled": "false"}}, LOCATION, SIGNS, False),
        # As PyIceberg calls it.
        ({"config": SIGNER}, LOCATION, {}, True),
        ({}, LOCATION, SIGNER, True),
        ({"config": {"s3.remote-signing-enabled": "false"}}, LOCATION, SIGNER, False),
        ({}, LOCATION, {"s3.signer": "Other"}, False),
        ({"config": SIGNS}, "gs://b/t", {}, False),
        # With keys each request is one, and not two.
        ({"config": SIGNS}, LOCATION, {"s3.access-key-id": "mine"}, False),
        ({"config": SIGNS, **KEYS}, LOCATION, {}, False),
    ],
)
def test_requests_are_signed_where_there_are_no_keys(
    answer: dict[str, Any], location: str, own: dict[str, str], signs: bool
) -> None:
    found = vended(answer, location, own)
    assert (found.signing is not None) == signs == ("s3.remote-signing-enabled" in found.properties)


@pytest.mark.parametrize(
    ("config", "own", "route", "expected"),
    [
        ({}, {}, None, "http://c/api/v1/aws/s3/sign"),
        ({}, {}, "http://c/api/v1/p/namespaces/n/tables/t/sign", "http://c/api/v1/p/namespaces/n/tables/t/sign"),
        ({"s3.signer.uri": "http://s/"}, {}, "http://c/r", "http://s/v1/aws/s3/sign"),
        ({"s3.signer.uri": "http://s", "s3.signer.endpoint": "/e"}, {}, None, "http://s/e"),
        ({"signer.uri": "http://new", "s3.signer.uri": "http://old", "signer.endpoint": "e"}, {}, None, "http://new/e"),
        ({"s3.signer.endpoint": "https://s/e"}, {}, "http://c/r", "https://s/e"),
        ({}, {"s3.signer.uri": "http://mine"}, None, "http://mine/v1/aws/s3/sign"),
    ],
)
def test_where_requests_are_signed(config: dict[str, str], own: dict[str, str], route: str, expected: str) -> None:
    assert url_of(signing_of({}, config, own), "http://c/api", route) == expected


def test_what_a_signer_is_asked(server: Server) -> None:
    server.with_table = {
        "config": {**SIGNS, "s3.signer.endpoint": "sign/here", "token": "of-the-table"},
        "remote-signing-config": {"headers": {"x-extra": ["a", "b"]}, "properties": {"id": "7"}},
    }
    location = {"location": "s3://bucket/t"}
    table = RestCatalog("c", uri=server.uri, token="of-the-catalog").create_table("n.t", ROWS.schema, **location)
    signed = {"uri": "http://s3/k?signed", "headers": {"Authorization": ["AWS4"], "x-amz-date": ["now"]}}
    answers: list[Answer] = [
        (200, signed, {"cache-control": control}) for control in ("private", "no-cache", "private")
    ]
    server.script(*answers, error(403, "ForbiddenException", "not yours"), ends="/sign/here")
    for renewal in (table.storage.renewal, pickle.loads(pickle.dumps(table.storage)).renewal):
        found = renewal.sign(
            "POST", "eu-west-1", "http://s3/k?delete", [("a", "1"), ("a", "2"), ("b", "3")], "<Delete/>"
        )
        assert found[0] == "http://s3/k?signed"
        assert found[1] == [("Authorization", "AWS4"), ("x-amz-date", "now")]
        assert found[2] == (renewal is table.storage.renewal)
        asked = server.asked[-1]
        assert asked.headers["authorization"] == "Bearer of-the-table"
        assert asked.headers["x-extra"] == "a, b"
        assert asked.body == {
            "method": "POST",
            "region": "eu-west-1",
            "uri": "http://s3/k?delete",
            "headers": {"a": ["1", "2"], "b": ["3"]},
            "properties": {"id": "7"},
            "body": "<Delete/>",
            "provider": "s3",
        }
    assert b"of-the-catalog" not in pickle.dumps(table.storage)
    renewal.sign("GET", "eu-west-1", "http://s3/k", [], None)
    assert {"body"} == set(asked.body) - set(server.asked[-1].body)
    with pytest.raises(ice.IcefieldError, match="not yours"):
        renewal.sign("GET", "eu-west-1", "http://s3/k", [], None)
    server.script((200, {"uri": "http://s3/k"}, {}), ends="/sign/here")
    with pytest.raises(ice.IcefieldError, match="no uri or no headers"):
        renewal.sign("GET", "eu-west-1", "http://s3/k", [], None)
