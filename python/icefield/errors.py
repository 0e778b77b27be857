"""All exceptions of icefield.

::

    IcefieldError
    ├── InvalidArgumentError          (also ValueError)
    │   ├── NoSuchIdentifierError
    │   ├── ValidationError
    │   └── ArgumentTypeError         (also TypeError)
    ├── UnsupportedFeatureError       (also NotImplementedError)
    │   └── MissingVerbError          (also AttributeError)
    ├── CorruptDataError              (also ValueError; file, place, offset)
    ├── StorageError                  (also OSError)
    │   ├── ExistingFileError         (also FileExistsError)
    │   └── MissingFileError          (also FileNotFoundError)
    ├── NotInstalledError             (also ImportError)
    ├── NotFoundError                 (also LookupError)
    │   ├── NoSuchCatalogError
    │   ├── NoSuchNamespaceError
    │   ├── NoSuchTableError
    │   │   └── NoSuchIcebergTableError
    │   ├── NoSuchViewError
    │   └── NoSuchPropertyException
    ├── AlreadyExistsError
    │   ├── NamespaceAlreadyExistsError
    │   └── TableAlreadyExistsError
    │       └── ViewAlreadyExistsError
    ├── NamespaceNotEmptyError
    ├── ValidationException
    │   └── TableReplacedError        (also ValueError)
    ├── CommitFailedException
    ├── CommitStateUnknownException
    ├── RESTError                     (status, type)
    │   ├── BadRequestError           (also ValueError)
    │   ├── UnauthorizedError
    │   │   └── AuthorizationExpiredError
    │   ├── ForbiddenError
    │   ├── OAuthError
    │   └── ServerError
    │       └── ServiceUnavailableError
    │           └── TooManyRequestsError
    └── InternalError

Where PyIceberg has a name for a cause, the name here is the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "AlreadyExistsError",
    "ArgumentTypeError",
    "AuthorizationExpiredError",
    "BadRequestError",
    "CommitFailedException",
    "CommitStateUnknownException",
    "CorruptDataError",
    "ExistingFileError",
    "ForbiddenError",
    "IcefieldError",
    "InternalError",
    "InvalidArgumentError",
    "MissingFileError",
    "MissingVerbError",
    "NamespaceAlreadyExistsError",
    "NamespaceNotEmptyError",
    "NoSuchCatalogError",
    "NoSuchIcebergTableError",
    "NoSuchIdentifierError",
    "NoSuchNamespaceError",
    "NoSuchPropertyException",
    "NoSuchTableError",
    "NoSuchViewError",
    "NotFoundError",
    "NotInstalledError",
    "OAuthError",
    "RESTError",
    "ServerError",
    "ServiceUnavailableError",
    "StorageError",
    "TableAlreadyExistsError",
    "TableReplacedError",
    "TooManyRequestsError",
    "UnauthorizedError",
    "UnsupportedFeatureError",
    "ValidationError",
    "ValidationException",
    "ViewAlreadyExistsError",
]


class IcefieldError(Exception):
    """Base class of all icefield exceptions."""


class InvalidArgumentError(IcefieldError, ValueError):
    """An argument, or an operation, that the specification does not allow."""


class ValidationError(InvalidArgumentError):
    """A schema, spec, order or expression that does not fit what it is used with."""


class NoSuchIdentifierError(InvalidArgumentError):
    """The name has no namespace, or an empty part, so that no table, view or namespace can have it."""


class ArgumentTypeError(InvalidArgumentError, TypeError):
    """An argument of an unsupported type; the message says how to convert it."""


class UnsupportedFeatureError(IcefieldError, NotImplementedError):
    """Valid Iceberg that icefield does not support; refused rather than misread."""


class MissingVerbError(UnsupportedFeatureError, AttributeError):
    """A method of PyIceberg's tables, or one that only whole tables have; the message says what to do instead."""


