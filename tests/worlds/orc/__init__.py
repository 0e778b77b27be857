"""Rows, conversions and the Java library, for ORC files."""
