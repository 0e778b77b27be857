"""Files that Java's own writers add to a table: rows copied into new files, and deletes of each kind.

Part of ``java_peer.py``. Rows never cross into Python: Java reads them, and writes them again or their keys.
"""

from __future__ import annotations

from typing import Any


class Writes:
    """Commits through the Java API, without a Spark job."""

    def __init__(self, jvm: Any, gateway: Any, table: Any) -> None:
        self.jvm = jvm
        self.gateway = gateway
        self.table = table
        self.iceberg = jvm.org.apache.iceberg

    def _output(self, file_format: Any) -> Any:
        builder = self.iceberg.io.OutputFileFactory.builderFor(self.table, 1, 1)
        return builder.format(file_format).build()

    def _factory(self) -> Any:
        return getattr(self.iceberg.data, "GenericFileWriterFactory$Builder")(self.table)

    def _rows(self, ids: list[int]) -> dict[str, tuple[Any, list[Any]]]:
        """Read the rows with these ids, by partition of the current spec."""
        read = self.iceberg.data.IcebergGenerics.read(self.table)
        where = {"type": "in", "term": "id", "values": ids}
        import json

        records = read.where(self.iceberg.expressions.ExpressionParser.fromJson(json.dumps(where))).build().iterator()
        schema, spec = self.table.schema(), self.table.spec()
        key = self.iceberg.PartitionKey(spec, schema)
        wrapper = self.iceberg.data.InternalRecordWrapper(schema.asStruct())
        found: dict[str, tuple[Any, list[Any]]] = {}
        while records.hasNext():
            record = records.next()
            key.partition(wrapper.wrap(record))
            found.setdefault(str(key.toPath()), (key.copy(), []))[1].append(record)
        return found

    def copy(self, ids: list[int], file_format: str = "parquet", fast: bool = False) -> int:
        """Append the rows with these ids once more, a file a partition."""
        kind = self.iceberg.FileFormat.fromString(file_format)
        append = self.table.newFastAppend() if fast else self.table.newAppend()
        factory = self._factory().dataFileFormat(kind).dataSchema(self.table.schema()).build()
        output, spec, count = self._output(kind), self.table.spec(), 0
        for key, records in self._rows(ids).values():
            writer = factory.newDataWriter(output.newOutputFile(spec, key), spec, key)
            for record in records:
                writer.write(record)
            writer.close()
            append.appendFile(writer.toDataFile())
            count += 1
        append.commit()
        return count

    def delete_equal(self, ids: list[int], columns: list[str], everywhere: bool = False) -> int:
        """Delete rows equal to these in some columns; ``everywhere`` if a spec without fields exists."""
        schema, spec = self.table.schema(), self.table.spec()
        plain = [other for other in self.table.specs().values() if other.isUnpartitioned()]
        everywhere = everywhere and bool(plain)
        numbers = self.gateway.new_array(self.gateway.jvm.int, len(columns))
        for place, name in enumerate(columns):
            numbers[place] = schema.findField(name).fieldId()
        parquet = self.iceberg.FileFormat.PARQUET
        factory = self._factory().deleteFileFormat(parquet).equalityFieldIds(numbers)
        factory = factory.equalityDeleteRowSchema(schema).build()
        output, delta, count = self._output(parquet), self.table.newRowDelta(), 0
        groups = list(self._rows(ids).values())
        if everywhere and groups:
            spec = plain[0]
            groups = [(None, [record for _, records in groups for record in records])]
        for key, records in groups:
            file = output.newOutputFile(spec, key) if key is not None else output.newOutputFile()
            writer = factory.newEqualityDeleteWriter(file, spec, key)
            for record in records:
                writer.write(record)
            writer.close()
            delta.addDeletes(writer.toDeleteFile())
            count += 1
        delta.commit()
        return count

    def delete_positions(self, places: list[int], together: bool = False) -> int:
        """Delete the first row of some data files and every third after it, a file of deletes each or a partition."""
        chosen = self._files(places)
        parquet = self.iceberg.FileFormat.PARQUET
        factory, output = self._factory().deleteFileFormat(parquet).build(), self._output(parquet)
        groups: dict[str, list[Any]] = {}
        for file in chosen:
            name = f"{file.specId()}/{file.partition()}" if together else str(file.location())
            groups.setdefault(name, []).append(file)
        delta = self.table.newRowDelta()
        for files in groups.values():
            spec = self.table.specs().get(files[0].specId())
            key = files[0].partition()
            out = output.newOutputFile(spec, key) if spec.isPartitioned() else output.newOutputFile()
            writer = factory.newPositionDeleteWriter(out, spec, key)
            for file in files:
                for position in range(0, file.recordCount(), 3):
                    delete = self.iceberg.deletes.PositionDelete.create()
                    writer.write(delete.set(file.location(), position))
            writer.close()
            delta.addDeletes(writer.toDeleteFile())
        delta.commit()
        return len(groups)

    def delete_vectors(self, places: list[int]) -> int:
        """Delete likewise by deletion vectors, all in one Puffin file; files that have one are left alone."""
        nothing = self.jvm.com.google.common.base.Functions.constant(None)
        writer = self.iceberg.deletes.BaseDVFileWriter(self._output(self.iceberg.FileFormat.PUFFIN), nothing)
        for file in self._files(places, without_vector=True):
            spec = self.table.specs().get(file.specId())
            for position in range(0, file.recordCount(), 3):
                writer.delete(file.location(), position, spec, file.partition())
        writer.close()
        made = list(writer.result().deleteFiles())
        delta = self.table.newRowDelta()
        for file in made:
            delta.addDeletes(file)
        delta.commit()
        return len(made)

    def _files(self, places: list[int], *, without_vector: bool = False) -> list[Any]:
        """List the data files at these places in the order of their paths, counted round."""
        tasks, found = self.table.newScan().planFiles().iterator(), []
        while tasks.hasNext():
            task = tasks.next()
            kinds = [str(delete.format()) for delete in task.deletes()]
            if not (without_vector and "PUFFIN" in kinds):
                found.append(task.file())
        found.sort(key=lambda file: str(file.location()))
        return [found[place] for place in sorted({place % len(found) for place in places})] if found else []
