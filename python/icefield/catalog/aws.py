"""Clients of AWS's services by the properties of a catalog, and their errors."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from icefield._inputs.secrets import revealed
from icefield._support.optional import require
from icefield.errors import CommitStateUnknownException, IcefieldError, InvalidArgumentError, StorageError

__all__ = ["AwsService", "RefusedError", "is_repeated"]


class RefusedError(StorageError):
    """The service refused a request, so that nothing was changed; ``code`` is its reason."""

    def __init__(self, message: str, code: str, repeated: bool = False, parts: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code = code
        #: The reasons for each part of a transaction.
        self.parts = parts
        #: Whether the request was sent more than once, so that an earlier one may have been carried out.
        self.repeated = repeated


def is_repeated(error: RefusedError, code: str) -> bool:
    """Return whether a request was refused because it was carried out before, without an answer."""
    return error.repeated and error.code == code


class AwsService:
    """A service, whose client is made when it is first asked, and again in a process that was forked."""

    def __init__(self, catalog: str, service: str, properties: Mapping[str, str]) -> None:
        self._catalog = catalog
        self._service = service
        self._properties = revealed(properties)
        self._made: tuple[int, Any] | None = None
        self._making = threading.Lock()

    def ask(self, operation: str, /, **arguments: object) -> dict[str, Any]:
        """Send a request.

        Raises
        ------
        RefusedError
            If the service refused it, and nothing was changed.
        CommitStateUnknownException
            If there was no answer, or the service failed.

        """
        with self._errors(operation):
            answer: dict[str, Any] = getattr(self._client(), operation)(**arguments)
            return answer

    def read(self, operation: str, /, **arguments: object) -> dict[str, Any]:
        """Send a request that changes nothing, after which nothing is unknown: an error is a ``StorageError``."""
        try:
            return self.ask(operation, **arguments)
        except CommitStateUnknownException as error:
            raise StorageError(str(error)) from error.__cause__

    def pages(self, operation: str, /, **arguments: object) -> Iterator[dict[str, Any]]:
        """Send requests for all pages of a list."""
        try:
            with self._errors(operation):
                yield from self._client().get_paginator(operation).paginate(**arguments)
        except CommitStateUnknownException as error:
            raise StorageError(str(error)) from error.__cause__

    def close(self) -> None:
        """Close the connections."""
        made, self._made = self._made, None
        if made is not None:
            made[1].close()

    def _client(self) -> Any:
        made = self._made
        if made is None or made[0] != os.getpid():
            with self._making:
                made = self._made
                if made is None or made[0] != os.getpid():
                    self._made = made = (os.getpid(), self._new_client())
        return made[1]

    def _get(self, name: str) -> str | None:
        """Return the property of the service, or else that of all services of AWS."""
        return self._properties.get(f"{self._service}.{name}") or self._properties.get(f"client.{name}")

    def _new_client(self) -> Any:
        boto3, config = require("boto3"), require("botocore.config").Config
        attempts = self._properties.get(f"{self._service}.max-retries", "10")
        if not attempts.isdigit():
            msg = f"catalog property {self._service}.max-retries must be a number, got {attempts!r}"
            raise InvalidArgumentError(msg)
        with self._errors("session"):
            session = boto3.Session(
                profile_name=self._get("profile-name"),
                region_name=self._get("region"),
                aws_access_key_id=self._get("access-key-id"),
                aws_secret_access_key=self._get("secret-access-key"),
                aws_session_token=self._get("session-token"),
            )
            if role := self._get("role-arn"):
                session = _assumed(session, role, self._get("role-session-name"))
            return session.client(
                self._service,
                endpoint_url=self._properties.get(f"{self._service}.endpoint"),
                config=config(
                    retries={
                        "total_max_attempts": int(attempts) + 1,
                        "mode": self._properties.get(f"{self._service}.retry-mode", "standard"),
                    },
                    connect_timeout=10,
                    read_timeout=60,
                ),
            )

    @contextmanager
    def _errors(self, operation: str) -> Iterator[None]:
        require("boto3")
        failures = require("botocore.exceptions")
        where = f"catalog {self._catalog}: {self._service} {operation}"
        try:
            yield
        except IcefieldError:
            raise
        except failures.ClientError as error:
            about = error.response.get("ResponseMetadata", {})
            said = error.response.get("Error", {})
            message = f"{where}: {said.get('Code')}: {said.get('Message')}"
            # Glue's timeout has the status of a refusal.
            timeout = said.get("Code") == "OperationTimeoutException"
            if timeout or about.get("HTTPStatusCode", 500) >= 500:  # noqa: PLR2004
                raise CommitStateUnknownException(message) from error
            parts = [reason.get("Code", "") for reason in error.response.get("CancellationReasons", ())]
            raise RefusedError(message, said.get("Code", ""), about.get("RetryAttempts", 0) > 0, parts) from error
        except (failures.HTTPClientError, failures.ConnectionError) as error:
            raise CommitStateUnknownException(f"{where}: {error}") from error
        except require("botocore.parsers").ResponseParserError as error:
            raise CommitStateUnknownException(f"{where}: the answer cannot be read: {error}") from error
        except (failures.BotoCoreError, ValueError) as error:
            # Credentials, regions, profiles and parameters: nothing was sent.
            raise RefusedError(f"{where}: {error}", type(error).__name__) from error


def _assumed(session: Any, role: str, name: str | None) -> Any:
    """Return a session with the credentials of a role, which are renewed before they expire."""
    credentials, core = require("botocore.credentials"), require("botocore.session").get_session()
    if session.get_credentials() is None:
        raise InvalidArgumentError(f"no credentials of AWS were found to assume the role {role} with")
    fetcher = credentials.AssumeRoleCredentialFetcher(
        session._session.create_client,  # noqa: SLF001 - boto3 has no name for it
        session.get_credentials(),
        role,
        extra_args={"RoleSessionName": name or "icefield"},
    )
    core._credentials = credentials.DeferredRefreshableCredentials(  # noqa: SLF001
        fetcher.fetch_credentials, "assume-role"
    )
    return require("boto3").Session(botocore_session=core, region_name=session.region_name)
