"""All that touches the operating system: files, workers, interrupted work, compilation.

A command is deterministic, so an item's position and a digest of its inputs are the key of its result: the same command
resumes there. Results are stored as data, never as a pickle. Files and folders appear under their names only when
complete, and nothing without greylag's mark is removed. Workers never fork, which a JVM does not survive. Sums that
decide anything use one BLAS thread, since their last bits depend on the number of threads. Compiled functions use
nothing of other modules: Numba's cache would not notice a change there, and stale code gives silently wrong numbers.
"""
