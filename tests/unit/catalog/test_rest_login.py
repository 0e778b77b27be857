"""The credentials of requests to a REST catalog, and that nobody sees them."""

from __future__ import annotations

import base64
import io
import json
import logging
import pickle
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timezone
from html import escape
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, quote

import pyarrow as pa
import pytest

import icefield as ice
from icefield import errors
from icefield._core import HIDDEN
from icefield.catalog.rest import RestCatalog
from icefield.catalog.rest.login.sigv4 import Keys, sign
from icefield.catalog.rest.protocol.messages import Request
from worlds.servers.rest import Answer, Asked, Breaks, Server, error, served


class Guard:
    """Gives tokens, and lets nobody in without one that is valid."""

    def __init__(self, server: Server) -> None:
        self.life: float | None = 3600
        self.valid: set[str] = set()
        self.forms: list[dict[str, str]] = []
        self.logins: list[Asked] = []
        self.lock = threading.Lock()
        server.instead.append(self)

    def __call__(self, asked: Asked) -> Answer | None:
        if asked.path.endswith("/tokens"):
            with self.lock:
                self.logins.append(asked)
                self.forms.append({name: values[0] for name, values in parse_qs(asked.body).items()})
                token = f"token{len(self.forms)}"
                self.valid.add(f"Bearer {token}")
            life = {} if self.life is None else {"expires_in": self.life}
            return 200, {"access_token": token, "token_type": "bearer", **life}, {}
        if asked.headers.get("authorization") not in self.valid:
            return error(401, "NotAuthorizedException", f"who is {asked.headers.get('authorization')}?")
        return None


@pytest.fixture
def guard(server: Server) -> Guard:
    return Guard(server)


def jwt(end: float) -> str:
    claims = base64.urlsafe_b64encode(json.dumps({"exp": end}).encode()).decode().rstrip("=")
    return f"e30.{claims}.sig"


@pytest.mark.parametrize(
    ("properties", "form", "header", "path"),
    [
        (
            {"credential": "me:hush:hush"},
            {"client_id": "me", "client_secret": "hush:hush", "scope": "catalog"},
            None,
            "/v1/oauth/tokens",
        ),
        ({"credential": "hush", "scope": "a b"}, {"client_secret": "hush", "scope": "a b"}, None, "/v1/oauth/tokens"),
        (
            {"credential": "me:hush", "audience": "all", "resource": "r", "oauth2-server-uri": "/auth/tokens"},
            {"client_id": "me", "client_secret": "hush", "scope": "catalog", "audience": "all", "resource": "r"},
            None,
            "/auth/tokens",
        ),
        (
            {"auth.type": "oauth2", "auth.oauth2.client_id": "me", "auth.oauth2.client_secret": "hush"},
            {"scope": "catalog"},
            "Basic bWU6aHVzaA==",
            "/v1/oauth/tokens",
        ),
    ],
)
def test_client_credentials(
    server: Server, guard: Guard, properties: dict[str, str], form: dict[str, str], header: str | None, path: str
) -> None:
    catalog = ice.load_catalog("c", uri=server.uri, **properties, **{"header.X-Mine": "1"})
    assert catalog.list_namespaces() == catalog.list_namespaces() == [("n",)]
    assert guard.forms == [{"grant_type": "client_credentials", **form}]
    [login] = guard.logins
    assert (login.path, login.headers.get("authorization")) == (path, header)
    assert "x-mine" not in login.headers, "headers for the catalog are not for other servers"


def test_a_token_is_renewed_before_it_expires_by_one_thread(
    server: Server, guard: Guard, monkeypatch: pytest.MonkeyPatch
) -> None:
    guard.life = 1000
    now = time.time()
    monkeypatch.setattr("icefield.catalog.rest.login.oauth.time", SimpleNamespace(time=lambda: now))
    catalog = ice.load_catalog("c", uri=server.uri, credential="me:hush")
    with ThreadPoolExecutor(8) as pool:
        for seconds, tokens in ((0, 1), (890, 1), (20, 2), (890, 2), (20, 3)):
            now += seconds
            asked = [pool.submit(catalog.list_namespaces) for _ in range(24)]
            assert [one.result() for one in asked] == [[("n",)]] * 24
            assert len(guard.forms) == tokens


