"""Clients by the properties of a catalog: of kinds that icefield has, of installed packages, and of named classes.

A package provides a kind by an entry point in the group ``icefield.kms``: its name is the value of
``encryption.kms-type``, its object a subclass of `KeyManagementClient`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from icefield.encryption.aws import AwsKeys
from icefield.encryption.azure import AzureKeys
from icefield.encryption.client import KeyManagementClient
from icefield.encryption.gcp import GcpKeys
from icefield.encryption.local import KeyFile
from icefield.errors import InvalidArgumentError, NotInstalledError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["GROUP", "client_of"]

#: The group of entry points.
GROUP = "icefield.kms"

_TYPE = "encryption.kms-type"
_IMPL = "encryption.kms-impl"
_OWN: dict[str, type[KeyManagementClient]] = {"aws": AwsKeys, "azure": AzureKeys, "file": KeyFile, "gcp": GcpKeys}
# The classes of Java that do the same as ours, so that a configuration of Java opens here.
_OF_JAVA: dict[str, type[KeyManagementClient]] = {
    "org.apache.iceberg.aws.AwsKeyManagementClient": AwsKeys,
    "org.apache.iceberg.azure.keymanagement.AzureKeyManagementClient": AzureKeys,
    "org.apache.iceberg.gcp.GcpKeyManagementClient": GcpKeys,
}


def client_of(properties: Mapping[str, str]) -> KeyManagementClient | None:
    """Return the client that the properties of a catalog name; None if they name none.

    Raises
    ------
    InvalidArgumentError
        If both properties are set, or what they name is not a `KeyManagementClient`.
    NotInstalledError
        If the module of the class, or the package that a client uses, is not installed.
    UnsupportedFeatureError
        If the kind is unknown, or the class is one of Java without a counterpart here.

    """
    kind, name = properties.get(_TYPE), properties.get(_IMPL)
    if kind and name:
        raise InvalidArgumentError(f"{_TYPE}={kind} and {_IMPL}={name} cannot both be set")
    if kind:
        found: object = _of_kind(kind.lower())
        what = f"{_TYPE}={kind}"
    elif name:
        found, what = _client_by_name(name), f"{_IMPL}={name}"
    else:
        return None
    if not isinstance(found, type) or not issubclass(found, KeyManagementClient):
        raise InvalidArgumentError(f"{what}: {found!r} is not a subclass of icefield.encryption.KeyManagementClient")
    client = found()
    client.initialize(properties)
    return client


def _of_kind(kind: str) -> object:
    if own := _OWN.get(kind):
        return own
    # It takes long to import.
    from importlib.metadata import entry_points

    installed = {entry.name.lower(): entry for entry in entry_points(group=GROUP)}
    if kind not in installed:
        known = ", ".join(sorted({*_OWN, *installed}))
        raise UnsupportedFeatureError(f"{_TYPE}={kind}: expected one of {known}, or name a class by {_IMPL}")
    return installed[kind].load()


def _client_by_name(name: str) -> object:
    if own := _OF_JAVA.get(name):
        return own
    if name.startswith("org.apache.iceberg."):
        raise UnsupportedFeatureError(f"{_IMPL}={name} is a Java class: name one of Python, or use {_TYPE}")
    module, _, attribute = name.replace(":", ".").rpartition(".")
    if not module:
        raise InvalidArgumentError(f"{_IMPL}={name}: expected the full name of a class, such as package.module.Class")
    try:
        return getattr(import_module(module), attribute)
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{_IMPL}={name}: {error}") from error
    except AttributeError as error:
        raise InvalidArgumentError(f"{_IMPL}={name}: {error}") from error
