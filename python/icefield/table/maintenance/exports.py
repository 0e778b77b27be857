"""The metadata of a table in one file, without rows, for a report of a fault; and tables opened from such files."""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from icefield._core import __version__
from icefield._core import export_metadata as core_export
from icefield._outputs.layout import counted, size_of
from icefield.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from icefield._core import TableState

__all__ = ["MetadataExport"]

_FORM, _CONTENTS, _METADATA = 1, "export.json", "metadata.json"
#: Names of files in an export; nothing else is extracted.
_NAME = re.compile(r"files/\d+/[^/\\\0]+", re.DOTALL)
#: Maximum bytes extracted from one export: a small file may unpack to a very large one.
_MOST_BYTES = 16 << 30


@dataclass(frozen=True, slots=True, repr=False)
class MetadataExport:
    """An export of the metadata of a table."""

    #: The file.
    path: Path
    #: Its size in bytes.
    bytes: int
    #: Numbers of snapshots and of manifests in it.
    snapshots: int
    manifests: int
    #: Whether it has bounds, partition values and paths.
    values: bool

    def __repr__(self) -> str:
        parts = [counted(self.snapshots, "snapshot"), counted(self.manifests, "manifest"), size_of(self.bytes)]
        return f"MetadataExport({self.path}: {', '.join(parts)}, {'with' if self.values else 'without'} values)"


def exported(
    state: TableState, path: str | os.PathLike[str], snapshots: Iterable[int], *, values: bool
) -> MetadataExport:
    """Write an export; `icefield.Table.export_metadata` says how."""
    target = Path(path)
    if target.suffix != ".zip":
        raise InvalidArgumentError(f"path: expected the name of a .zip file, got {str(target)!r}")
    if target.exists():
        raise InvalidArgumentError(f"{target}: the file exists")
    # Another process sees the whole file or none.
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(unfinished, "x", zipfile.ZIP_DEFLATED) as archive:
            folders, count, manifests = core_export(
                state, archive.writestr, snapshots=list(dict.fromkeys(snapshots)), values=values
            )
            contents = {"form": _FORM, "icefield": __version__, "values": values, "folders": folders}
            archive.writestr(_CONTENTS, json.dumps(contents, indent=2))
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)
    return MetadataExport(target, target.stat().st_size, count, manifests, values)


def extracted(path: str | os.PathLike[str], folder: str | os.PathLike[str] | None) -> tuple[Path, dict[str, str]]:
    """Extract an export.

    Returns the folder, with the file ``metadata.json``, and where the folders of the table's files are now.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            contents = _contents(archive, path)
            target = Path(tempfile.mkdtemp(prefix="icefield-export-") if folder is None else folder).absolute()
            try:
                _extract(archive, target, path)
            except BaseException:
                if folder is None:
                    shutil.rmtree(target, ignore_errors=True)
                raise
    except (zipfile.BadZipFile, KeyError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgumentError(f"{path}: is no export of a table: {error}") from error
    return target, {old: f"{target}/{new}" for old, new in contents.items()}


def _contents(archive: zipfile.ZipFile, path: str | os.PathLike[str]) -> dict[str, str]:
    """Return where the folders of files are in an export."""
    document = json.loads(archive.read(_CONTENTS))
    if not isinstance(document, dict) or document.get("form") != _FORM:
        raise InvalidArgumentError(f"{path}: is an export of another form: open it with a newer icefield")
    folders = document.get("folders")
    if not isinstance(folders, dict) or not all(
        isinstance(new, str) and re.fullmatch(r"files/\d+", new) for new in folders.values()
    ):
        raise InvalidArgumentError(f"{path}: is no export of a table: its folders are invalid")
    return folders


def _extract(archive: zipfile.ZipFile, target: Path, path: str | os.PathLike[str]) -> None:
    files = [one for one in archive.infolist() if one.filename != _CONTENTS]
    for one in files:
        # An export comes from somebody else, so no name may lead out of the folder.
        if one.filename != _METADATA and (
            not _NAME.fullmatch(one.filename) or Path(one.filename).name in {"", ".", ".."}
        ):
            raise InvalidArgumentError(f"{path}: is no export of a table: it has a file {one.filename!r}")
    if sum(one.file_size for one in files) > _MOST_BYTES:
        raise InvalidArgumentError(f"{path}: unpacks to more than {size_of(_MOST_BYTES)}")
    target.mkdir(parents=True, exist_ok=True)
    for one in files:
        place = target / one.filename
        place.parent.mkdir(parents=True, exist_ok=True)
        with archive.open(one) as source, place.open("xb") as sink:
            shutil.copyfileobj(source, sink)
    if not (target / _METADATA).is_file():
        raise InvalidArgumentError(f"{path}: is no export of a table: it has no {_METADATA}")
