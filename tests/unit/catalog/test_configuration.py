"""Where the properties of a catalog come from, and which one wins."""

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
    with pytest.raises(NoSuchCatalogError, match=r"'nowhere' is not configured: give a 'uri' or a 'type'"):
        load_catalog("nowhere")
    with pytest.raises(UnsupportedFeatureError, match="'hive' are not supported"):
        load_catalog("x", type="hive")
    (home / ".icefield.yaml").write_text("catalog: [1]")
    with pytest.raises(InvalidArgumentError, match="must map names"):
        load_catalog("x", type="in-memory")


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
