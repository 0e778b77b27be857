"""A pipe, a device, a directory or a socket in place of a file, or a link to one: an error that says so, at once."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest

import icefield as ice

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="files of Unix")

ROWS = pa.table({"id": pa.array(range(20), pa.int64())})


def local(location: str) -> Path:
    return Path(unquote(urlparse(location).path))


@pytest.fixture(params=["parquet", "orc"])
def table(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ice.Table]:
    with ice.load_catalog("c", uri=f"sqlite:///{tmp_path}/c.db", warehouse=str(tmp_path / "wh")) as catalog:
        catalog.create_namespace("a")
        table = catalog.create_table("a.t", ROWS, properties={"write.format.default": request.param})
        yield table.append(ROWS)


def parts(table: ice.Table) -> dict[str, tuple[Path, Callable[[], object]]]:
    """Give each kind of file, and what reads it."""
    opened = ice.Table.from_metadata(table.metadata_location)
    manifests = local(opened.current_snapshot().manifest_list)
    manifest = ice.manifests.read_list(manifests.read_bytes())["manifest_path"][0].as_py()
    data = opened.scan().plan_files().files[0]["file_path"]
    return {
        "metadata": (local(table.metadata_location), lambda: ice.Table.from_metadata(table.metadata_location)),
        "manifest list": (manifests, lambda: opened.scan("id > 3").plan_files().to_arrow()),
        "manifest": (local(manifest), lambda: opened.scan("id > 3").plan_files().to_arrow()),
        "data": (local(data), lambda: opened.scan("id > 3").to_arrow()),
    }


def special(kind: str, path: Path) -> None:
    """Put something else where a file was."""
    path.unlink()
    target = path.with_suffix(".target") if kind.startswith("link") else path
    if "pipe" in kind:
        os.mkfifo(target)
    elif "device" in kind:
        target = Path("/dev/zero")
    elif "directory" in kind:
        target.mkdir()
    elif "socket" in kind:
        # The name of a socket is short.
        here = Path.cwd()
        os.chdir(target.parent)
        try:
            socket.socket(socket.AF_UNIX).bind("s")
            Path("s").rename(target)
        finally:
            os.chdir(here)
    if target != path:
        path.symlink_to(target)


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("pipe", "a named pipe"),
        ("link to a pipe", "a named pipe"),
        ("link to a device", "a device"),
        ("directory", "a directory"),
        ("link to a directory", "a directory"),
        ("socket", "a socket"),
    ],
)
def test_only_regular_files_are_read(table: ice.Table, kind: str, named: str) -> None:
    for part, (path, read) in parts(table).items():
        whole = path.read_bytes()
        special(kind, path)
        with pytest.raises(ice.errors.StorageError, match=named) as raised:
            read()
        assert path.name in str(raised.value), part
        assert "only regular files are read" in str(raised.value)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        path.write_bytes(whole)
        read()


def test_a_link_to_a_file_is_read(table: ice.Table) -> None:
    for path, read in parts(table).values():
        path.rename(path.with_suffix(".target"))
        path.symlink_to(path.with_suffix(".target"))
        read()


def test_no_more_is_read_than_is_named(table: ice.Table) -> None:
    """Files of a petabyte that take nothing on the disk."""
    for part, (path, read) in parts(table).items():
        whole = path.read_bytes()
        with path.open("r+b") as file:
            try:
                file.truncate(1 << 42)
            except OSError:
                pytest.skip("a file system without large files")
        if part == "data":
            read()  # as many bytes as the manifest names, and those are as they were
        else:
            with pytest.raises(ice.CorruptDataError, match=r"4398046511104 bytes") as raised:
                read()
            assert path.name in str(raised.value), part
        path.write_bytes(whole)


def test_files_by_name(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("pipe", "zero"):
        with pytest.raises(ice.errors.StorageError, match="only regular files are read"):
            ice.orc.ORCFile(str(tmp_path / name))
