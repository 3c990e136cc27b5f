"""TREC files: topics, judgements and runs, read strictly and written whole.

Readers refuse whatever two programs would understand differently, with an error ``path:line: reason`` that says what
to do. ``lenient=True`` (``--lenient`` on the command line) repairs what can be repaired, and logs what it did as
warnings of the logger ``greylag``, one line for each kind of fault. Files may be gzipped: told by content for reading,
by the suffix ``.gz`` for writing.
"""

from greylag.trec.qrels import Qrels, SubtopicQrels, has_subtopics, read_qrels, read_subtopic_qrels, write_qrels
from greylag.trec.runs import read_run, write_run
from greylag.trec.topics import read_topics

__all__ = [
    "Qrels",
    "SubtopicQrels",
    "has_subtopics",
    "read_qrels",
    "read_run",
    "read_subtopic_qrels",
    "read_topics",
    "write_qrels",
    "write_run",
]
