"""Where the properties of a catalog come from, and which one wins."""

import json
import pickle

import pytest

from icefield.catalog import list_catalogs, load_catalog
from icefield.errors import InvalidArgumentError, NoSuchCatalogError, UnsupportedFeatureError


@pytest.fixture
def home(tmp_path, monkeypatch):
    for variable in ("ICEFIELD_HOME", "PYICEBERG_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "home").mkdir()
    return tmp_path / "home"


CONFIGURATION = """
default-catalog: local
catalog:
  Local:
    uri: sqlite:///{folder}/c.db
    warehouse: from-file
    s3:
      path-style-access: true
      connect-timeout: 5
"""


@pytest.mark.parametrize("name", [".icefield.yaml", ".pyiceberg.yaml"])
def test_precedence(home, monkeypatch, name):
    (home / name).write_text(CONFIGURATION.format(folder=home))
    catalog = load_catalog()
    assert catalog.name == "local"
    assert catalog.properties["warehouse"] == "from-file"
    assert catalog.properties["s3.path-style-access"] == "true"
    assert catalog.properties["s3.connect-timeout"] == "5"
    monkeypatch.setenv("PYICEBERG_CATALOG__LOCAL__WAREHOUSE", "from-pyiceberg")
    assert load_catalog("local").properties["warehouse"] == "from-pyiceberg"
    monkeypatch.setenv("ICEFIELD_CATALOG__LOCAL__WAREHOUSE", "from-icefield")
    monkeypatch.setenv("ICEFIELD_CATALOG__LOCAL__S3__ACCESS_KEY_ID", "key")
    assert load_catalog("LOCAL").properties["warehouse"] == "from-icefield"
    assert load_catalog("local").properties["s3.access-key-id"] == "key"
    assert load_catalog("local", warehouse="argument").properties["warehouse"] == "argument"
    assert list_catalogs() == ["local"]


def test_our_file_comes_before_pyicebergs(home):
    (home / ".icefield.yaml").write_text("catalog: {ours: {type: in-memory}}")
    (home / ".pyiceberg.yaml").write_text("catalog: {theirs: {type: in-memory}}")
    assert list_catalogs() == ["ours"]


def test_what_is_not_configured_says_so(home):
    with pytest.raises(NoSuchCatalogError, match=r"'nowhere' is not configured: set 'uri' or 'type'"):
        load_catalog("nowhere")
    with pytest.raises(UnsupportedFeatureError, match="'nessie' are not supported"):
        load_catalog("x", type="nessie")
    (home / ".icefield.yaml").write_text("catalog: [1]")
    with pytest.raises(InvalidArgumentError, match="must map names"):
        load_catalog("x", type="in-memory")


KINDS = {
    "hadoop": ({"warehouse": "wh"}, "FolderCatalog"),
    "glue": ({"glue.region": "eu-west-1"}, "GlueCatalog"),
    "dynamodb": ({"dynamodb.table-name": "t"}, "DynamoDbCatalog"),
    "hive": ({"uri": "thrift://host:9083"}, "HiveCatalog"),
    "rest": ({"uri": "https://host"}, "RestCatalog"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", [".icefield.yaml", ".pyiceberg.yaml", "ICEFIELD_", "PYICEBERG_"])
def test_every_kind_is_found_in_every_place(home, monkeypatch, kind, place):
    properties, name = KINDS[kind]
    given = {"type": kind, **properties}
    if place.endswith("yaml"):
        (home / place).write_text(json.dumps({"catalog": {"lake": given}}))
    else:
        for key, value in given.items():
            variable = f"{place}CATALOG__LAKE__{key}".replace(".", "__").replace("-", "_").upper()
            monkeypatch.setenv(variable, value)
    catalog = load_catalog("lake")
    assert type(catalog).__name__ == name
    assert {key: catalog.properties[key] for key in given} == given


@pytest.mark.parametrize(
    ("uri", "kind"), [("sqlite:///{}/a.db", "SqlCatalog"), ("sqlite+pysqlite:///{}/b.db", "SqlCatalog")]
)
def test_the_scheme_tells_the_kind(home, uri, kind):
    assert type(load_catalog("c", uri=uri.format(home))).__name__ == kind


def test_catalogs_pickle(home):
    catalog = load_catalog("c", uri=f"sqlite:///{home}/c.db", warehouse="w")
    catalog.create_namespace("a")
    again = pickle.loads(pickle.dumps(catalog))
    assert again.list_namespaces() == [("a",)]
    assert again.properties == catalog.properties


# What a person writes, and the text that it is: as in PyIceberg.
SCALARS = {
    "s3.access-key-id: 01234567": "01234567",
    "s3.session: 12_345": "12_345",
    "s3.flag: on": "on",
    "s3.hex: 0x1F": "0x1F",
    "s3.version: 1.10": "1.10",
    "s3.time: 1:30": "1:30",
    "s3.day: 2024-01-31": "2024-01-31",
    "s3.none: null": "null",
    "s3.tilde: ~": "~",
    "s3.empty:": "",
    "s3.yes: Yes": "Yes",
    "s3.exponent: 1e3": "1e3",
    "s3.nan: .nan": ".nan",
    "s3.octal: 0o17": "0o17",
    "s3.plus: +7": "+7",
    "s3.spaces:   a b  ": "a b",
    's3.quoted: "007"': "007",
    "s3.single: 'it''s'": "it's",
    "s3.hash: a#b": "a#b",
    "s3.comment: a # b": "a",
    "s3.lines: |\n      a\n      b\n": "a\nb\n",
    "s3.folded: >-\n      a\n      b\n": "a b",
    "s3.url: ftp://u@h:1/p?q=1#f": "ftp://u@h:1/p?q=1#f",
}


@pytest.mark.parametrize("name", [".icefield.yaml", ".pyiceberg.yaml"])
def test_a_file_keeps_what_was_typed(home, monkeypatch, name):
    from pyiceberg.utils.config import Config

    lines = "\n".join(f"    {line}" for line in SCALARS)
    (home / name).write_text(f"catalog:\n  Local:\n    type: in-memory\n{lines}\n")
    expected = {line.partition(":")[0]: text for line, text in SCALARS.items()}
    found = load_catalog("local").properties
    assert {key: found[key] for key in expected} == expected
    (home / ".pyiceberg.yaml").write_text((home / name).read_text())
    theirs = Config().config["catalog"]["local"]
    assert {key: theirs[key] for key in expected} == expected
    for variable in ("PYICEBERG_CATALOG__LOCAL__S3__FLAG", "ICEFIELD_CATALOG__LOCAL__S3__FLAG"):
        monkeypatch.setenv(variable, f" 0x1F {variable}")
        assert load_catalog("local").properties["s3.flag"] == f" 0x1F {variable}"


def test_nested_keys_and_defaults_of_files(home):
    text = """
    defaults: &defaults
      type: in-memory
      s3:
        connect-timeout: 060
        retry: {count: 03}
    catalog:
      a:
        <<: *defaults
        s3.region: off
      b:
      1e3: {type: in-memory}
    """
    (home / ".icefield.yaml").write_text(text)
    assert list_catalogs() == ["1e3", "a", "b"]
    found = load_catalog("a").properties
    assert (found["s3.connect-timeout"], found["s3.retry.count"], found["s3.region"]) == ("060", "03", "off")
    with pytest.raises(NoSuchCatalogError, match="'b' is not configured"):
        load_catalog("b")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("catalog: {x: {k: [hush, 2]}}", "property k of catalog 'x' .* is a list"),
        ("catalog: {x: hush}", "must be a mapping"),
        ("catalog: {x: {k: hush, k: b}}", "line 1, column 24: the key 'k' appears twice"),
        ("catalog: {x: {k: 'hush}}", "line 1"),
        ("? [hush]\n: b", "a key must be text"),
        ("hush", "must be a mapping"),
    ],
)
def test_a_file_that_cannot_be_read_says_where(home, text, message):
    (home / ".icefield.yaml").write_text(text)
    with pytest.raises(InvalidArgumentError, match=message) as failure:
        load_catalog("x", type="in-memory")
    assert "hush" not in str(failure.value)


@pytest.mark.parametrize(
    ("properties", "error", "message"),
    [
        (
            {"uri": "https://me:hush@host/v1"},
            InvalidArgumentError,
            r"the uri https://\*{8}@host/v1 has a user and a password",
        ),
        ({"uri": "hive://host:9083"}, UnsupportedFeatureError, r"Hive metastore \(its uri is thrift://host:9083\)"),
        ({"uri": "glue://x"}, UnsupportedFeatureError, "set type='glue' and no uri"),
        ({"uri": "mysql+pymysql://me:hush@host/d"}, UnsupportedFeatureError, "a MySQL database"),
        ({"uri": "mysql://me:hush@host/d", "type": "sql"}, UnsupportedFeatureError, "'mysql' database"),
        ({"uri": "s3://bucket/wh"}, UnsupportedFeatureError, "'warehouse'"),
        ({"uri": "jdbc:sqlite:x.db"}, UnsupportedFeatureError, "leave out 'jdbc:'"),
        ({"type": "REST", "uri": "host/v1"}, InvalidArgumentError, "must be http://host/path"),
        ({"type": "nessie"}, UnsupportedFeatureError, "supported types: .*in-memory, rest, sql"),
        ({"catalog-impl": "a.B"}, UnsupportedFeatureError, "names a Java class"),
        ({"uri": "wh/catalog.db"}, InvalidArgumentError, "is a path, not a URL; use sqlite:///wh/catalog.db"),
        ({"uri": "/wh/catalog.db"}, InvalidArgumentError, "use sqlite:////wh/catalog.db"),
        ({"uri": r"C:\wh\catalog.db"}, InvalidArgumentError, "is a path, not a URL"),
        ({"uri": "wh/catalog.db", "type": "sql"}, InvalidArgumentError, "for example, sqlite:///folder/catalog.db"),
        ({"uri": "sqlite://wh/c.db"}, InvalidArgumentError, "use sqlite:///wh/c.db "),
        ({"uri": "sqlite:wh/c.db"}, InvalidArgumentError, "for example, sqlite:///folder/catalog.db"),
        ({"uri": "sqlite+nope:///c.db"}, InvalidArgumentError, "unknown database driver 'sqlite\\+nope'"),
        ({"uri": "me:hush@host/d"}, UnsupportedFeatureError, "scheme 'me'"),
    ],
)
def test_a_uri_that_cannot_be_served_is_named(home, properties, error, message):
    with pytest.raises(error, match=message) as failure:
        load_catalog("prod", **properties)
    assert "hush" not in str(failure.value)
    assert "set 'uri'" not in str(failure.value)
    assert list(home.parent.rglob("*.db")) == []


def test_the_case_of_a_type_does_not_count(home):
    assert type(load_catalog("c", type="SQL", uri=f"sqlite:///{home}/c.db")).__name__ == "SqlCatalog"


def test_folders_that_are_not_there_have_no_file(home, monkeypatch):
    """A working directory that was deleted, and a user without a home, as in containers."""
    (home / ".icefield.yaml").write_text(CONFIGURATION.format(folder=home))
    gone = home.parent / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert load_catalog().properties["warehouse"] == "from-file"

    def nobody():
        msg = "Could not determine home directory."
        raise RuntimeError(msg)

    monkeypatch.setattr("pathlib.Path.home", nobody)
    with pytest.raises(NoSuchCatalogError):
        load_catalog("local")
    monkeypatch.setenv("ICEFIELD_HOME", str(home))
    assert load_catalog().properties["warehouse"] == "from-file"
