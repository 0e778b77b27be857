"""What makes the credentials that the properties of a catalog ask for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from icefield.catalog.rest.login.cloud import Entra, Google
from icefield.catalog.rest.login.oauth import oauth_of
from icefield.catalog.rest.login.sigv4 import SigV4
from icefield.catalog.rest.protocol.auth import Auth, Basic, Foreign, Nothing
from icefield.catalog.rest.protocol.settings import flag, under
from icefield.errors import InvalidArgumentError, NotInstalledError

__all__ = ["auth_of"]


def auth_of(properties: Mapping[str, str], uri: str) -> Auth:
    """Return what makes the credentials, by the properties of a catalog.

    Parameters
    ----------
    properties
        The caller's properties, with secrets revealed: not those of the server, which could ask for credentials of
        other servers with them.
    uri
        Where the catalog is.

    Raises
    ------
    InvalidArgumentError
        If the type is unknown, or properties are missing or contradict each other.
    NotInstalledError
        If the type needs a package that is missing.

    """
    kind = _kind(properties)
    if "auth.impl" in properties and kind != "custom":
        raise InvalidArgumentError(f"catalog property auth.impl: it is for auth.type=custom, and the type is {kind}")
    if kind == "sigv4":
        return SigV4(properties, _delegate(properties, uri), uri)
    return _plain(kind, properties, uri)


def _kind(properties: Mapping[str, str]) -> str:
    named = properties.get("auth.type") or properties.get("rest.auth.type")
    signed = any(flag(properties, name, False) for name in ("rest.sigv4-enabled", "rest.sigv4"))  # noqa: FBT003
    if named is None:
        if signed:
            return "sigv4"
        return "oauth2" if "credential" in properties or "token" in properties else "none"
    return "sigv4" if signed else named.strip().lower()


def _delegate(properties: Mapping[str, str], uri: str) -> Auth:
    named = properties.get("rest.auth.sigv4.delegate-auth-type")
    if named is None and not ("credential" in properties or "token" in properties):
        return Nothing()
    return _plain((named or "oauth2").lower(), properties, uri)


def _plain(kind: str, properties: Mapping[str, str], uri: str) -> Auth:
    if kind in {"none", "noop"}:
        return Nothing()
    if kind == "basic":
        own = {**under(properties, "rest.auth.basic."), **under(properties, "auth.basic.")}
        return Basic(_needed(own, "username", "auth.basic."), _needed(own, "password", "auth.basic."))
    if kind in {"oauth2", "legacyoauth2"}:
        return oauth_of(properties, uri)
    if kind == "custom":
        return _custom(properties)
    if kind == "google":
        return Google(properties)
    if kind == "entra":
        return Entra(properties)
    msg = f"catalog property auth.type={kind}: expected none, basic, oauth2, sigv4, google, entra or custom"
    raise InvalidArgumentError(msg)


def _needed(properties: Mapping[str, str], name: str, prefix: str) -> str:
    if (found := properties.get(name)) is None:
        raise InvalidArgumentError(f"catalog property {prefix}{name} is missing")
    return found


def _custom(properties: Mapping[str, str]) -> Auth:
    named = _needed(properties, "auth.impl", "")
    what = f"the property auth.impl={named!r}"
    module, _, attribute = named.rpartition(".")
    if not module:
        raise InvalidArgumentError(f"{what}: expected the full name of a class, such as 'package.module.Class'")
    try:
        made = getattr(import_module(module), attribute)(**under(properties, "auth.custom."))
    except ModuleNotFoundError as error:
        raise NotInstalledError(f"{what}: {error}") from error
    except (AttributeError, TypeError) as error:
        raise InvalidArgumentError(f"{what}: {error}") from error
    if callable(getattr(made, "headers", None)) and callable(getattr(made, "renew", None)):
        found: Auth = made
        return found
    if callable(getattr(made, "auth_header", None)):
        return Foreign(made)
    raise InvalidArgumentError(f"{what}: expected the methods headers() and renew(), or auth_header()")