@pytest.mark.parametrize("status", [401, 419])
def test_a_token_that_is_refused_is_replaced_once(server: Server, guard: Guard, status: int) -> None:
    catalog = ice.load_catalog("c", uri=server.uri, credential="me:hush")
    catalog.list_namespaces()
    assert isinstance(catalog, RestCatalog)
    assert catalog._client._http._auth.renew({"authorization": "Bearer older"})
    assert len(guard.forms) == 1, "another thread has replaced the token that was refused"
    guard.valid.clear()
    server.instead.insert(0, lambda asked: error(status, "") if "token1" in str(asked.headers) else None)
    assert catalog.list_namespaces() == [("n",)]
    assert len(guard.forms) == 2
    # Not again and again.
    server.instead.insert(0, lambda asked: error(status, "") if asked.method == "GET" else None)
    with pytest.raises(errors.UnauthorizedError):
        catalog.list_namespaces()
    assert len(guard.forms) == 3


def test_tokens_that_are_given(server: Server, guard: Guard) -> None:
    plain = ice.load_catalog("c", uri=server.uri, token="mine-and-secret")
    with pytest.raises(errors.UnauthorizedError, match=r"does not accept .* who is Bearer \*{8}\?"):
        plain.list_namespaces()
    guard.valid |= {"Bearer mine-and-secret", "Bearer mine"}
    assert plain.list_namespaces() == [("n",)]
    assert guard.forms == [], "only a token that expires is exchanged"
    # One that expires is exchanged for another, with itself.
    old = jwt(time.time() - 1)
    guard.valid.add(f"Bearer {old}")
    catalog = ice.load_catalog("c", uri=server.uri, token=old)
    assert catalog.list_namespaces() == [("n",)]
    [form] = guard.forms
    assert form["grant_type"] == "urn:ietf:params:oauth:grant-type:token-exchange"
    assert (form["subject_token"], form["subject_token_type"]) == (old, "urn:ietf:params:oauth:token-type:access_token")
    assert guard.logins[0].headers["authorization"] == f"Bearer {old}"
    assert server.asked[-1].headers["authorization"] == "Bearer token1"
    # A server without that gets the token as it is.
    for off in ({"token-exchange-enabled": "false"}, {"token-refresh-enabled": "false"}):
        assert ice.load_catalog("c", uri=server.uri, token=old, **off).list_namespaces() == [("n",)]
    server.script((404, None, {}), ends="/tokens")
    assert ice.load_catalog("c", uri=server.uri, token=old).list_namespaces() == [("n",)]
    assert len(guard.forms) == 1
    # The server may give a token with its configuration.
    server.config["overrides"] = {"token": "mine"}
    catalog = ice.load_catalog("c", uri=server.uri, token=jwt(time.time() + 9999), **{"token-refresh-enabled": "false"})
    guard.valid.add(f"Bearer {catalog.properties['token'].reveal()}")
    assert catalog.list_namespaces() == [("n",)]
    assert server.asked[-1].headers["authorization"] == "Bearer mine"


@pytest.mark.parametrize(
    "answer",
    [
        (401, {"error": "invalid_client", "error_description": "hush is wrong"}, {}),
        (400, {"error": "invalid_scope"}, {}),
        error(403, "X", "not hush"),
        (200, {"token": "x"}, {}),
        (200, {"access_token": "a\nb"}, {}),
        (200, b"<html>", {}),
        (404, None, {}),
    ],
)
def test_no_token(server: Server, answer: Answer) -> None:
    server.script(answer, ends="/tokens")
    with pytest.raises(errors.RESTError) as raised:
        ice.load_catalog("c", uri=server.uri, credential="me:hush").list_namespaces()
    assert "/v1/oauth/tokens" in str(raised.value)
    assert "hush" not in str(raised.value)


