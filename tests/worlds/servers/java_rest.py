"""Java's own REST server: the servlet of its tests, in a process of its own."""

from __future__ import annotations

import importlib.util
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from worlds.servers.maven import jars

#: What the server needs beside PySpark's jars: the path, and the SHA-256 of each.
JARS = {
    "org/apache/iceberg/iceberg-core/1.11.0/iceberg-core-1.11.0.jar": (
        "53b9eb7a8c34fb9958ea7d9a4d19ba5bc96f592d0f05e8625b0778c70b1f0090"
    ),
    "org/apache/iceberg/iceberg-core/1.11.0/iceberg-core-1.11.0-tests.jar": (
        "4284719a5f0eb7db01e9f784a0ed4ca8bacf7d6f9951924143afc083428d8be3"
    ),
    "org/apache/iceberg/iceberg-api/1.11.0/iceberg-api-1.11.0.jar": (
        "f00675a12ceb6d833bb9c22024823a3e7afdedf7abcefe34719f45b0d211995a"
    ),
    "org/apache/iceberg/iceberg-common/1.11.0/iceberg-common-1.11.0.jar": (
        "b2835d00db7c92bdfa728123ad7cdcb488e2f2805c1c51fb9ae94e8bd203bd7d"
    ),
    "org/apache/iceberg/iceberg-bundled-guava/1.11.0/iceberg-bundled-guava-1.11.0.jar": (
        "396d48d93ef5735f2ddef0cf9b3d6968ebd67b64b5cfe753d41c429d3f46a2a1"
    ),
    "org/apache/httpcomponents/client5/httpclient5/5.6.1/httpclient5-5.6.1.jar": (
        "1e3d8444c3c27772e4b9d42a790f06b3345a8ece4fd16d00981f2f2460e1e772"
    ),
    "org/apache/httpcomponents/core5/httpcore5/5.4/httpcore5-5.4.jar": (
        "cec2981fa7f520efb63f0787c24f10af2679e31f9f75c448c4dde40a3ae8100d"
    ),
    "org/apache/httpcomponents/core5/httpcore5-h2/5.4/httpcore5-h2-5.4.jar": (
        "2e0f4ace15db2d1609c2b06eca6012e7582afe4a99ad8d15073f62dd8edb3460"
    ),
    "com/github/ben-manes/caffeine/caffeine/2.9.3/caffeine-2.9.3.jar": (
        "1e0a7bbef1dd791653143f3f05d0e489934bf5481e58a87c9e619cd46b68729b"
    ),
}


def _program(name: str) -> str:
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/{name}" if home else name


def has_compiler() -> bool:
    """Whether this Java runs a file of source."""
    modules = subprocess.run([_program("java"), "--list-modules"], capture_output=True, text=True, check=True).stdout
    return "jdk.compiler@" in modules


@contextmanager
def served_by_java(folder: Path) -> Iterator[str]:
    """Run the server with its warehouse in a folder, and give its URL."""
    spark = importlib.util.find_spec("pyspark")
    assert spark is not None
    assert spark.origin is not None
    path = os.pathsep.join([*jars(JARS), str(Path(spark.origin).parent / "jars" / "*")])
    source = str(Path(__file__).parents[2] / "interop" / "RestServer.java")
    log = folder / "java.log"
    with log.open("w") as errors:
        server = subprocess.Popen(
            [_program("java"), "-cp", path, source, f"file://{folder}/warehouse"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    assert server.stdout is not None
    assert server.stdin is not None
    try:
        port = next((line for line in server.stdout if line.startswith("port ")), None)
        assert port is not None, f"the server did not start:\n{log.read_text()[-3000:]}"
        yield f"http://127.0.0.1:{int(port.removeprefix('port '))}"
    finally:
        server.stdin.close()
        server.wait(30)
        server.stdout.close()
