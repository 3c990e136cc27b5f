"""Formats: valid examples, greylag's reader, and an oracle that says independently what a file contains.

The oracles read bytes by the documented formats: columns are separated by C's white space, lines end in LF, numbers are
decimal. They accept more than greylag, which may refuse what is ambiguous, but must not read it differently.
"""

import gzip
import json
import math
import random
import re
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import yaml

from greylag.base.runtime.yaml_text import read_yaml
from greylag.diversity import PRESETS
from greylag.diversity.model import DiversityModel
from greylag.evaluation import read_qrels, read_run, read_subtopic_qrels, read_titles, read_topics
from greylag.features.evidence import Prior
from greylag.features.spec import candidate_pool
from greylag.index.lucene.documents import write_for_anserini
from greylag.learning.letor import read_letor
from greylag.learning.model_files import trained_topics
from greylag.rankers.model import RankingModel
from greylag.recipes import HybridModel
from tests.greylag.learning.samples import row_names

WORDS = ["goose", "greylag", "barnacle", "snow", "Gänse", "über", "x", "0", "tundra", "brent"]
NAMES = ["d1", "GX029-35", "FT911-3", "é1", "a_b", "10", "d#2", "doc$x", "Q0", "d.9"]
_NUMBER = re.compile(rb"[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?", re.IGNORECASE)


class RefusedError(Exception):
    """The oracle cannot read a file."""


class Format(NamedTuple):
    """A format: makes a valid file, reads it with greylag, and reads its content independently."""

    make: Callable[[random.Random], bytes]
    read: Callable[[Path], Any]
    oracle: Callable[[bytes], Any]


def need(condition):
    if not condition:
        raise RefusedError


def number(text):
    need(_NUMBER.fullmatch(text))
    return float(text)


def decoded(text):
    """The content, unpacked, without a byte-order mark and with LF line ends."""
    content = gzip.decompress(text) if text.startswith(b"\x1f\x8b") else text
    return content.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")


def unique(pairs):
    need(len(dict(pairs)) == len(pairs))
    return dict(pairs)


read_json = partial(json.loads, object_pairs_hook=unique)  # programs differ about a key that is given twice


def rows(text, width, *, further=False):
    found = [row for line in decoded(text).split(b"\n") if (row := line.decode().encode().split())]
    need(all(len(row) == width or (further and len(row) > width) for row in found))
    return [[cell.decode() for cell in row[:width]] for row in found]


def phrase(rng):
    return " ".join(rng.choices(WORDS, k=rng.randint(1, 4)))


def qids(rng):
    return rng.sample(["1", "2", "301", "q-7", "é", "10032"], rng.randint(1, 4))


def make_qrels(rng):
    lines = [
        f"{q} {rng.choice(['0', 'Q0', '1', '4.5'])} {d} {rng.randint(-2, 4)}\n"
        for q in qids(rng)
        for d in rng.sample(NAMES, 3)
    ]
    return "".join(lines).encode()


def without_comments(text):
    return b"\n".join(line for line in decoded(text).split(b"\n") if not line.startswith(b"#"))


def whole(text):
    """A grade: a whole number, also as 2.0."""
    need(re.fullmatch(r"[-+]?([0-9]+[.]?[0-9]*|[.][0-9]+)", text) and float(text).is_integer())
    return int(float(text))


def qrels_oracle(text):
    text, found = without_comments(text), dict[str, dict[str, int]]()
    for qid, _, docid, grade in rows(text, 4):
        need(docid not in found.setdefault(qid, {}))
        found[qid][docid] = whole(grade)
    return found


def make_subtopic_qrels(rng):
    lines = [
        f"{q} {s} {d} {rng.randint(0, 1)}\n" for q in qids(rng) for s in ("1", "2", "b") for d in rng.sample(NAMES, 2)
    ]
    return "".join([*lines, "1 0 d9 0\n"]).encode()


def subtopics_oracle(text):
    text, found = without_comments(text), {}
    for qid, subtopic, docid, spelt in rows(text, 4):
        grade = whole(spelt)
        judged = found.setdefault(qid, {})
        known = judged.setdefault(subtopic, {})
        need(docid not in known or (subtopic in ("0", "Q0") and grade <= 0 >= known[docid]))
        known.setdefault(docid, grade)
    relevant = {name for judged in found.values() for name, grades in judged.items() if max(grades.values()) > 0}
    need(not relevant or {name for judged in found.values() for name in judged} - {"0", "Q0"})
    return {
        qid: {
            "" if name in ("0", "Q0") and max(grades.values()) <= 0 else name: grades for name, grades in judged.items()
        }
        for qid, judged in found.items()
    }


