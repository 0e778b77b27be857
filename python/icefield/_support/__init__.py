"""Helpers for messages and optional packages, and streams for pyarrow; the core calls some of them by name."""
