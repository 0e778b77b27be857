"""How long does a REST catalog take: to load a table, and to list and load a thousand?

The server is the servlet of Java's tests, on this machine. Loading one table is compared with the bare request by
``httpx`` and the parse of its JSON; a thousand tables are listed and loaded beside PyIceberg.

    python benches/catalogs.py
    python benches/catalogs.py --tables 100
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import httpx
import pyarrow as pa
from side_by_side import Target, measure, report

import icefield as ice

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from worlds.servers.java_rest import served_by_java

SCHEMA = pa.schema([(f"column_{number}", pa.int64()) for number in range(20)])
#: Snapshots of the table that is loaded alone.
SNAPSHOTS = 50


def one(uri: str, rounds: int) -> None:
    """Load one table."""
    ours = ice.load_catalog("ours", uri=uri, **{"rest-table-cache.max-entries": "0"})
    ours.create_namespace("one")
    table = ours.create_table("one.t", SCHEMA)
    for _ in range(SNAPSHOTS):
        table.append(SCHEMA.empty_table())
    client = httpx.Client()
    url = f"{uri}/v1/namespaces/one/tables/t"

    def bare() -> int:
        return len(json.loads(client.get(url).content)["metadata"]["snapshots"])

    def load() -> int:
        return len(ours.load_table("one.t").snapshots())

    assert load() == bare() == SNAPSHOTS
    peers = {"icefield": load, "request and parse": bare}
    row = measure(f"{SNAPSHOTS} snapshots", peers, rounds=rounds, targets=[Target("request and parse", 1.2)], warm=True)
    report("load a table", [row])


def many(uri: str, tables: int, rounds: int) -> None:
    """List and load many tables."""
    ours = ice.load_catalog("ours", uri=uri)
    ours.create_namespace("many")
    for number in range(tables):
        ours.create_table(f"many.t{number}", SCHEMA)

    def by_icefield() -> int:
        with ice.load_catalog("ours", uri=uri) as catalog:
            return sum(len(catalog.load_table(name).schema().fields) for name in catalog.list_tables("many"))

    def by_pyiceberg() -> int:
        from pyiceberg.catalog.rest import RestCatalog

        catalog = RestCatalog("theirs", uri=uri)
        return sum(len(catalog.load_table(name).schema().fields) for name in catalog.list_tables("many"))

    assert by_icefield() == by_pyiceberg() == 20 * tables
    peers = {"icefield": by_icefield, "PyIceberg": by_pyiceberg}
    row = measure(f"{tables:,} tables", peers, rounds=rounds, targets=[Target("PyIceberg", 0.2)])
    report("list and load", [row])


def main() -> None:
    """Ask both questions."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tables", type=int, default=1000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, served_by_java(Path(folder)) as uri:
        one(uri, options.rounds)
        many(uri, options.tables, options.rounds)


if __name__ == "__main__":
    main()
