"""SQL about tables of icefield in a Spark session that has no jar; see `icefield.spark.session`."""

from __future__ import annotations

from icefield.spark.sql.magic import load_ipython_extension as load_ipython_extension  # IPython looks for it here
from icefield.spark.sql.session import SqlSession

__all__ = ["SqlSession"]
