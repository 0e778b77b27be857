"""What tests of catalogs share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from worlds.servers.rest import Server, served


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A REST catalog of this process, with the namespace ``n``."""
    with served(tmp_path) as made:
        made.namespaces["n",] = {}
        yield made
