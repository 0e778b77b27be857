"""The exceptions of icefield, all of them.

::

    IcefieldError
    ├── InvalidArgumentError          (also ValueError)
    │   ├── ValidationError
    │   └── ArgumentTypeError         (also TypeError)
    ├── UnsupportedFeatureError       (also NotImplementedError)
    │   └── MissingVerbError          (also AttributeError)
    ├── CorruptDataError              (also ValueError; file, place, offset)
    ├── StorageError                  (also OSError)
    │   └── MissingFileError          (also FileNotFoundError)
    ├── NotInstalledError             (also ImportError)
    ├── NotFoundError                 (also LookupError)
    │   ├── NoSuchCatalogError
    │   ├── NoSuchNamespaceError
    │   ├── NoSuchTableError
    │   │   └── NoSuchIcebergTableError
    │   └── NoSuchPropertyException
    ├── AlreadyExistsError
    │   ├── NamespaceAlreadyExistsError
    │   └── TableAlreadyExistsError
    ├── NamespaceNotEmptyError
    ├── ValidationException
    │   └── TableReplacedError        (also ValueError)
    ├── CommitFailedException
    ├── CommitStateUnknownException
    └── InternalError

Where PyIceberg has a name for a cause, the name here is the same.
"""

from __future__ import annotations

__all__ = [
    "AlreadyExistsError",
    "ArgumentTypeError",
    "CommitFailedException",
    "CommitStateUnknownException",
    "CorruptDataError",
    "IcefieldError",
    "InternalError",
    "InvalidArgumentError",
    "MissingFileError",
    "MissingVerbError",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NoSuchCatalogError",
    "NoSuchIcebergTableError",
    "NoSuchNamespaceError",
    "NoSuchPropertyException",
    "NoSuchTableError",
    "NotFoundError",
    "NotInstalledError",
    "StorageError",
    "TableAlreadyExistsError",
    "TableReplacedError",
    "UnsupportedFeatureError",
    "ValidationError",
    "ValidationException",
]


class IcefieldError(Exception):
    """Above every exception that icefield raises on purpose."""


class InvalidArgumentError(IcefieldError, ValueError):
    """An argument, or an operation, that the specification does not allow."""


class ValidationError(InvalidArgumentError):
    """A schema, spec, order or expression that does not fit what it is used with."""


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument of a type that is not taken; the message says how to convert it."""


class UnsupportedFeatureError(IcefieldError, NotImplementedError):
    """Valid Iceberg that icefield cannot serve; refused rather than misread."""


class MissingVerbError(UnsupportedFeatureError, AttributeError):
    """A method of PyIceberg's tables that is not there yet; the message says what to do meanwhile."""


class CorruptDataError(IcefieldError, ValueError):
    """Bytes or JSON that do not mean what the specification says they should.

    Attributes
    ----------
    file
        Location of the file, where it is known.
    place
        Where in the file: a JSON path (``/schemas/0/fields/2``), a part (``manifest block 3``), a field path.
    offset
        Offset in bytes, where there is one.

    """

    def __init__(
        self, message: str, file: str | None = None, place: str | None = None, offset: int | None = None
    ) -> None:
        super().__init__(message)
        self.file = file
        self.place = place
        self.offset = offset


class StorageError(IcefieldError, OSError):
    """A store refused, failed or timed out."""


class MissingFileError(StorageError, FileNotFoundError):
    """A file that the table or the caller names is not there."""


class NotInstalledError(IcefieldError, ImportError):
    """An optional package is needed; the message names the extra that brings it."""


class NotFoundError(IcefieldError, LookupError):
    """Something that was asked for by name is not there."""


class NoSuchCatalogError(NotFoundError):
    """No catalog of this name is configured."""


class NoSuchNamespaceError(NotFoundError):
    """The namespace does not exist."""


class NoSuchTableError(NotFoundError):
    """The table does not exist."""


class NoSuchIcebergTableError(NoSuchTableError):
    """Something of this name exists, but it is not an Iceberg table."""


class NoSuchPropertyException(NotFoundError):
    """A property is needed and not set."""


class AlreadyExistsError(IcefieldError):
    """The name is taken."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """The namespace exists already."""


class TableAlreadyExistsError(AlreadyExistsError):
    """A table (or a view) of this name exists already."""


class NamespaceNotEmptyError(IcefieldError):
    """The namespace still holds tables or namespaces."""


class ValidationException(IcefieldError):
    """Concurrent changes contradict what the operation was planned on; it must be planned anew."""


class TableReplacedError(ValidationException, ValueError):
    """Another table has taken the place of the one that was opened; nothing was written. Load the table again.

    PyIceberg raises ``ValueError`` in its place.
    """


class CommitFailedException(IcefieldError):
    """The commit was lost to another one; nothing of it is visible."""


class CommitStateUnknownException(IcefieldError):
    """Nobody knows whether the commit went through; nothing was deleted."""


class InternalError(IcefieldError):
    """A defect of icefield itself: nothing that the caller did wrong. Nothing was committed."""