def make_run(rng):
    lines = []
    for qid in qids(rng):
        scores = sorted((round(rng.uniform(-5, 30), rng.randint(0, 6)) for _ in range(4)), reverse=True)
        for rank, (docid, score) in enumerate(zip(rng.sample(NAMES, 4), scores, strict=True), 1):
            lines.append(f"{qid} Q0 {docid} {rank} {score} bm25\n")
    return "".join(lines).encode()


def read_plain_run(path):
    run = read_run(path)
    return run.tag, {qid: (list(ranking.docids), ranking.scores.tolist()) for qid, ranking in run.items()}


def run_oracle(text):
    text, found = without_comments(text), {}
    with suppress(RefusedError):  # MS MARCO's
        ranks = [(qid, docid, int(rank)) for qid, docid, rank in rows(text, 3) if need(rank.isdigit()) is None]
        lines = [[qid, "Q0", docid, str(rank), repr(1 / rank), "file"] for qid, docid, rank in ranks]
        text = "".join(" ".join(line) + "\n" for line in lines).encode()
    lines = rows(text, 6, further=True)
    for qid, _, docid, _, score, _ in lines:
        need(docid not in found.setdefault(qid, {}))
        found[qid][docid] = float(np.float32(number(score.encode())))
    ordered = {}
    for qid, scores in found.items():
        docids = sorted(scores, key=lambda docid: (scores[docid], docid), reverse=True)
        ordered[qid] = docids, [scores[docid] for docid in docids]
    return lines[0][5], ordered


def make_prior(rng):
    return "".join(f"{d}{rng.choice([' ', chr(9)])}{rng.uniform(-3, 3):.6g}\n" for d in rng.sample(NAMES, 5)).encode()


def prior_oracle(text):
    found = {}
    for docid, value in rows(text, 2):
        need(docid not in found)
        found[docid] = number(value.encode())
        need(math.isfinite(found[docid]))
    return found


def make_letor(rng):
    lines, start = [], rng.randint(0, 1)
    for qid in qids(rng):
        for docid in rng.sample(NAMES, 2):
            cells = " ".join(f"{i}:{rng.uniform(-1, 1):.4g}" for i in range(start, 5) if rng.random() < 0.8 or i == 1)
            comment = rng.choice([f" # {docid}", f" #docid = {docid} inc = 0.1 prob = 0.2"])
            lines.append(f"{rng.randint(-1, 3)} qid:{qid} {cells}{comment}\n")
    return "".join(lines).encode()


def read_rows_of_letor(path):
    data = read_letor(path)
    owners = [qid for qid, n in zip(data.qids, np.diff(data.offsets), strict=True) for _ in range(n)]
    values = [{i: v for i, v in enumerate(row, data.names[0] != "0") if v} for row in data.features.tolist()]
    return list(zip(owners, data.docids, data.grades.tolist(), values, strict=True))


def letor_oracle(text):
    found, seen = [], set()
    for line in decoded(text).decode().removesuffix("\n").split("\n"):
        if line.startswith("#") or not line.encode().strip():
            continue
        body, _, comment = line.partition("#")
        grade, qid, *cells = (word.decode() for word in body.encode().split())
        need(re.fullmatch(r"[-+]?[0-9]+", grade) and qid.startswith("qid:") and len(qid) > 4 and cells)
        pairs = [cell.split(":", 1) for cell in cells]
        values = {int(key): number(value.encode()) for key, value in pairs if re.fullmatch("[0-9]+", key)}
        need(len(values) == len(cells) and min(values) >= 0 and all(map(math.isfinite, values.values())))
        words = [word.decode() for word in comment.encode().split()]
        docid = (words[2:] if words[:2] == ["docid", "="] else words) or [None]
        need(docid[0] is None or (qid, docid[0]) not in seen)
        seen.add((qid, docid[0]))
        found.append((qid[4:], docid[0], int(grade), {key: value for key, value in values.items() if value}))
    names = row_names((qid, docid, values) for qid, docid, _, values in found)
    return [(qid, name, *rest) for (qid, _, *rest), name in zip(found, names, strict=True)]


def make_table(rng):
    return "".join(f"{qid}\t{phrase(rng)}\n" for qid in qids(rng)).encode()


def table_oracle(text):
    found = {}
    for line in filter(str.strip, decoded(text).decode().split("\n")):
        qid, words = line.split("\t")
        need(qid.strip() not in found)
        found[qid.strip()] = " ".join(words.split())
    return found


