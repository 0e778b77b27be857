"""The grammar of statements: over the tokens that sqlglot finds, without Spark."""
