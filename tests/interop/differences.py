"""What icefield answers or leaves otherwise than Java's connector in ``statements.py``, and why.

Each entry: patterns of a story, of a step and of a line that tells of the difference, and the reason. Those that a user
meets are in ``docs/differences.md`` too.
"""

from __future__ import annotations

_ROWS = r"rows .*|schema evolution|changelogs and files|types|branches and tags|audited branch"

DIFFERENCES: list[tuple[str, str, str, str]] = [
    (
        ".*",
        'MERGE|^"merge',
        r"state\.snapshots\[\d+\]\.spark\.merge-into\.",
        "Spark's own counts of a merge; `MergeResult` has ours",
    ),
    (
        _ROWS,
        ".*",
        r"state\.(next-row-id|snapshots\[\d+\]\.(first-row-id|added-rows|(added|deleted|removed|total|manifests|changed)-))",
        "files all of whose rows go are removed, not marked or rewritten, and fewer files are read",
    ),
    (
        "schema evolution",
        "UNION ALL",
        r"operation: Java 'overwrite', ours 'delete'",
        "as above: no file is written again",
    ),
    (
        "procedures",
        "rewrite_manifests",
        "entries-processed",
        "Java's procedure writes manifests outside of the commit, which then counts none of their entries",
    ),
    # Statements that do nothing
    ("changes of nothing", ".*", r"state\.", "a change that changes nothing makes no snapshot"),
    # What one of both refuses
    (".*", "SHOW PARTITIONS", r"answer\.", "the connector has no SHOW PARTITIONS"),
    (
        "dynamic overwrites",
        "9L, 'k1', 9",
        r"answer\.|state\.rows",
        "files of older specs may hold rows of the partition, so that it is refused",
    ),
    ("properties", "'x'", r"answer\.|state\.properties|state\.snap", "properties are checked when they are set"),
    ("defaults.*", ".*", ".*", "the connector cannot set defaults"),
    (
        "metadata tables",
        "VERSION AS OF",
        r"answer\.",
        "the connector ignores the version of tables that are about all snapshots",
    ),
    ("metadata tables", r"\.changes", r"answer\.", "the connector has no changelog of delete files"),
    (
        "schema evolution",
        r"rand\(\)",
        r"answer\.|state\.",
        "conditions are computed once, so that they need not be deterministic",
    ),
    (
        "namespaces.*",
        r"cat\.nosuch\.T|RENAME TO cat",
        r"answer\.|state",
        "namespaces must exist, and new names may begin with the catalog",
    ),
    (
        "settings|place columns",
        "UPDATE",
        r"data-files",
        "rows that are copied and rows that are changed are written by different tasks",
    ),
    ("place columns", "VERSION AS OF", r"answer\.", "the connector does not find the column _pos in a snapshot"),
    (
        "options of writes",
        "'isolation-level': 'serializable'|'branch': 'nosuch'",
        "answer|state",
        "without validate-from-snapshot-id the connector checks the whole history; an append creates its branch here",
    ),
    (
        "namespaces.*",
        "DESCRIBE (NAMESPACE|DATABASE)",
        "only Java .'Location'",
        "a namespace has the location that it was given",
    ),
    (
        "namespaces.*",
        "current_catalog",
        r"answer\.columns",
        "the value replaces the function, and names the column",
    ),
]
