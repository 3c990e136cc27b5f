"""The ground of all other rooms: checks, the grammar of options, tables, citations, values of other packages.

`missing_documents` is the one policy for documents that a stage knows nothing about, such as those of a dense run that
the index lacks: known documents are ranked as if the others were absent, with one warning per run.
"""
