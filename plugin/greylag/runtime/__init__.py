"""All that touches the operating system: files, workers, interrupted work, compilation."""
