"""A table of people and places whose schema is changed, in every version of the format."""

import pyarrow as pa
import pytest

import icefield as ice

SCHEMA = ice.Schema.from_json(
    {
        "type": "struct",
        "identifier-field-ids": [1],
        "fields": [
            {"id": 1, "name": "id", "type": "int", "required": True},
            {"id": 2, "name": "name", "type": "string", "required": False},
            {"id": 3, "name": "score", "type": "float", "required": False},
            {
                "id": 4,
                "name": "place",
                "required": False,
                "type": {
                    "type": "struct",
                    "fields": [
                        {"id": 5, "name": "city", "type": "string", "required": False},
                        {"id": 6, "name": "zip", "type": "int", "required": False},
                    ],
                },
            },
            {
                "id": 7,
                "name": "tags",
                "required": False,
                "type": {
                    "type": "list",
                    "element-id": 8,
                    "element-required": False,
                    "element": {
                        "type": "struct",
                        "fields": [{"id": 9, "name": "key", "type": "string", "required": False}],
                    },
                },
            },
        ],
    }
)
ROW = {"id": 1, "name": "a", "score": 0.5, "place": {"city": "Bonn", "zip": 53111}, "tags": [{"key": "k"}, None]}


def rows(table, *values):
    return pa.Table.from_pylist(list(values), schema=table.schema().to_arrow())


def read(table, **scan):
    return table.scan(**scan).to_arrow().to_pylist()


@pytest.fixture(params=[1, 2, 3])
def version(request):
    return request.param


@pytest.fixture
def catalog(tmp_path):
    with ice.load_catalog("f", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh")) as opened:
        opened.create_namespace("a")
        yield opened


@pytest.fixture
def table(catalog, version):
    table = catalog.create_table("a.t", SCHEMA, properties={"format-version": str(version)})
    return table.append(rows(table, ROW))
