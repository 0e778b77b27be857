"""How the partition spec of a table changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icefield._core import SpecChange
from icefield._outputs.layout import partition_texts
from icefield.errors import InvalidArgumentError, UnsupportedFeatureError
from icefield.table.update.change import MetadataChange, Staging, changed_lines

if TYPE_CHECKING:
    from typing_extensions import Self

    from icefield.partitioning import PartitionSpec
    from icefield.schema import Schema
    from icefield.transforms import Transform

__all__ = ["UpdateSpec"]

#: Names of transforms in Spark and in Java's expressions.
_PLURALS = frozenset({"years", "months", "days", "hours"})
_FORMS = "identity, bucket[16], truncate[4], year, month, day, hour or void"


class UpdateSpec(MetadataChange):
    """A change of the partition spec ("Partition Evolution"), for new files; existing files do not change."""

    def __init__(self, transaction: Staging, *, standalone: bool = False, case_sensitive: bool = True) -> None:
        super().__init__(transaction, standalone=standalone)
        self._change = SpecChange(self._base, case_sensitive=case_sensitive)

    def add_field(
        self,
        source_column_name: str,
        transform: Transform | str | None = None,
        partition_field_name: str | None = None,
    ) -> Self:
        """Add a field.

        Parameters
        ----------
        source_column_name
            A column; or without ``transform`` the text of the whole field: ``"bucket(16, id)"``, ``"day(time) as d"``.
        transform
            A transform or its text.
        partition_field_name
            The name of the field; by default like ``id_bucket_16``.

        """
        if transform is None:
            self._change.add_text(source_column_name, partition_field_name)
            return self
        text = transform.lower() if isinstance(transform, str) else ""
        known = text[:-1] if text in _PLURALS else transform
        try:
            self._change.add_field(source_column_name, known, partition_field_name)
        except UnsupportedFeatureError:
            if not text:
                raise
            raise InvalidArgumentError(f"unknown transform {transform!r}: expected {_FORMS}") from None
        return self

    def add_identity(self, source_column_name: str) -> Self:
        """Add a column with the identity transform."""
        self._change.add_field(source_column_name, "identity", None)
        return self

    def remove_field(self, name: str) -> Self:
        """Remove the field of this name, or of this text (``"bucket(16, id)"``)."""
        if "(" in name and all(field.name != name for field in self._base.spec().fields):
            self._change.remove_text(name)
        else:
            self._change.remove_field(name)
        return self

    def rename_field(self, name: str, new_name: str) -> Self:
        """Rename a field."""
        self._change.rename_field(name, new_name)
        return self

    def apply(self) -> PartitionSpec:
        """Return the spec with the changes so far; its id is assigned by the commit."""
        return self._change.apply()

    def updates(self) -> list[str]:
        """Return the updates of the REST protocol, as JSON."""
        return self._change.updates()

    def _holds_changes(self) -> bool:
        return str(self.apply()) != str(self._base.spec())

    def _effects(self) -> list[str]:
        schema = self._base.schema()
        return changed_lines(_field_texts(self._base.spec(), schema), _field_texts(self.apply(), schema))


def _field_texts(spec: PartitionSpec, schema: Schema) -> list[str]:
    """Return the fields of a spec: ``day_month: month(day)``."""
    texts = partition_texts(spec, schema)
    return [f"{field.name}: {text}" for field, text in zip(spec.fields, texts, strict=True)]
