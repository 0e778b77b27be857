"""Columns of Spark and Iceberg: names, types, texts and filters."""