ODD = "p/d+s%22&<w>'x"
SECRETS: list[tuple[dict[str, str], str]] = [
    ({"header.X-Api-Key": ODD}, ODD),
    ({"header.Cookie": f"session={ODD}; user=me"}, f"session={ODD}"),
    ({"header.Authorization": f"Other {ODD}"}, ODD),
    ({"auth.type": "basic", "auth.basic.username": "me", "auth.basic.password": ODD}, ODD),
    ({"auth.type": "basic", "auth.basic.username": "me", "auth.basic.password": "hush"}, "hush"),
    ({"credential": f"me:{ODD}"}, ODD),
    ({"credential": ODD}, ODD),
    ({"auth.type": "oauth2", "auth.oauth2.client_id": "me", "auth.oauth2.client_secret": ODD}, ODD),
    ({"auth.type": "oauth2", "auth.oauth2.client_id": "me", "auth.oauth2.client_secret": "hush"}, "hush"),
    ({"token": ODD}, ODD),
    ({"s3.secret-access-key": ODD}, ODD),
]
FORMS: list[Callable[[str], bytes]] = [
    lambda secret: json.dumps({"error": {"message": f"not {secret}!"}}).encode(),
    lambda secret: json.dumps({"error": {"message": f"not {secret}!"}}).replace("/", "\\/").encode(),
    lambda secret: json.dumps({"error": {"message": "x" * 470 + f" client_secret={quote(secret, safe='')}"}}).encode(),
    lambda secret: f"<html>not {escape(secret)}".encode(),
    lambda secret: f"not {secret}".encode(),
]


@pytest.mark.parametrize(("properties", "secret"), SECRETS)
def test_errors_do_not_repeat_secrets(server: Server, properties: dict[str, str], secret: str) -> None:
    """Neither those of the catalog, nor those of the server that gives tokens."""
    asks = "credential" in properties or properties.get("auth.type") == "oauth2"
    for form in FORMS:
        for place in ("/tokens", "/namespaces") if asks else ("/namespaces",):
            if asks and place == "/namespaces":
                server.script((200, {"access_token": "token1"}, {}), ends="/tokens")
            server.script((400, form(secret), {}), ends=place)
            with pytest.raises(errors.RESTError) as raised:
                ice.load_catalog("c", uri=server.uri, **properties).list_namespaces()
            shown = str(raised.value)
            assert HIDDEN in shown
            # Nor their beginning, where a long text is cut.
            for text in (secret, quote(secret, safe=""), escape(secret)):
                assert text[:4] not in shown


def test_short_values_of_headers_are_words_like_others(server: Server) -> None:
    server.script(error(400, "x", "1 tenant"), ends="/namespaces")
    with pytest.raises(errors.RESTError, match="1 tenant"):
        ice.load_catalog("c", uri=server.uri, **{"header.X-Tenant": "tenant", "header.X-A": "1"}).list_namespaces()


def test_the_server_cannot_send_secrets_elsewhere(server: Server, guard: Guard, tmp_path: Path) -> None:
    with served(tmp_path) as thief:
        server.config["overrides"] = server.config["defaults"] = {
            "oauth2-server-uri": f"{thief.uri}/tokens",
            "auth.type": "none",
            "tls.verify": "false",
            "rest.client.proxy.hostname": "127.0.0.1",
            "io.allowed-locations": "file:///",
        }
        guard.life = 0.001
        catalog = ice.load_catalog("c", uri=server.uri, credential="me:hush")
        for _ in range(3):
            assert catalog.list_namespaces() == [("n",)]
        assert thief.asked == []


class Mine:
    """An authentication of one's own."""

    def __init__(self, word: str) -> None:
        self.word, self.renewed = word, 0

    def headers(self, request: Request) -> Mapping[str, str]:
        return {"authorization": f"Mine {self.word} {self.renewed}", "x-body": str(len(request.body))}

    def renew(self, refused: Mapping[str, str]) -> bool:
        self.renewed += 1
        return refused["authorization"] == f"Mine {self.word} {self.renewed - 1}"


class Theirs:
    """As PyIceberg has it."""

    def auth_header(self) -> str | None:
        return "Theirs"


class Neither:
    """Not an authentication."""


