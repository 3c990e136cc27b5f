"""Lucene, through Java: indexing, searching, and reading postings.

Only this folder touches Java. It takes Pyserini's jar without importing Pyserini, whose import loads torch in one
version and opens network connections in another. One thread calls Java at a time: the bridge shares the object of a
call between threads. Loops are assembled from Java's method handles, so a thousand hits cost one call.
"""
