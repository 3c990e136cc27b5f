from .qrels import Qrels as Qrels
from .qrels import SubtopicQrels as SubtopicQrels
from .qrels import read_qrels as read_qrels
from .qrels import read_subtopic_qrels as read_subtopic_qrels
from .qrels import write_qrels as write_qrels
from .runs import read_run as read_run
from .runs import write_run as write_run
from .streams import QueryLines as QueryLines
from .streams import RunFile as RunFile
from .streams import open_run as open_run
from .streams import write_members as write_members
from .streams import write_rankings as write_rankings
from .topics import read_topics as read_topics

__all__ = [
    "Qrels",
    "QueryLines",
    "RunFile",
    "SubtopicQrels",
    "open_run",
    "read_qrels",
    "read_run",
    "read_subtopic_qrels",
    "read_topics",
    "write_members",
    "write_qrels",
    "write_rankings",
    "write_run",
]