def test_a_class_of_ones_own(server: Server) -> None:
    own = {"auth.type": "custom", "auth.impl": f"{__name__}.Mine", "auth.custom.word": "x"}
    server.script(error(401, ""))
    assert ice.load_catalog("c", uri=server.uri, **own).list_namespaces() == [("n",)]
    assert [one.headers["authorization"] for one in server.asked] == ["Mine x 0", "Mine x 1", "Mine x 1"]
    theirs = {"auth.type": "custom", "auth.impl": f"{__name__}.Theirs"}
    ice.load_catalog("c", uri=server.uri, **theirs).list_namespaces()
    assert server.asked[-1].headers["authorization"] == "Theirs"
    refused: list[tuple[dict[str, str], str]] = [
        ({"auth.type": "custom"}, "auth.impl is missing"),
        ({**own, "auth.impl": f"{__name__}.Neither", "auth.custom.word": "x"}, "takes no arguments"),
        (
            {"auth.type": "custom", "auth.impl": f"{__name__}.Neither"},
            r"expected the methods headers\(\) and renew\(\)",
        ),
        ({"auth.type": "custom", "auth.impl": "nowhere.Class"}, "No module named"),
        ({"auth.type": "custom", "auth.impl": "Class"}, "full name of a class"),
        ({"auth.type": "kerberos"}, "expected none, basic, oauth2, sigv4, google, entra or custom"),
        ({"auth.type": "basic"}, "auth.basic.username is missing"),
        ({"auth.type": "oauth2"}, "requires the property 'credential'"),
    ]
    for properties, says in refused:
        with pytest.raises(errors.IcefieldError, match=says):
            ice.load_catalog("c", uri=server.uri, **properties)


@pytest.mark.parametrize("token", [None, "session/+="])
@pytest.mark.parametrize(
    ("method", "url", "body"),
    [
        ("GET", "https://glue.eu-west-1.amazonaws.com/iceberg/v1/config?warehouse=arn%3Aaws%3A1%3Ab%2Fx", b""),
        ("POST", "https://host:8443/v1/a%1Fb/tables/%C3%BC%20x", b'{"a": 1}'),
        ("DELETE", "http://host:80/", b""),
        ("GET", "http://host/v1/x?pageToken=&b=2&a=~%2A%20", b""),
    ],
)
def test_signatures_are_those_of_amazon(method: str, url: str, body: bytes, token: str | None) -> None:
    auth = pytest.importorskip("botocore.auth")
    from botocore.awsrequest import AWSRequest
    from botocore.credentials import Credentials

    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=timezone.utc)
    ours = sign(
        Request(method, url, {}, body),
        {"x-b": "2  3", "x-a": "1"},
        Keys("AKID", "hush", token),
        "eu-west-1",
        "glue",
        now,
    )
    theirs = AWSRequest(
        method, url, {"x-b": "2  3", "x-a": "1", "x-amz-content-sha256": ours["x-amz-content-sha256"]}, body
    )
    signer = auth.SigV4Auth(Credentials("AKID", "hush", token), "glue", "eu-west-1")
    theirs.context["timestamp"] = "20260102T030405Z"
    if token:
        theirs.headers["X-Amz-Security-Token"] = token
    theirs.headers["X-Amz-Date"] = "20260102T030405Z"
    text = signer.string_to_sign(theirs, signer.canonical_request(theirs))
    assert ours["authorization"].rpartition("Signature=")[2] == signer.signature(text, theirs)
    assert ours.get("x-amz-security-token") == token


def test_signed_requests(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"rest.access-key-id": "AKID", "rest.secret-access-key": "hush", "rest.signing-region": "r"}
    catalog = ice.load_catalog("c", uri=server.uri, token="mine", **keys, **{"rest.sigv4-enabled": "true"})
    catalog.list_namespaces()
    sent = server.asked[-1].headers
    assert sent["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKID/")
    assert "/r/execute-api/aws4_request, SignedHeaders=host;original-authorization;x-amz-" in sent["authorization"]
    assert sent["original-authorization"] == "Bearer mine"
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(errors.InvalidArgumentError, match=r"rest\.signing-region"):
        ice.load_catalog("c", uri=server.uri, **{"rest.sigv4-enabled": "true"})
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "ENVID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush")
    found = ice.load_catalog("c", uri=server.uri, **{"rest.auth.type": "sigv4", "client.region": "eu"})
    found.list_namespaces()
    assert "Credential=ENVID/" in server.asked[-1].headers["authorization"]


