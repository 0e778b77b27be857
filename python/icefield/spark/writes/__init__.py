"""Writes by the executors: how rows are brought together, and appended."""
