"""Settings ``spark.sql.iceberg.*`` of a session: what they say of writes, and which are refused."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")

from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.spark.sessions.settings import WriteDefaults, defaults_of


def test_settings_say_how_writes_write() -> None:
    found = defaults_of(
        {
            "distribution-mode": "none",
            "compression-codec": "gzip",
            "shred-variants": "true",
            "snapshot-property.team": "x",
            "executor-cache.enabled": "false",
            "merge-schema": "false",
            "of-a-newer-connector": "1",
        }
    )
    assert found == WriteDefaults("none", {"compression-codec": "gzip"}, {"shred-variants": "true"}, {"team": "x"})
    assert defaults_of({}) == WriteDefaults()


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("merge-schema", "true", UnsupportedFeatureError, 'pass schema_mode="evolve"'),
        ("distribution-mod", "none", InvalidArgumentError, "did you mean spark.sql.iceberg.distribution-mode?"),
    ],
)
def test_settings_that_are_not_honoured_are_refused(
    name: str, value: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match="spark.sql.iceberg") as caught:
        defaults_of({name: value})
    assert message in str(caught.value)
