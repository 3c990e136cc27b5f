"""Files of the field: topics, relevance judgements, runs, and the feature files of LETOR.

Readers are strict: anything that two programs could interpret differently is refused with an error
``path:line: reason`` that says what to do. ``lenient=True`` (``--lenient`` on the command line) repairs what can be
repaired and logs each kind of fault as one warning of the logger ``greylag``. Files may be gzipped: detected by
content when reading, and chosen by the suffix ``.gz`` when writing. Files are written atomically. Runs are read in
trec_eval's order (float32 scores, ties by docid, descending) and written with scores that decrease strictly in
float32, so a file means the same to every program.
"""
