"""What icefield answers or leaves otherwise than Java's connector in ``statements.py``, and why.

Each entry: patterns of a story, of a step and of a line that tells of the difference, and the reason. Those that a user
meets are in ``docs/differences.md`` too.
"""

# ruff: noqa: E501 - a difference stands in one line
from __future__ import annotations

_CHANGED = r"rows .*|schema evolution|changelogs.*|types|branches and tags|audited branch|settings|place columns|frames|audited|orders|partition fields|metadata tables|procedures|.*overwrites"
_COUNTS = (
    r"state\.(next-row-id|snapshots\[\d+\]\.(first-row-id|added-rows|(added|deleted|removed|total|manifests|changed)-))"
)

# fmt: off
DIFFERENCES: list[tuple[str, str, str, str]] = [
    (".*", "MERGE|merge", r"spark\.merge-into\.", "Spark's own counts of a merge; `MergeResult` has ours"),
    (
        _CHANGED,
        ".*",
        _COUNTS,
        "files all of whose rows go are removed, not marked or rewritten; fewer files are read; rows that are copied and rows that are changed are written by different tasks",
    ),
    (_CHANGED, "UNION ALL|DELETE", r"operation: Java 'overwrite', ours 'delete'", "so no file may be written"),
    ("created.*", "REPLACE", r"operation: Java 'overwrite', ours 'append'", "an overwrite that removes nothing is an append"),
    ("procedures", "rewrite_manifests", "entries-processed", "Java's procedure writes manifests outside of the commit, which counts none of their entries"),
    ("changelogs.*", "add_files", r"answer\.rows|partition-count", "the partitions of added files are counted"),
    # Statements that do nothing
    ("changes of nothing", ".*", r"state\.", "a change that changes nothing makes no snapshot"),
    # What is shown
    (".*", "SHOW CREATE", r"answer\.rows", "properties that are no table properties are left out, so that the statement runs"),
    (".*", "DESCRIBE TABLE EXTENDED", "only Java .'(Statistics|Table_type)'", "there are no such entries"),
    ("namespaces.*", "DESCRIBE (NAMESPACE|DATABASE)", "only Java .'Location'", "a namespace has the location that it was given"),
    ("namespaces.*", "current_catalog", r"answer\.columns", "the value replaces the function, and names the column"),
    ("functions.*", r"SELECT cat\.system\.bucket\(16, id\) FROM", r"answer\.columns", "the function of icefield that is called names the column"),
    ("conditions.*", "min-input-files|rewrite_data_files\\('db", r"answer\.rows\[0\]\[2\]", "each writer has sizes of files of its own"),
    # What one of both refuses
    (".*", "SHOW PARTITIONS", r"answer", "the connector has no SHOW PARTITIONS"),
    ("dynamic overwrites", "9L, 'k1', 9", r"answer|state\.", "files of older specs may hold rows of the partition, so that it is refused"),
    ("properties", "'x'|SHOW TBL", r"answer|state\.properties", "properties are checked when they are set"),
    ("defaults.*", ".*", ".*", "the connector cannot set defaults"),
    ("functions.*", r"truncate\(10, id|truncate\(50, num", "answer", "a function has one type of results: `system.truncate` is for strings, others have functions of their own"),
    ("functions.*", "iceberg_version", "answer", "it is about the Java library, which is not there"),
    ("documented changes.*", "TYPE double COMMENT", r"answer|state\.schema", "Iceberg's documentation has it, and Spark's grammar has not"),
    ("metadata tables", "VERSION AS OF", "answer", "the connector ignores the version of tables that are about all snapshots"),
    ("metadata tables", r"\.changes", "answer", "the connector has no changelog of delete files"),
    ("place columns", "VERSION AS OF", "answer", "the connector does not find the column _pos in a snapshot"),
    ("schema evolution", r"rand\(\)", r"answer|state\.", "conditions are computed once, so that they need not be deterministic"),
    ("namespaces.*", r"cat\.nosuch\.T|RENAME TO cat", "answer|state", "namespaces must exist, and new names may begin with the catalog"),
    ("changelogs.*", "'start-snapshot-id', '1'", "answer", "an unknown snapshot is refused when the view is made, not when it is read"),
    (
        "options of writes",
        "'isolation-level': 'serializable'|'branch': 'nosuch'",
        "answer|state",
        "without validate-from-snapshot-id the connector checks the whole history; an append creates its branch here",
    ),
]
# fmt: on
