"""Reads of tables, metadata tables, changes and streams."""