class CorruptDataError(IcefieldError, ValueError):
    """Bytes or JSON that are not valid by the specification.

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
    """A storage operation was refused, failed or timed out."""


class MissingFileError(StorageError, FileNotFoundError):
    """A file that the table or the caller names does not exist."""


class ExistingFileError(StorageError, FileExistsError):
    """A file that was to be created exists already."""


class NotInstalledError(IcefieldError, ImportError):
    """An optional package is missing; the message names the extra that installs it."""


class NotFoundError(IcefieldError, LookupError):
    """Something requested by name does not exist."""


class NoSuchCatalogError(NotFoundError):
    """No catalog of this name is configured."""


class NoSuchNamespaceError(NotFoundError):
    """The namespace does not exist."""


class NoSuchTableError(NotFoundError):
    """The table does not exist."""


class NoSuchViewError(NotFoundError):
    """The view does not exist."""


class NoSuchIcebergTableError(NoSuchTableError):
    """Something of this name exists, but it is not an Iceberg table."""


class NoSuchPropertyException(NotFoundError):
    """A required property is missing."""


class AlreadyExistsError(IcefieldError):
    """The name already exists."""


class NamespaceAlreadyExistsError(AlreadyExistsError):
    """The namespace already exists."""


class TableAlreadyExistsError(AlreadyExistsError):
    """A table (or a view) of this name already exists."""


class ViewAlreadyExistsError(TableAlreadyExistsError):
    """A view (or a table) has the name of the new view already."""


class NamespaceNotEmptyError(IcefieldError):
    """The namespace still contains tables or namespaces."""


class ValidationException(IcefieldError):
    """Concurrent changes conflict with the state that the operation was planned on; plan it again."""


class TableReplacedError(ValidationException, ValueError):
    """Another table has replaced the one that was loaded; nothing was written. Load the table again.

    PyIceberg raises ``ValueError`` instead.
    """


class CommitFailedException(IcefieldError):
    """The commit failed, for example against a concurrent one; none of it is visible."""


class CommitStateUnknownException(IcefieldError):
    """The outcome of the commit is unknown; nothing was deleted. `icefield.Table.resolve_commit` finds it out later."""

    #: The snapshot of the commit, if it makes one.
    snapshot_id: int | None
    #: Files that were written for it; the table needs them if the commit has succeeded.
    files: tuple[str, ...]
    #: The metadata file that it was made of.
    base: str | None
    #: The metadata file that was to follow; ``None`` if the catalog writes it.
    location: str | None

    def __init__(
        self,
        message: str,
        snapshot_id: int | None = None,
        files: Iterable[str] = (),
        base: str | None = None,
        location: str | None = None,
    ) -> None:
        super().__init__(message)
        self.snapshot_id = snapshot_id
        self.files = tuple(files)
        self.base = base
        self.location = location

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (str(self), self.snapshot_id, self.files, self.base, self.location)


class RESTError(IcefieldError):
    """A REST catalog refused a request, answered with something that the protocol does not allow, or not at all.

    What it says about tables and namespaces is raised as `NoSuchTableError` and so on.

    Attributes
    ----------
    status
        The HTTP status; ``None`` if there was no answer.
    type
        The type of the error in the answer, such as ``"NotAuthorizedException"``, if there was one.

    """

    def __init__(self, message: str, status: int | None = None, type: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.type = type

    def __reduce__(self) -> tuple[object, ...]:
        return self.__class__, (str(self), self.status, self.type)


class BadRequestError(RESTError, ValueError):
    """The REST catalog calls the request invalid."""


class UnauthorizedError(RESTError):
    """The REST catalog does not accept the credentials."""


class AuthorizationExpiredError(UnauthorizedError):
    """The credentials have expired, and could not be renewed."""


class ForbiddenError(RESTError):
    """The credentials do not permit this operation."""


class OAuthError(RESTError):
    """The OAuth2 server gave no token."""


class ServerError(RESTError):
    """The REST catalog failed."""


class ServiceUnavailableError(ServerError):
    """The REST catalog cannot be reached, or cannot serve the request now."""


class TooManyRequestsError(ServiceUnavailableError):
    """The REST catalog has had too many requests; the last of the repeated ones was refused too."""


class InternalError(IcefieldError):
    """A bug in icefield, not a mistake of the caller. Nothing was committed."""
