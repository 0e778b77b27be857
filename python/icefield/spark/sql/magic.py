"""The notebook magic ``%%icefield``: a cell that is one statement of SQL.

::

    %load_ext icefield.spark.sql
    session = icefield.spark.session(spark, {"local": catalog})

    %%icefield session
    SELECT carrier, count(*) FROM local.nyc.flights GROUP BY carrier
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from icefield.errors import InvalidArgumentError
from icefield.spark.sql.session import SqlSession

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["load_ipython_extension"]


def load_ipython_extension(ipython: Any) -> None:
    """Register ``%%icefield``; ``%load_ext icefield.spark.sql`` calls it.

    The line names the variable of the session, by default the only one that there is, and after ``>`` the variable
    that gets the rows: ``%%icefield session > flights``.
    """

    def run(line: str, cell: str) -> DataFrame | None:
        name, arrow, variable = (part.strip() for part in line.partition(">"))
        if arrow and not variable.isidentifier():
            raise InvalidArgumentError(f"%%icefield: expected the name of a variable after '>', got {variable!r}")
        frame = _session(ipython.user_ns, name).sql(cell)
        if arrow:
            ipython.user_ns[variable] = frame
            return None
        return frame if frame.columns else None

    ipython.register_magic_function(run, magic_kind="cell", magic_name="icefield")


def _session(variables: dict[str, Any], name: str) -> SqlSession:
    found = {
        key: value for key, value in variables.items() if isinstance(value, SqlSession) and not key.startswith("_")
    }
    if name:
        if name not in found:
            raise InvalidArgumentError(f"%%icefield: {name} is no session made by icefield.spark.session")
        return found[name]
    sessions = list({id(one): one for one in found.values()}.values())
    if len(sessions) != 1:
        known = ", ".join(sorted(found)) or "none"
        raise InvalidArgumentError(f"%%icefield: name the session, as in %%icefield session; there are: {known}")
    return sessions[0]