def make_trec(rng):
    closing = rng.choice(["", "</title>"])
    return "".join(
        f"<top>\n<num> Number: {qid}\n<title> {phrase(rng)} {closing}\n<desc> Description:\n{phrase(rng)}\n</top>\n\n"
        for qid in qids(rng)
    ).encode()


def make_cacm(rng):
    return "".join(f"<DOC>\n<DOCNO> {qid} </DOCNO>\n{phrase(rng)}\n</DOC>\n" for qid in qids(rng)).encode()


def make_xml(rng):
    topics = (f'<topic number="{qid}">\n<query>{phrase(rng)}</query>\n</topic>\n' for qid in qids(rng))
    return f"<web>\n{''.join(topics)}</web>\n".encode()


class Marked(NamedTuple):
    """What can be said of topics with markup without parsing it: equal if count, names and words fit."""

    text: str
    count: int

    def __eq__(self, other):
        if not isinstance(other, dict) or len(other) != self.count:
            return False
        return all(word in self.text for qid, topic in other.items() for word in (qid, *topic.split()))

    __hash__ = None


def marked_oracle(text):
    content = decoded(text).decode()
    if not content.lstrip().startswith("<"):
        return table_oracle(text)
    opening = re.search(r"<(top|doc|topic)\b", content, re.IGNORECASE)
    need(opening)
    tag = opening[1] if opening else ""
    entities = content.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">").replace("<![CDATA[", " ")
    return Marked(content + entities, len(re.findall(rf"<{tag}\b[^<>]*>", content, re.IGNORECASE)))


def make_titles(rng):
    lines = [{"id": rng.choice([d, n]), "title": phrase(rng)} for n, d in enumerate(rng.sample(NAMES, 4))]
    return "".join(json.dumps(line, ensure_ascii=rng.random() < 0.5) + "\n" for line in lines).encode()


def titles_oracle(text):
    found = {}
    for line in decoded(text).decode().split("\n"):
        if line.strip():
            record = read_json(line)
            need(type(record["id"]) in (str, int) and isinstance(record.get("title", ""), str))
            need(str(record["id"]) not in found)
            found[str(record["id"])] = record.get("title", "")
    return found


def make_json_documents(rng):
    documents = [{"id": d, "contents": phrase(rng)} for d in rng.sample(NAMES, 4)]
    documents[0]["title"] = phrase(rng)
    if rng.random() < 0.3:
        return json.dumps(documents, indent=1).encode()
    return "".join(json.dumps(document) + "\n" for document in documents).encode()


def read_documents(form):
    def read(path):
        with tempfile.TemporaryDirectory() as folder:
            laid_out, count = write_for_anserini(path, form, Path(folder), 1)
            if laid_out != "JsonCollection":
                return count
            lines = (Path(folder) / "0.jsonl").read_text().splitlines()
            found = [(line["id"], line["contents"]) for line in map(json.loads, lines)]
            assert len(found) == count
            return found

    return read


