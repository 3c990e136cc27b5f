"""Indexes: Lucene's, through Java, and the positional index that everything else reads."""
