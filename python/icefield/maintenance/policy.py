"""Policies: which tasks are done for which tables, and when they are due."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, cast

from icefield._core import check_compaction, check_position_rewrite
from icefield._inputs.text_files import read_mapping
from icefield.errors import InvalidArgumentError
from icefield.scan.moments import age_in_milliseconds

__all__ = ["TASKS", "MaintenanceConfig", "Policy", "Settings", "is_pattern", "load"]

#: The settings of a task by name, in their types; only those that are given.
Settings: TypeAlias = Mapping[str, object]
_Check: TypeAlias = Callable[[object, str], object]

_DAY_MS = 86_400_000
#: A thousand years: times so long ago can still be written as dates.
_OLDEST_MS = 365_000 * _DAY_MS
_LONGEST_AGE = 20
_MOST = 2_147_483_647


@dataclass(frozen=True, slots=True)
class Policy:
    """The tasks of some tables."""

    #: Names of tables as ``namespace.name``, or patterns with ``*``, ``?`` and ``[...]``; ``*`` matches dots too.
    tables: tuple[str, ...]
    #: Tables that are left out, in the same form.
    without: tuple[str, ...]
    #: The settings of each task, by its name.
    tasks: Mapping[str, Settings]

    def matches(self, name: str) -> bool:
        """Return whether the policy applies to a table."""
        return any(fnmatchcase(name, one) for one in self.tables) and not any(
            fnmatchcase(name, one) for one in self.without
        )


@dataclass(frozen=True, slots=True)
class MaintenanceConfig:
    """The policies of a catalog. The first policy that matches a table applies to it."""

    #: The name of the catalog; None for the configured one.
    catalog: str | None
    #: The policies.
    policies: tuple[Policy, ...]

    def policy_of(self, name: str) -> Policy | None:
        """Return the policy of a table, as ``namespace.name``."""
        return next((one for one in self.policies if one.matches(name)), None)


def load(config: str | Path | Mapping[str, object]) -> MaintenanceConfig:
    """Read policies.

    Parameters
    ----------
    config
        A YAML file, or its contents as a mapping: ``catalog`` and ``policies``.

    Raises
    ------
    InvalidArgumentError
        If a key is unknown or a value has another form; the message names the place.

    """
    if isinstance(config, Mapping):
        content, place = config, "the configuration"
    else:
        if not isinstance(config, str | PathLike):
            raise InvalidArgumentError(f"the configuration: expected a mapping or a YAML file, got {config!r:.40}")
        path = Path(config)
        if not path.is_file():
            raise InvalidArgumentError(f"{path}: there is no such file")
        content, place = read_mapping(path), str(path)
    known = _known(content, ("catalog", "policies"), place)
    policies = known.get("policies")
    if not isinstance(policies, Sequence) or isinstance(policies, str | bytes) or not policies:
        raise InvalidArgumentError(f"{place}: policies must be a list with at least one policy")
    catalog = known.get("catalog")
    return MaintenanceConfig(
        None if catalog is None else _required_text(catalog, f"{place}: catalog"),
        tuple(_policy(one, f"{place}: policies[{number}]") for number, one in enumerate(policies)),
    )


def is_pattern(name: str) -> bool:
    """Return whether the name of a table has wildcards."""
    return any(sign in name for sign in "*?[")


def _policy(given: object, place: str) -> Policy:
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"{place}: expected a mapping with tables and tasks")
    known = _known(given, ("tables", "except", *TASKS), place)
    tables = _text_list(known.get("tables"), f"{place}.tables")
    if not tables:
        raise InvalidArgumentError(f"{place}: tables is missing: a list of names or patterns, such as nyc.*")
    tasks = {name: _settings(name, known[name], f"{place}.{name}") for name in TASKS if name in known}
    if not tasks:
        raise InvalidArgumentError(f"{place}: there is no task; known are {', '.join(TASKS)}")
    return Policy(tables, _text_list(known.get("except"), f"{place}.except"), MappingProxyType(tasks))


def _settings(task: str, given: object, place: str) -> Settings:
    # "compact:" without a value stands for the defaults.
    if given is None or given == "":
        given = {}
    if not isinstance(given, Mapping):
        raise InvalidArgumentError(f"{place}: expected settings, or nothing for the defaults; got {given!r:.40}")
    checks = _SETTINGS[task]
    known = _known(given, checks, place)
    settings = {name: checks[name](value, f"{place}.{name}") for name, value in known.items()}
    if settings.get("strategy") == "binpack" and "sort-order" in settings:
        raise InvalidArgumentError(f"{place}: the strategy binpack keeps the order of rows, and sort-order changes it")
    options = cast("dict[str, str]", settings.get("options", {}))
    if task == "compact":
        strategy, order = cast("str | None", settings.get("strategy")), cast("str | None", settings.get("sort-order"))
        _checked(lambda: check_compaction(strategy, order, {}), f"{place}.sort-order")
        _checked(lambda: check_compaction(strategy, order, options), f"{place}.options")
    elif task == "rewrite-position-deletes":
        _checked(lambda: check_position_rewrite(options), f"{place}.options")
    return MappingProxyType(settings)


def _checked(check: Callable[[], None], place: str) -> None:
    try:
        check()
    except InvalidArgumentError as error:
        raise InvalidArgumentError(f"{place}: {error}") from error


def _known(
    given: Mapping[str, object], names: Sequence[str] | Mapping[str, object], place: str
) -> Mapping[str, object]:
    for key in given:
        if key not in names:
            near = get_close_matches(str(key), names, 1)
            meant = f"did you mean {near[0]}?" if near else f"known are {', '.join(names) or 'none'}"
            raise InvalidArgumentError(f"{place}: unknown key {key!r}; {meant}")
    return given


def _required_text(value: object, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidArgumentError(f"{place}: expected text, got {value!r:.40}")
    return value


def _strategy(value: object, place: str) -> str:
    if value not in {"binpack", "sort"}:
        raise InvalidArgumentError(f"{place}: expected binpack or sort, got {value!r:.40}")
    return str(value)


def _text_list(value: object, place: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (_required_text(value, place),)
    if not isinstance(value, Sequence):
        raise InvalidArgumentError(f"{place}: expected a list of texts, got {value!r:.40}")
    return tuple(_required_text(one, f"{place}[{number}]") for number, one in enumerate(value))


def _count(value: object, place: str) -> int:
    text = str(value)
    # Ten digits are enough, and the procedures take no more.
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(_MOST))
    if isinstance(value, bool) or not is_number or not 1 <= int(text) <= _MOST:
        raise InvalidArgumentError(f"{place}: expected a whole number above 0, up to {_MOST}, got {value!r:.40}")
    return int(text)


def _share(value: object, place: str) -> float:
    try:
        share = float(str(value))
    except ValueError:
        share = -1.0
    if not 0 < share <= 1:
        raise InvalidArgumentError(f"{place}: expected a share above 0, up to 1, got {value!r:.40}")
    return share


def _flag(value: object, place: str) -> bool:
    text = str(value).lower()
    if text not in {"true", "false"}:
        raise InvalidArgumentError(f"{place}: expected true or false, got {value!r:.40}")
    return text == "true"


def _age(value: object, place: str) -> int:
    text = str(value)
    milliseconds = age_in_milliseconds(text) if len(text) <= _LONGEST_AGE else None
    if milliseconds is None:
        raise InvalidArgumentError(f"{place}: expected an age such as 7d or 12h, got {value!r:.40}")
    if milliseconds > _OLDEST_MS:
        raise InvalidArgumentError(f"{place}: at most {_OLDEST_MS // _DAY_MS}d, got {value!r:.40}")
    return milliseconds


def _orphan_age(value: object, place: str) -> int:
    age = _age(value, place)
    if age < 3 * _DAY_MS:
        msg = f"{place}: at least 3d, got {value!r:.40}: younger files may belong to a write that is not committed yet"
        raise InvalidArgumentError(msg)
    return age


def _options(value: object, place: str) -> dict[str, str]:
    if not isinstance(value, Mapping) or any(isinstance(one, Mapping | list | tuple) for one in value.values()):
        raise InvalidArgumentError(f"{place}: expected names with values, such as min-input-files: 2")
    return {
        str(name): str(one).lower() if isinstance(one, bool) else str(one) for name, one in value.items()
    }  # fmt: skip


_SETTINGS: Final[Mapping[str, Mapping[str, _Check]]] = {
    "convert-equality-deletes": {"min-files": _count},
    "compact": {
        "min-files": _count,
        "min-share": _share,
        "strategy": _strategy,
        "sort-order": _required_text,
        "options": _options,
    },
    "rewrite-position-deletes": {"min-files": _count, "options": _options},
    "remove-dangling-deletes": {},
    "rewrite-manifests": {"min-count": _count},
    "statistics": {"columns": _text_list, "every": _age},
    "expire-snapshots": {"older-than": _age, "retain-last": _count, "clean-expired-metadata": _flag},
    "remove-orphans": {"every": _age, "older-than": _orphan_age},
}

#: The tasks of policies, in the order in which they are done.
TASKS: Final = tuple(_SETTINGS)