def json_documents_oracle(text):
    content = decoded(text).decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    found, place = [], 0
    while place < len(content):
        if content[place].isspace():
            place += 1
            continue
        value, place = json.JSONDecoder(object_pairs_hook=unique).raw_decode(content, place)
        for record in value if isinstance(value, list) else [value]:
            need(type(record["id"]) in (str, int) and isinstance(record["contents"], str))
            title = record.get("title")
            text = "\n".join(filter(None, (title, record["contents"])))
            found.append((str(record["id"]), text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")))
    return found


def make_trec_documents(rng):
    return "".join(
        f"<DOC>\n<DOCNO> {d} </DOCNO>\n<TEXT>\n{phrase(rng)}\n</TEXT>\n</DOC>\n" for d in rng.sample(NAMES, 3)
    ).encode()


class Documents(NamedTuple):
    """The docids of TREC documents: equal to their number, or to documents with these ids."""

    docids: list[str]

    def __eq__(self, other):
        if isinstance(other, list):
            return [docid for docid, _ in other] == self.docids
        return other == len(self.docids)

    __hash__ = None


def trec_documents_oracle(text):
    content = decoded(text).decode("utf-8-sig", errors="replace")
    need(content.count("<DOC>") == content.count("</DOC>"))
    docids = [docid.strip() for docid in re.findall(r"<DOCNO>(.*?)</DOCNO>", content, re.DOTALL)]
    need(len(docids) == content.count("<DOC>"))
    return Documents(docids)


def make_yaml(rng):
    fields = {"name": phrase(rng), "collection": {"docs": "docs.jsonl"}, "measures": ["AP", "P@10"], "seed": 3}
    return yaml.safe_dump(fields, sort_keys=False, default_flow_style=rng.choice([None, True, False])).encode()


class Plain(yaml.SafeLoader):
    """YAML 1.2 in terms of Python's numbers: other texts, such as dates and no, are texts."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (as yaml has it)


for kind, pattern in (
    ("null", r"(~|null|Null|NULL|)\Z"),
    ("bool", r"(true|false|True|False|TRUE|FALSE)\Z"),
    ("int", r"([-+]?\d+|0o[0-7]+|0x[\da-fA-F]+)\Z"),
    ("float", r"([-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN))\Z"),
):
    Plain.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(pattern, re.ASCII), None)
Plain.add_constructor(
    "tag:yaml.org,2002:int", lambda _, node: int(node.value, 0 if "o" in node.value or "x" in node.value else 10)
)
Plain.add_constructor("tag:yaml.org,2002:float", lambda _, node: float(re.sub(r"\.(?=[inIN])", "", node.value)))


def yaml_oracle(text):
    content = yaml.load(decoded(text).decode("utf-8-sig"), Plain)
    need(isinstance(content, dict))
    return repr(content)


def make_linear_model(rng):
    features = tuple(rng.sample(candidate_pool(), 3))
    model = RankingModel(features, tuple(rng.uniform(-1, 1) for _ in features), fingerprint="f", provenance={"seed": 1})
    return saved(model)


def saved(model):
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model.json")
        return (Path(folder) / "model.json").read_bytes()


def read_linear_model(path):
    model = RankingModel.load(path)
    return [*map(str, model.features)], list(model.weights), model.parameters.as_dict(), model.fingerprint


def linear_model_oracle(text):
    content = read_json(decoded(text))
    names = [re.sub("^(?=[0-9]+$)", "column:", row["feature"].strip()) for row in content["features"]]
    weights = [float(row["weight"]) for row in content["features"]]
    return names, weights, DEFAULTS | content["parameters"], content["fingerprint"]


DEFAULTS = RankingModel((), ()).parameters.as_dict()


def make_diversity_model(rng):
    features = next(iter(PRESETS.values()))
    weights = tuple(round(rng.uniform(-1, 1), 3) for _ in features.names)
    return saved(DiversityModel(features, (weights,) * rng.randint(1, 2), k=5, fingerprint="f"))


def read_diversity_model(path):
    model = DiversityModel.load(path)
    weights = [list(vector) for vector in zip(*model.weights, strict=True)]
    return list(model.features.names), weights, model.k, model.titles, model.fingerprint


def diversity_model_oracle(text):
    content = read_json(decoded(text))
    weights = [[float(weight) for weight in own] for own in content["weights"].values()]
    return list(content["weights"]), weights, content["k"], content["titles"], content["fingerprint"]


def make_hybrid_weight(rng):
    return saved(HybridModel(round(rng.uniform(0.25, 16), 3), "f", {"queries": ["1", "2"]}))


def read_hybrid_weight(path):
    model = HybridModel.load(path)
    return model.weight, model.fingerprint, sorted(trained_topics(model.provenance))


def hybrid_weight_oracle(text):
    content = read_json(decoded(text))
    return float(content["weight"]), content["fingerprint"], sorted({*content["provenance"].get("queries", [])})


FORMATS = {
    "qrels": Format(make_qrels, read_qrels, qrels_oracle),
    "subtopic qrels": Format(make_subtopic_qrels, read_subtopic_qrels, subtopics_oracle),
    "run": Format(make_run, read_plain_run, run_oracle),
    "prior": Format(make_prior, lambda path: Prior(str(path))._read(), prior_oracle),
    "LETOR": Format(make_letor, read_rows_of_letor, letor_oracle),
    "table of topics": Format(make_table, read_topics, table_oracle),
    "TREC topics": Format(make_trec, read_topics, marked_oracle),
    "CACM topics": Format(make_cacm, read_topics, marked_oracle),
    "XML topics": Format(make_xml, read_topics, marked_oracle),
    "titles": Format(make_titles, read_titles, titles_oracle),
    "JSON documents": Format(make_json_documents, read_documents("JsonCollection"), json_documents_oracle),
    "TREC documents": Format(make_trec_documents, read_documents("TrecCollection"), trec_documents_oracle),
    "experiment": Format(make_yaml, lambda path: repr(read_yaml(path)), yaml_oracle),
    "linear model": Format(make_linear_model, read_linear_model, linear_model_oracle),
    "diversity model": Format(make_diversity_model, read_diversity_model, diversity_model_oracle),
    "hybrid weight": Format(make_hybrid_weight, read_hybrid_weight, hybrid_weight_oracle),
}
