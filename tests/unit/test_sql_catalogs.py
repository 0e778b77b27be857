"""Settings of Spark about Java's catalogs, as the properties of icefield's."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")
pytest.importorskip("sqlglot")

from icefield.errors import UnsupportedFeatureError
from icefield.spark.sql.configured import properties_of

JDBC = "org.apache.iceberg.jdbc.JdbcCatalog"
SETTINGS = [
    ({"catalog-impl": JDBC, "uri": "jdbc:sqlite:/w/c.db"}, {"type": "sql", "uri": "sqlite:////w/c.db"}),
    ({"type": "jdbc", "uri": "jdbc:sqlite:file:c.db?cache=x"}, {"type": "sql", "uri": "sqlite:///c.db"}),
    (
        {"type": "jdbc", "uri": "jdbc:postgresql://h:5/d?ssl=1", "jdbc.user": "a@b", "jdbc.password": "p/:"},
        {"type": "sql", "uri": "postgresql://a%40b:p%2F%3A@h:5/d?ssl=1"},
    ),
    ({"type": "jdbc", "uri": "jdbc:postgresql://h/d"}, {"type": "sql", "uri": "postgresql://h/d"}),
    ({"catalog-impl": "org.apache.iceberg.rest.RESTCatalog", "uri": "http://h"}, {"type": "rest", "uri": "http://h"}),
    ({"type": "hadoop", "warehouse": "/w"}, {"type": "hadoop", "warehouse": "/w"}),
    ({"type": "hive", "uri": "thrift://h"}, {"type": "hive", "uri": "thrift://h"}),
]


@pytest.mark.parametrize(("settings", "expected"), SETTINGS)
def test_settings_are_read_as_java_means_them(settings: dict[str, str], expected: dict[str, str]) -> None:
    assert properties_of("local", settings) == expected


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"catalog-impl": "my.Catalog"}, "spark.sql.catalog.local.catalog-impl=my.Catalog is not supported"),
        ({"type": "jdbc", "uri": "jdbc:mysql://u:secret@h/d"}, "spark.sql.catalog.local.uri=jdbc:mysql:… is not"),
    ],
)
def test_others_are_refused_without_their_secrets(settings: dict[str, str], message: str) -> None:
    with pytest.raises(UnsupportedFeatureError) as caught:
        properties_of("local", settings)
    assert message in str(caught.value)
    assert "secret" not in str(caught.value)
