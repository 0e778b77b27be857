//! The ORC file format, read and written to and from Arrow.
