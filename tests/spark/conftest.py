"""One Spark session for all tests, and a fresh catalog for each."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import icefield as ice

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CATALOG = "local"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.spark)


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start Spark; the data source is left for Spark to find by itself."""
    pytest.importorskip("pyspark")
    from pyspark.sql import SparkSession

    from icefield.spark import functions

    session = (
        SparkSession.builder.master("local[2, 2]")
        .config("spark.ui.enabled", "false")
        # Not UTC, so that a wrong use of the session's zone shows.
        .config("spark.sql.session.timeZone", "America/New_York")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    functions.register(session)
    yield session
    session.stop()


@pytest.fixture
def catalog(tmp_path: Path) -> ice.Catalog:
    """Make a catalog with the namespace ``db``."""
    made = ice.load_catalog(CATALOG, uri=f"sqlite:///{tmp_path}/catalog.db", warehouse=str(tmp_path))
    made.create_namespace("db")
    return made


@pytest.fixture
def options(catalog: ice.Catalog) -> dict[str, str]:
    """Give the options by which the data source opens the catalog."""
    return {"catalog": CATALOG, "uri": catalog.properties["uri"], "warehouse": catalog.properties["warehouse"]}
