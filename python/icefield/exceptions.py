"""Exceptions, under the name of PyIceberg's module; see `icefield.errors`."""

from __future__ import annotations

from icefield.errors import (
    CommitFailedException,
    CommitStateUnknownException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchIcebergTableError,
    NoSuchNamespaceError,
    NoSuchPropertyException,
    NoSuchTableError,
    NoSuchViewError,
    NotInstalledError,
    TableAlreadyExistsError,
    ValidationError,
    ValidationException,
)

__all__ = [
    "CommitFailedException",
    "CommitStateUnknownException",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NoSuchIcebergTableError",
    "NoSuchNamespaceError",
    "NoSuchPropertyException",
    "NoSuchTableError",
    "NoSuchViewError",
    "NotInstalledError",
    "TableAlreadyExistsError",
    "ValidationError",
    "ValidationException",
]
