"""Jars of Maven Central, downloaded once into the cache of this machine."""

from __future__ import annotations

import hashlib
import os
import time
import urllib.request
from collections.abc import Mapping
from pathlib import Path

CENTRAL = "https://repo1.maven.org/maven2"


def jars(digests: Mapping[str, str]) -> list[str]:
    """Return the local paths of jars, given by their paths in the repository with their SHA-256."""
    folder = Path.home() / ".cache" / "icefield" / "jars"
    folder.mkdir(parents=True, exist_ok=True)
    made = []
    for path, digest in digests.items():
        jar = folder / Path(path).name
        if not jar.exists() or hashlib.sha256(jar.read_bytes()).hexdigest() != digest:
            content = _download(f"{CENTRAL}/{path}")
            assert hashlib.sha256(content).hexdigest() == digest, path
            new = jar.with_suffix(f".{os.getpid()}")
            new.write_bytes(content)
            new.replace(jar)
        made.append(str(jar))
    return made


def _download(url: str) -> bytes:
    for wait in (1, 5, None):
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return answer.read()
        except OSError:
            if wait is None:
                raise
            time.sleep(wait)
    raise AssertionError("not reached")
