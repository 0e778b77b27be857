"""Changes of rows by the executors: conditions and joins in Spark, files in Rust, one commit in the driver."""
