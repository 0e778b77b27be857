"""Spark sessions, their jobs and workers, and what is sent between them."""
