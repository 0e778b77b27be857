"""Secrets print redacted, wherever they are printed, and reach what needs them."""

import io
import json
import pickle
import threading
import traceback
from http.server import BaseHTTPRequestHandler, HTTPServer

import pyarrow as pa
import pytest

import icefield as ice
from icefield import Secret
from icefield._inputs.secrets import redacted

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
    # What opens connections gets the texts themselves, and no others.
    properties, *_ = catalog.storage.__reduce__()[1]
    of_the_catalog = {"type", "s3.signer.uri"}
    assert properties.keys() == {"s3.session-token", *PROPERTIES} - of_the_catalog
    assert all(properties[key] == value for key, value in PROPERTIES.items() if key not in of_the_catalog)
    assert properties["s3.session-token"] == HUSH


OF_STORAGE = {
    "s3.secret-access-key": HUSH,
    "s3.session-token": HUSH,
    "client.secret-access-key": HUSH,
    "adls.account-key": HUSH,
    "adls.sas-token": HUSH,
    "adls.sas-token.account.dfs.core.windows.net": HUSH,
    "adls.sas-token.path": HUSH,
    "adls.client-secret": HUSH,
    "adls.connection-string": f"AccountName=me;AccountKey={HUSH}",
    "gcs.oauth2.token": HUSH,
    "gcs.service-account-key": HUSH,
    "s3.endpoint": f"http://me:{HUSH}@host:9000",
    "s3.proxy-uri": f"http://me:{HUSH}@proxy:3128",
}
OF_THE_CATALOG = {
    **dict.fromkeys(
        (
            "token",
            "credential",
            "header.Authorization",
            "header.X-Api-Key",
            "jdbc.password",
            "rest.auth.basic.password",
            "auth.oauth2.client_secret",
            "glue.session-token",
            "s3.auth-header",
        ),
        HUSH,
    ),
    "uri": f"postgresql://me:{HUSH}@host/db",
    "s3.signer.uri": f"https://signer.example?sig={HUSH}",
    "note": f"host=db user=me password={HUSH}",
}


@pytest.mark.parametrize("name", [*OF_STORAGE, *OF_THE_CATALOG])
def test_a_secret_of_the_catalog_is_seen_nowhere_and_goes_to_executors_only_if_storage_needs_it(name, tmp_path):
    value = {**OF_STORAGE, **OF_THE_CATALOG}[name]
    catalog = ice.load_catalog("guarded", **{"type": "in-memory", "warehouse": str(tmp_path), name: value})
    assert "********" in redacted({name: value})[name]
    for shown in (repr(catalog), str(catalog.properties), redacted({name: value})[name], repr(catalog.storage)):
        assert HUSH not in shown
    catalog.create_namespace("a")
    table = catalog.create_table("a.t", pa.table({"n": pa.array([1], pa.int64())}))
    opened = ice.Table.from_metadata(table.metadata_location, **{name: value})
    for storage in (catalog.storage, table.storage, opened.storage):
        properties = pickle.loads(pickle.dumps(storage)).__reduce__()[1][0]
        assert properties == ({name: value} if name in OF_STORAGE else {})
    for sent in (table.scan().tasks(), table.new_write()):
        assert HUSH.encode() not in pickle.dumps(sent)


def test_a_catalog_keeps_one_storage_until_its_properties_change():
    catalog = ice.load_catalog("c", **{"type": "in-memory", "s3.region": "eu-west-1"})
    first = catalog.storage
    assert catalog.storage is first
    assert pickle.loads(pickle.dumps(catalog)).storage is not first
    catalog.properties["s3.region"] = "eu-west-2"
    assert catalog.storage.__reduce__()[1][0] == {"s3.region": "eu-west-2"}


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
