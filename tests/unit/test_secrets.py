"""Secrets print redacted, wherever they are printed, and reach what needs them."""

import io
import json
import pickle
import threading
import traceback
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

import icefield as ice
from icefield import Secret
from icefield._secrets import redacted

HUSH = "hush-4711"
PROPERTIES = {
    "type": "in-memory",
    "s3.secret-access-key": HUSH,
    "adls.account-key": HUSH,
    "gcs.oauth2.token": HUSH,
    "s3.endpoint": f"https://user:{HUSH}@storage.example/path?token={HUSH}",
    "s3.region": "eu-central-1",
    "s3.signer.uri": f"https://signer.example?sig={HUSH}",
}


@pytest.mark.parametrize(
    "shown",
    [
        str,
        repr,
        "{}".format,
        "{0!s:>40}".format,
        "{0!r}".format,
        lambda secret: f"{secret}",
        lambda secret: "%s %r" % (secret, secret),  # noqa: UP031 - a way to print
        lambda secret: "-".join(["a", secret]),  # noqa: FLY002 - a way to print
        lambda secret: "so " + secret,
        lambda secret: json.dumps({"key": secret, "list": [secret]}),
        lambda secret: repr({"key": secret}),
        lambda secret: secret.encode().decode(),
        lambda secret: "".join(list(secret)),
    ],
)
def test_a_secret_is_seen_nowhere(shown):
    assert HUSH not in shown(Secret(HUSH))
    assert "********" in shown(Secret(HUSH))


def test_nor_in_tracebacks_with_the_values_of_variables():
    def fails(secret):
        raise ValueError(f"refused {secret}")

    try:
        fails(Secret(HUSH))
    except ValueError as error:
        found = traceback.TracebackException.from_exception(error, capture_locals=True)
        file = io.StringIO("".join(found.format()))
    assert "***" in file.getvalue()
    assert "secret = " in file.getvalue()
    assert f"'{HUSH}'" not in file.getvalue().replace("HUSH = ", "")


def test_it_is_itself():
    assert Secret(HUSH).reveal() == HUSH
    assert Secret(HUSH) == Secret(HUSH)
    assert Secret(HUSH) not in (Secret("other"), "***", HUSH)
    assert len({Secret(HUSH), Secret(HUSH), Secret("other")}) == 2
    assert pickle.loads(pickle.dumps(Secret(HUSH, "shown"))) == Secret(HUSH)
    assert str(pickle.loads(pickle.dumps(Secret(HUSH, "shown")))) == "shown"
    assert Secret(Secret(HUSH)).reveal() == HUSH


def test_properties_of_catalogs_and_storage(monkeypatch, tmp_path):
    monkeypatch.setenv("ICEFIELD_CATALOG__GUARDED__S3__SESSION_TOKEN", HUSH)
    catalog = ice.load_catalog("guarded", **PROPERTIES)
    for shown in (repr(catalog), str(catalog.properties), json.dumps(catalog.properties), repr(catalog.storage)):
        assert HUSH not in shown
        assert "eu-central-1" in shown
    assert catalog.properties["s3.region"] == "eu-central-1"
    assert catalog.properties["s3.session-token"] == Secret(HUSH)
    assert catalog.properties["s3.endpoint"] == Secret(PROPERTIES["s3.endpoint"])
    assert str(catalog.properties["s3.endpoint"]) == "https://********@storage.example/path?********"
    # What opens connections gets the texts themselves.
    properties, _ = catalog.storage.__reduce__()[1]
    assert {key: properties[key] for key in PROPERTIES} == PROPERTIES
    assert properties["s3.session-token"] == HUSH


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            (name, HUSH)
            for name in (
                "s3.auth-header",
                "s3.secret-access-key",
                "s3.session-token",
                "header.Authorization",
                "header.X-Api-Key",
                "token",
                "credential",
                "adls.account-key",
                "adls.sas-token",
                "adls.sas-token.account.dfs.core.windows.net",
                "adls.sas-token.path",
                "adls.client-secret",
                "adls.connection-string",
                "gcs.oauth2.token",
                "gcs.service-account-key",
                "rest.auth.basic.password",
                "auth.oauth2.client_secret",
                "jdbc.password",
            )
        ),
        ("note", f"AccountName=me;AccountKey={HUSH}"),
        ("note", f"host=db user=me password={HUSH}"),
        ("note", f"postgresql://me:{HUSH}@host/db"),
        ("note", f"postgresql://host/db?user=me&password={HUSH}"),
        ("note", f"jdbc:sqlserver://host;user=me;password={HUSH}"),
        ("s3.proxy-uri", f"http://me:{HUSH}@proxy:3128"),
    ],
)
def test_a_secret_of_the_catalog_is_one_of_its_storage_too(name, value):
    catalog = ice.load_catalog("guarded", **{"type": "in-memory", name: value})
    for shown in (repr(catalog), str(catalog.properties), repr(catalog.storage), redacted({name: value})[name]):
        assert HUSH not in shown
        assert "********" in shown
    # Executors must reach the same storage: what is pickled is the text itself.
    assert pickle.loads(pickle.dumps(catalog.storage)).__reduce__()[1][0][name] == value


def test_secrets_may_be_given_as_such_and_survive_pickling(tmp_path):
    properties = {"uri": f"sqlite:///{tmp_path}/c.db", "warehouse": str(tmp_path), "s3.secret-access-key": Secret(HUSH)}
    catalog = ice.load_catalog("c", **properties)
    again = pickle.loads(pickle.dumps(catalog))
    assert again.properties == catalog.properties
    assert again.storage.__reduce__()[1][0]["s3.secret-access-key"] == HUSH


def test_a_database_is_reached_by_the_url_that_prints_redacted():
    with pytest.raises(ice.IcefieldError) as raised:
        ice.load_catalog("c", uri=f"postgresql://user:{HUSH}@127.0.0.1:1/nothing").list_namespaces()
    assert HUSH not in "".join(traceback.format_exception(raised.value))


def test_errors_name_urls_without_credentials():
    class Nothing(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_error(404)

        def log_message(self, *_):
            pass

    with HTTPServer(("127.0.0.1", 0), Nothing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        host = f"127.0.0.1:{server.server_port}"
        for url in (f"http://user:{HUSH}@{host}/x.metadata.json?sig={HUSH}", f"http:///x.json?sig={HUSH}"):
            with pytest.raises(ice.IcefieldError) as raised:
                ice.Table.from_metadata(url)
            assert HUSH not in str(raised.value)
            assert "?********" in str(raised.value)
        server.shutdown()
