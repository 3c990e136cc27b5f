"""Tables of scores, charts, pages of queries, and the metadata of runs."""