def test_nobody_sees_the_secrets(server: Server, guard: Guard, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secrets = {"credential": "me:HUSH1", "header.X-Api-Key": "HUSH2", "s3.secret-access-key": "HUSH3"}
    catalog = ice.load_catalog("c", uri=server.uri, **secrets)
    table = catalog.create_table("n.t", ice.Schema.from_json('{"type":"struct","schema-id":0,"fields":[]}'))
    seen = io.StringIO()
    seen.write(f"{catalog!r} {catalog} {catalog.properties} {catalog._repr_html_()} {table!r} {catalog.storage!r}")
    server.script(*[(500, {"error": {"message": "x"}}, {})] * 2)
    for do in (catalog.list_namespaces, table.refresh):
        try:
            do()
        except errors.IcefieldError:
            seen.write(traceback.format_exc())
    seen.write(caplog.text)
    assert not [word for word in ("HUSH", "token1", "Bearer") if word in seen.getvalue()]
    # Executors get the storage, without the credentials of the catalog.
    assert b"HUSH1" not in pickle.dumps(catalog.storage)
    copy = pickle.loads(pickle.dumps(catalog))
    assert copy.list_namespaces() == [("n",)]


def test_a_commit_without_a_token_is_certainly_not_made(server: Server, guard: Guard) -> None:
    table = RestCatalog("c", uri=server.uri, credential="id:secret").create_table("n.t", pa.schema({"id": pa.int64()}))
    table.append(pa.table({"id": [1]}))
    guard.valid.clear()
    server.script(*[error(400, "invalid_client", "no more")] * 9, ends="/tokens")
    files = sorted(server.folder.rglob("*.parquet"))
    with pytest.raises(errors.OAuthError, match="no token was given"):
        table.append(pa.table({"id": [2]}))
    assert sorted(server.folder.rglob("*.parquet")) == files
    # So it is where the server of tokens breaks the connection, which says nothing about the commit.
    server.instead.pop(0)
    server.script(*[Breaks()] * 20, ends="/tokens")
    with pytest.raises(errors.IcefieldError) as raised:
        RestCatalog("c", uri=server.uri, credential="id:secret", **{"rest.client.max-retries": "0"}).commit_table(
            "n.t", [], [{"action": "set-properties", "updates": {"k": "v"}}]
        )
    assert not isinstance(raised.value, errors.CommitStateUnknownException)


class FakeGoogle:
    """The modules of google-auth that are used: a login whose tokens are numbered."""

    def __init__(self) -> None:
        self.token, self.valid, self.asked = "", False, []
        self.__path__: list[str] = []
        self.GoogleAuthError = type("GoogleAuthError", (Exception,), {})
        self.Request = object

    def load_credentials_from_file(self, path: str, scopes: list[str]) -> tuple[FakeGoogle, str]:
        self.asked.append((path, scopes))
        return self, "project"

    def default(self, scopes: list[str]) -> tuple[FakeGoogle, str]:
        return self.load_credentials_from_file("", scopes)

    def refresh(self, request: object) -> None:
        assert isinstance(request, object)
        number = int(self.token.removeprefix("google")) + 1 if self.token else 1
        if number > 3:
            raise self.GoogleAuthError("the account is locked")
        self.token, self.valid = f"google{number}", True


class FakeEntra:
    """The module of azure-identity that is used."""

    def __init__(self) -> None:
        self.count, self.asked, self.life = 0, [], 3600.0
        self.__path__: list[str] = []

    def DefaultAzureCredential(self, **arguments: str) -> FakeEntra:  # noqa: N802
        self.asked.append(arguments)
        return self

    def get_token(self, *scopes: str) -> SimpleNamespace:
        self.asked.append(scopes)
        self.count += 1
        return SimpleNamespace(token=f"entra{self.count}", expires_on=time.time() + self.life)


@pytest.mark.parametrize(
    ("properties", "asked"),
    [
        ({"auth": {"type": "google"}}, ("", ["https://www.googleapis.com/auth/cloud-platform"])),
        (
            {"auth": {"type": "google", "google": {"credentials_path": "key.json", "scopes": ["a", "b"]}}},
            ("key.json", ["a", "b"]),
        ),
        (
            {"rest.auth.type": "google", "gcp.auth.credentials-path": "key.json", "gcp.auth.scopes": "a,b"},
            ("key.json", ["a", "b"]),
        ),
    ],
)
def test_tokens_of_google(
    server: Server, guard: Guard, monkeypatch: pytest.MonkeyPatch, properties: dict[str, Any], asked: object
) -> None:
    fake = FakeGoogle()
    for module in ("google", "google.auth", "google.auth.transport", "google.auth.transport.requests"):
        monkeypatch.setitem(sys.modules, module, fake)  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "google.auth.exceptions", fake)  # type: ignore[arg-type]
    guard.valid.add("Bearer google1")
    catalog = ice.load_catalog("c", uri=server.uri, **properties)
    assert catalog.list_namespaces() == catalog.list_namespaces() == [("n",)]
    assert (fake.asked, fake.token) == ([asked], "google1")
    # A token that the server refuses is replaced, and one that has expired too.
    guard.valid = {"Bearer google2"}
    assert catalog.list_namespaces() == [("n",)]
    fake.valid, guard.valid = False, {"Bearer google3"}
    assert catalog.list_namespaces() == [("n",)]
    fake.valid = False
    with pytest.raises(errors.OAuthError, match="Google gave no token: the account is locked"):
        catalog.list_namespaces()


