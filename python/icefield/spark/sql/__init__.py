"""SQL about tables of icefield in a Spark session that has no jar; see `icefield.spark.session`."""

from __future__ import annotations

from icefield.spark.sql.magic import load_ipython_extension
from icefield.spark.sql.session import SqlSession
from icefield.spark.sql.statements.viewing import of_view

__all__ = ["SqlSession", "load_ipython_extension", "of_view"]
