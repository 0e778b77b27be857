"""Location providers: classes that say where the data files of a table lie.

A package names its class as an entry point of the group ``icefield.location_providers``, and a table names the entry
point by the property ``write.location-provider.impl``, or by ``write.py-location-provider.impl``, which is PyIceberg's
name. The metadata of a table cannot make a process import a class, because it may come from strangers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from icefield.errors import InvalidArgumentError

__all__ = ["LocationProvider", "PartitionPath"]

#: The group of entry points.
GROUP = "icefield.location_providers"


@dataclass(frozen=True, slots=True)
class PartitionPath:
    """The partition of a data file."""

    #: As in folder names, such as ``day=2024-01-01/region=eu``; each value is escaped.
    path: str

    def to_path(self) -> str:
        """Return the path."""
        return self.path


class LocationProvider(ABC):
    """Says where the data and delete files of one table lie.

    It is made once for each write, on the machine that writes, and called once for each file, from any thread. Classes
    that are written for PyIceberg need no change: only their method ``new_data_location`` is called.

    Parameters
    ----------
    table_location
        The location of the table, without ``/`` at its end.
    table_properties
        The properties of the table and of the write.

    Attributes
    ----------
    table_location, table_properties
        As above.

    """

    table_location: str
    table_properties: Mapping[str, str]

    def __init__(self, table_location: str, table_properties: Mapping[str, str]) -> None:
        self.table_location = table_location
        self.table_properties = table_properties

    @abstractmethod
    def new_data_location(self, data_file_name: str, partition_key: PartitionPath | None = None) -> str:
        """Return the location of a new file.

        Parameters
        ----------
        data_file_name
            Its name, which no other file of the table has. The location must contain it.
        partition_key
            Its partition; None in tables without partitions, and for files of deletion vectors.

        Returns
        -------
        str
            The whole location, such as ``s3://bucket/folder/name.parquet``.

        """


class _Provider(Protocol):
    def new_data_location(self, data_file_name: str, partition_key: PartitionPath | None = None) -> object: ...


def is_installed(name: str) -> bool:
    """Return whether there is an entry point of this name."""
    # It takes long to import.
    from importlib.metadata import entry_points

    return bool(entry_points(group=GROUP, name=name))


def provider_of(name: str, location: str, properties: dict[str, str]) -> _Provider:
    """Make the provider of a table."""
    from importlib.metadata import entry_points

    [entry, *others] = entry_points(group=GROUP, name=name)
    if others:
        msg = f"several installed packages have a location provider {name!r}: {entry.value}, {others[0].value}"
        raise InvalidArgumentError(msg)
    made: _Provider = entry.load()(location, properties)
    if not callable(getattr(made, "new_data_location", None)):
        raise InvalidArgumentError(f"the location provider {name!r} ({entry.value}) has no method new_data_location")
    return made


def location_by(provider: _Provider, partition: str, name: str) -> str:
    """Ask a provider for the location of a file."""
    location = provider.new_data_location(name, PartitionPath(partition) if partition else None)
    # Names are unique. Without them two files could have one location, and one would replace the other.
    if isinstance(location, str) and name in location:
        return location
    msg = (
        f"the location provider {type(provider).__name__} returned {location!r}: expected a location with {name} in it"
    )
    raise InvalidArgumentError(msg)