def test_tokens_of_entra(server: Server, guard: Guard, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeEntra()
    for module in ("azure", "azure.identity"):
        monkeypatch.setitem(sys.modules, module, fake)  # type: ignore[arg-type]
    guard.valid.add("Bearer entra1")
    own = {"auth.type": "entra", "auth.entra.managed_identity_client_id": "me", "auth.entra.scopes": "a b"}
    catalog = ice.load_catalog("c", uri=server.uri, **own)
    assert catalog.list_namespaces() == catalog.list_namespaces() == [("n",)]
    assert fake.asked == [{"managed_identity_client_id": "me"}, ("a", "b")]
    fake.life = 59.0  # too short to be kept
    guard.valid = {"Bearer entra2", "Bearer entra3", "Bearer entra4"}
    assert catalog.list_namespaces() == catalog.list_namespaces() == [("n",)]
    assert fake.count in {3, 4}


def test_logins_that_cannot_be(server: Server) -> None:
    """A property that is wrong is an error before anything is sent; it is a ``ValueError``, as of PyIceberg."""
    for properties, says in (
        ({"auth": {"type": "kerberos"}}, "auth.type=kerberos: expected none, basic"),
        ({"auth": {"type": "basic", "impl": "a.B", "basic": {"username": "u", "password": "p"}}}, "for auth.type=cust"),
        ({"auth": {"type": "custom", "custom": {"x": "1"}}}, "auth.impl is missing"),
        ({"auth.type": "basic"}, "auth.basic.username is missing"),
        ({"auth.type": "sigv4", "client.profile-name": "nobody"}, "client.profile-name=nobody: there is no such"),
    ):
        with pytest.raises(ValueError, match=says):
            ice.load_catalog("c", uri=server.uri, **properties)  # type: ignore[arg-type]
    for kind, package in (("google", "google.auth"), ("entra", "azure.identity")):
        with pytest.raises(errors.NotInstalledError, match=package.replace(".", r"\.")):
            ice.load_catalog("c", uri=server.uri, **{"auth.type": kind})
    assert server.asked == []


def test_the_region_of_a_profile(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    config = tmp_path / "config"
    config.write_text("[profile work]\nregion = eu-north-1\naws_access_key_id = a\naws_secret_access_key = b\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
    with pytest.raises(errors.InvalidArgumentError, match=r"rest\.signing-region"):
        ice.load_catalog("c", uri=server.uri, **{"rest.sigv4-enabled": "true"})
    own = {"rest.sigv4-enabled": "true", "client.profile-name": "work"}
    assert ice.load_catalog("c", uri=server.uri, **own).list_namespaces() == [("n",)]
    assert "Credential=a/" in server.asked[-1].headers["authorization"]
    assert "/eu-north-1/execute-api/" in server.asked[-1].headers["authorization"]
