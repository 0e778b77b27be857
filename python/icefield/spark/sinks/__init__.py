"""What ``format("icefield")`` writes to: tables, by batches and by streams."""
