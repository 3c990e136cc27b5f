"""Tests `rerank`, `ranking_inputs`, `vector_inputs`, `model_inputs`."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import pytrec_eval

from greylag import (
    GeneralRanker,
    LuceneIndex,
    PositionalIndex,
    Query,
    Ranking,
    Run,
    evaluate,
    read_qrels,
    read_run,
    read_topics,
    write_run,
)
from greylag.base import read_json_lines
from greylag.base.ranking import SEEN
from greylag.cli.model_inputs import seen_topics
from greylag.diversity import CSSVM, MMR, Coverage, DiversityModel, GroupLimit, RandomOrder, SVMDiv, XQuAD
from greylag.evaluation import read_subtopic_qrels, read_titles, split_folds
from greylag.features.evidence import RunScore
from greylag.features.named_files import followed
from greylag.features.spelling import parse_feature
from greylag.index import ArrayVectors
from greylag.rankers import ManifoldRanker, MaxPassage, RankingModel
from greylag.recipes import HybridModel, HybridSearch, train
from greylag.recipes.spelling import parse_model
from tests.greylag.cli.conftest import DEMO, ON_BOTH_INDEXES, spelt, unremarked, write_qrels


def test_queries_that_are_documents_are_left_out_as_in_beir(command, made, tmp_path):
    """Of searching, training and scoring; the figures are pytrec_eval's without identical identifiers."""
    texts = {doc["id"]: doc["contents"] for _, doc in read_json_lines(DEMO / "docs.jsonl")}
    relevant = [[d for d, grade in judged.items() if grade > 0] for judged in read_qrels(made / "qrels.txt").values()]
    qrels = {docids[0]: dict.fromkeys(docids[1:], 1) for docids in relevant if len(docids) > 2}
    write_qrels(qrels, tmp_path / "qrels")
    (tmp_path / "topics.tsv").write_text("".join(f"{qid}\t{texts[qid]}\n" for qid in qrels))
    searched = ["--index", made / "index", "--topics", tmp_path / "topics.tsv"]
    runs = [tmp_path / "bm25.run", tmp_path / "others.run", tmp_path / "held-out.run"]
    assert command("search", *searched, "--hits", 20, "--out", runs[0])[0] == 0
    assert command("rerank", "--run", runs[0], "--stage", "leave-out-self", "--out", runs[1]) == (0, "", "")
    words = ["--qrels", tmp_path / "qrels", "--model", "mrf", "--features", "score", "--folds", 2]
    words += ["--out", tmp_path / "model.json", "--out-run", runs[2]]
    assert command("train", *searched, "--run", runs[1], *words)[0] == 0
    first, others, held_out = map(read_run, runs)
    assert all(first[qid].docids[0] == qid for qid in qrels)
    assert [held_out[qid].docids for qid in qrels] == [others[qid].docids for qid in qrels]  # by the score alone
    scores = {qid: {d: s for d, s in zip(r.docids, r.scores, strict=True) if d != qid} for qid, r in first.items()}
    theirs = pytrec_eval.RelevanceEvaluator(qrels, {"ndcg_cut_10"}).evaluate(scores)
    expected = np.mean([of_query["ndcg_cut_10"] for of_query in theirs.values()])
    assert evaluate(others, qrels, "nDCG@10").means[0] == pytest.approx(expected, abs=1e-12)
    assert evaluate(first, qrels, "nDCG@10").means[0] < expected - 0.05


def test_passages_to_documents_by_the_best_passage(command, tmp_path):
    """As `hits_iterator` of Pyserini's `OutputWriter` has it."""
    random, rankings, expected = np.random.default_rng(0), [], {}
    for qid in "ab":
        passages = [f"d{d}#{p}" for d in range(6) for p in range(4)] + ["whole", "d7#1#2"]
        hits = list(zip(random.permutation(passages).tolist(), np.arange(26.0, 0, -1).tolist(), strict=True))
        rankings.append(Ranking(qid, "", *map(tuple, zip(*hits, strict=True))))
        seen = []
        for docid, score in hits:
            if docid.split("#")[0] not in [document for document, _ in seen]:
                seen.append((docid.split("#")[0], score))
        expected[qid] = seen[:5]
    write_run(Run(tuple(rankings)), tmp_path / "passages.run")
    words = ["--run", tmp_path / "passages.run", "--stage", "max-passage(hits=5)", "--out", tmp_path / "documents.run"]
    assert command("rerank", *words) == (0, "", "")
    assert {qid: [*ranked] for qid, ranked in read_run(tmp_path / "documents.run").items()} == expected
    assert len(MaxPassage()(rankings[0])) == 8


def test_features_read_from_other_files(command, made, ranked, tmp_path):
    old, new, model, out = (tmp_path / name for name in ("old.run", "new.run", "model.json", "out.run"))
    old.write_text((made / "bm25.run").read_text())
    given = read_run(made / "bm25.run")
    turned = [Ranking(qid, "", own.docids[::-1], -np.arange(len(own))) for qid, own in given.items()]
    write_run(Run(tuple(turned)), new)
    RankingModel((parse_feature(f"run:{old}"),), (1.0,)).save(model)
    words = ["rerank", *ranked, "--model", model, "--out", out]
    assert command(*words, "--file", f"old.run={new}") == (0, "", "")
    assert all(own.docids[0] == given[qid].docids[-1] for qid, own in read_run(out).items())


STAGES = {
    "manifold(depth=30,alpha=0.9,graph=mutual_knn,neighbours=7,confidence=query)": lambda index, groups: ManifoldRanker(
        index, depth=30, alpha=0.9, graph="mutual_knn", neighbours=7, confidence="query"
    ),
    "mmr(relevance_weight=0.3,depth=20)": lambda index, groups: MMR(index, relevance_weight=0.3, depth=20),
    "random(seed=4,k=5)": lambda index, groups: RandomOrder(4, k=5),
    "group-limit(groups=GROUPS,max_per_group=2)": lambda index, groups: GroupLimit(groups, 2),
    "manifold(alpha=0.8)>>coverage(k=5)": lambda index, groups: (
        ManifoldRanker(index, alpha=0.8) >> Coverage(index, k=5)
    ),
}


@ON_BOTH_INDEXES
@pytest.mark.parametrize("spelling", STAGES)
def test_stages_rank_as_in_python(command, made, few, tmp_path, spelling):
    first, out = read_run(few[-1], read_topics(made / "topics.tsv")), tmp_path / "out.run"
    docids = sorted({docid for ranking in first.values() for docid in ranking.docids})
    groups = {docid: f"site {place % 3}" for place, docid in enumerate(docids) if place % 4}
    lines = [json.dumps({"id": docid} | ({"group": groups[docid]} if docid in groups else {})) for docid in docids]
    (tmp_path / "groups.jsonl").write_text("\n".join(lines) + "\n")
    steps = spelling.replace("GROUPS", str(tmp_path / "groups.jsonl")).split(">>")
    assert command("rerank", *few, *(f"--stage={step}" for step in steps), "--out", out) == (0, "", "")
    stage = STAGES[spelling](PositionalIndex.from_lucene(made / "index"), groups)
    assert {qid: ranking.docids for qid, ranking in read_run(out).items()} == {
        qid: stage(ranking).docids for qid, ranking in first.items()
    }
    assert read_run(out).tag == "-".join(["bm25", *(step.partition("(")[0] for step in steps)])


@ON_BOTH_INDEXES
def test_from_judgements_to_a_diverse_run(command, learn, refused, made, few, tmp_path):
    model, out, titles = tmp_path / "div.json", tmp_path / "div.run", DEMO / "docs.jsonl"
    options = spelt("svmdiv", f"preset=svmdiv2 C=1 k=3 depth=25 titles={titles}")
    code, told, _ = learn(made / "qrels.subtopics.txt", model, *options, "--features", "score,SD/ordered/LM-O-4")
    assert (code, told.split(":")[0]) == (0, "svmdiv2 on 8 queries")
    learned = DiversityModel.load(model)
    assert (learned.preset, learned.k, learned.titles, learned.provenance["C"]) == ("svmdiv2", 3, True, 1.0)
    assert learned.features.document_features == ("score", "SD/ordered/LM-O-4")
    words = [*few, "--stage", f"svmdiv(model={model},titles={titles},k=10)", "--out", out]
    assert unremarked(command("rerank", *words)) == (0, "", "")
    assert "give --topics: svmdiv needs" in refused("rerank", *words[:2], *words[4:])
    index, first = PositionalIndex.from_lucene(made / "index"), read_run(few[-1], read_topics(made / "topics.tsv"))
    expected, run = SVMDiv(learned, index, titles=read_titles(titles), k=10).run(first), read_run(out)
    assert run.tag == f"bm25-svmdiv{SEEN}"
    assert all(run[qid].docids == expected[qid].docids for qid in first)


def test_held_out_rankings_are_the_librarys(learn, made, few, tmp_path):
    """With criteria on other fields, and of an ensemble."""
    qrels, fields, out = made / "qrels.subtopics.txt", tmp_path / "fields.jsonl", tmp_path / "held.run"
    titles = read_titles(DEMO / "docs.jsonl")
    texts = {docid: {"id": docid, "title": title, "start": title[:9] * 2} for docid, title in titles.items()}
    fields.write_text("\n".join(map(json.dumps, texts.values())))
    index, first = PositionalIndex.from_lucene(made / "index"), read_run(few[-1], read_topics(made / "topics.tsv"))
    criteria = "thresholds=[0.1,0.5],criteria=[count>=2,title>=1,start>=2]"
    for spelling in (
        f"svmdiv(k=3,depth=20,C=1,candidates=relevant,loss=unweighted,titles={fields},{criteria})",
        "cssvm(k=3,depth=20,M=2,C=1,epochs=5)",
    ):
        code, told, _ = learn(qrels, tmp_path / "m.json", "--model", spelling, "--folds", 2, "--out-run", out)
        assert (code, "subtopic-loss@3" in told) == (0, True)
        named = texts if "titles=" in spelling else None
        recipe = replace(parse_model(spelling).recipe, titles=named)
        expected = train(first, read_subtopic_qrels(qrels), index, recipe, folds=2)
        assert DiversityModel.load(tmp_path / "m.json").weights == expected.model.weights
        assert {q: r.docids for q, r in read_run(out).items()} == {
            q: r.docids for q, r in expected.held_out.run.items()
        }


def test_from_judgements_to_the_runs_of_an_ensemble(command, refused, made, few, tmp_path, ensemble):
    learned = DiversityModel.load(ensemble)
    made_by = {"method": "cssvm", "M": 3, "alpha": 2.0, "assignment": "all", "seed": 5, "C": 1.0}
    assert {key: learned.provenance[key] for key in made_by} == made_by
    index, before = PositionalIndex.from_lucene(made / "index"), read_run(few[-1], read_topics(made / "topics.tsv"))
    given = {("--stage", f"cssvm(model={ensemble},k=5)"): CSSVM(learned, index, k=5)}
    given["--model", ensemble] = CSSVM(learned, index)
    for number, member in enumerate(learned.members, 1):
        given["--stage", f"svmdiv(model={ensemble},member={number},k=5)"] = SVMDiv(member, index, k=5)
    orders = set()
    for option, stage in given.items():
        assert unremarked(command("rerank", *few, *option, "--out", tmp_path / "div.run")) == (0, "", "")
        run = read_run(tmp_path / "div.run")
        assert run.tag == f"bm25-{type(stage).__name__.lower()}{SEEN}"
        orders.add(tuple(run[qid].docids for qid in before))
        assert [run[qid].docids for qid in before] == [stage(ranking).docids for ranking in before.rankings]
    assert len(orders) > 2
    assert "member=1 to 3" in refused("rerank", *few, "--out", tmp_path / "x", "--stage", f"svmdiv(model={ensemble})")


def test_topics_that_a_model_was_trained_on(few, tmp_path, caplog):
    run, path = read_run(few[-1]), tmp_path / "model.json"
    for provenance, fingerprint, seen in (
        ({"queries": ["1", "2", "99"]}, "abc", 2),
        ({"queries": ["1"], "validation": ["2", "3"]}, "abc", 3),
        ({"queries": ["99"]}, "abc", 0),
        ({"queries": ["1"]}, "another", 0),
    ):
        caplog.clear()
        RankingModel((), (), fingerprint=fingerprint, provenance=provenance).save(path)
        assert seen_topics(followed([path]), run, "abc") == (SEEN if seen else "")
        assert [message.split()[0] for message in caplog.messages] == ([str(seen)] if seen else [])
    assert seen_topics(followed([few[-1], tmp_path, tmp_path / "none"]), run, "abc") == ""


def test_the_mark_of_training_topics_is_not_lost(command, made, few, tmp_path):
    """By --tag, fuse, stages, features of runs and models, folds; evaluate tells it; another --file is another run."""
    model, seen, out = tmp_path / "m.json", tmp_path / "seen.run", tmp_path / "out.run"
    learned = ["--qrels", made / "qrels.txt", "--model", "mrf(max_features=1)", "--out"]
    assert command("train", *few, *learned, model, "--features", "score")[0] == 0
    assert unremarked(command("rerank", *few, "--model", model, "--tag", "mine", "--out", seen))[0] == 0
    assert read_run(seen).tag == f"mine{SEEN}"
    fused = ["fuse", "--run", few[-1], "--run", seen, "--out", out]
    over = ["rerank", *few[:-1], seen, "--stage", "mmr(k=3)", "--tag", "x", "--out", out]
    with_run = ["--features", f"run:{seen}"]
    held_out = ["train", *few, *learned, tmp_path / "n.json", *with_run, "--folds", 2, "--out-run", out]
    for words in (fused, [*fused, "--tag", "x"], over, [*over[:-4], *over[-2:]], held_out):
        code, _, err = command(*words)
        assert (code, f"{seen}: its tag has {SEEN}" in err) == (0, True)
        assert SEEN in read_run(out).tag
    code, told, _ = command("evaluate", "--qrels", made / "qrels.txt", out, few[-1], "-m", "AP", "--format", "html")
    assert (code, f"{out}: a model ranked topics" in told, f"{few[-1]}: a model ranked" in told) == (0, True, False)
    assert f"its tag has {SEEN}" in command("features", *few, *with_run, "--out", tmp_path / "f.npz")[2]
    asked = f"stage:mrf(model={model})"
    assert unremarked(command("features", *few, "--features", asked, "--out", tmp_path / "f.npz"))[0] == 0
    # A model of other topics; in place of its run, one that no model saw.
    for named, tag in (([], f"x{SEEN}"), (["--file", f"{seen}={few[-1]}"], "x")):
        RankingModel((RunScore(str(seen)),), (1.0,)).save(tmp_path / "other.json")
        assert command("rerank", *few, "--model", tmp_path / "other.json", "--tag", "x", "--out", out, *named)[0] == 0
        assert read_run(out).tag == tag


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("--run RUN --transfer", "--model"),
        ("--run RUN --model QRELS", "not a model"),
        ("--run RUN --model MODEL --file x.run=y", "'x.run'"),
        ("--run RUN --model MODEL --file old.run", "NAME=FILE"),
        ("--run RUN --model MODEL --file a.run=b --file a.run=c", "a.run is given twice"),
        ("--run RUN --stage mrf", "model=FILE"),
        ("--run RUN --stage manifold(feedback=RUN)", "qid iteration-or-subtopic docid grade"),
        ("--run RUN --stage manifold(feedback=OTHER)", "no query in common"),
        ("--run RUN --stage manifold(feedback=3)", "3: cannot be read"),
        ("--run RUN --stage tea", "'tea'"),
        ("--run RUN --stage mmr --stage sdm(mu=9)", "train --model sdm"),
        ("--run RUN --model mrf(mu=9)", "train --model mrf"),
        ("--run RUN --model absent.json", "absent.json: cannot be read"),
        ("--run RUN --stage mmr --tag ''", "tag"),
        ("--stage manifold", "--run"),
        ("--model MODEL", "--run"),
    ],
)
def test_refusals(refused, made, tmp_path, words, reason):
    RankingModel((parse_feature("run:old.run"),), (1.0,)).save(tmp_path / "model.json")
    (tmp_path / "other.txt").write_text("999 0 d1 1\n")
    for name in ("MODEL", "OTHER"):
        words = words.replace(name, str(tmp_path / {"MODEL": "model.json", "OTHER": "other.txt"}[name]))
    assert reason in refused(f"rerank --index INDEX --topics TOPICS --out TMP/x {words}")


@ON_BOTH_INDEXES
def test_the_general_model_needs_neither_run_nor_judgements(command, refused, made, tmp_path):
    """Without options it reranks BM25's top 1000, as in Python."""
    out, given = tmp_path / "out.run", ["--index", made / "index", "--out", tmp_path / "out.run"]
    assert command("rerank", *given, "--topics", made / "topics.tsv")[0] == 0
    lucene, topics = LuceneIndex(made / "index"), read_topics(made / "topics.tsv")
    pipeline = lucene.bm25(1000) >> GeneralRanker(PositionalIndex.from_lucene(lucene))
    write_run(pipeline.run(topics, tag="bm25-general"), tmp_path / "expected.run")
    assert out.read_bytes() == (tmp_path / "expected.run").read_bytes()
    assert "give --topics" in refused("rerank", *given)
    assert "it needs an index" in refused("rerank", "--topics", made / "topics.tsv", "--out", out)


@ON_BOTH_INDEXES
def test_hybrid_search_by_files_of_vectors(command, refused, made, tmp_path):
    """As in Python, also of a given run and with a stage after it; what is missing is said before ranking."""
    rng, topics, index = np.random.default_rng(5), read_topics(made / "topics.tsv"), made / "index"
    positions, out, stale = PositionalIndex.from_lucene(index), tmp_path / "out.run", tmp_path / "none.run"
    docids, files = positions.docids_of(np.arange(positions.n_documents)), [tmp_path / "d.npz", tmp_path / "q.npz"]
    rows, queries = rng.standard_normal((len(docids), 4)).astype(np.float32), rng.standard_normal((len(topics), 4))
    np.savez(files[0], ids=docids, vectors=rows)
    np.savez(files[1], ids=[*topics], vectors=queries)
    words = ["rerank", "--index", index, "--topics", made / "topics.tsv", "--vectors", files[0], "--query-vectors"]
    search = HybridSearch(positions, ArrayVectors(docids, rows, dict(zip(topics, queries, strict=True))))
    first = read_run(made / "bm25.run", topics)
    for jobs, more, tag, expected in (
        (1, [], "bm25-hybrid", search.run(topics)),
        (3, [], "bm25-hybrid", search.run(topics)),
        (1, ["--run", made / "bm25.run"], "bm25-hybrid", Run(tuple(map(search.extend, first.rankings)))),
        (1, ["--stage", "mmr(k=5)"], "bm25-hybrid-mmr", (search >> MMR(vectors=search.vectors, k=5)).run(topics)),
    ):
        assert command("--jobs", jobs, *words, files[1], *more, "--out", out) == (0, "", "")
        run = read_run(out)
        assert run.tag == tag
        assert {qid: ranking.docids for qid, ranking in run.items()} == {q: r.docids for q, r in expected.items()}
    # A query without a vector is ranked by the general model alone; --hits are the candidates of either side.
    few, general = dict(zip([*topics][1:], queries[1:], strict=True)), GeneralRanker(positions)
    np.savez(tmp_path / "some.npz", ids=[*few], vectors=queries[1:])
    small = HybridSearch(positions, ArrayVectors(docids, rows, few), k=7)
    code, _, err = command(*words, tmp_path / "some.npz", "--hits", 7, "--out", out)
    assert (code, f"no vector of 1 of {len(topics)} topics, such as {next(iter(topics))}: the gen" in err) == (0, True)
    for ranking in LuceneIndex(index).bm25(7).run(topics).rankings:
        expected = (small.extend if ranking.qid in few else general)(ranking)
        assert read_run(out)[ranking.qid].docids == expected.docids
    assert "leave out one" in refused(
        "rerank", "--index", index, "--run", made / "bm25.run", "--hits", 7, "--out", stale
    )
    for name, ids, vectors, parts in (
        ("none", ["other"], queries[:1], f"no vector of any topic, such as {next(iter(topics))}"),
        ("narrow", [*topics], queries[:, :3], "narrow.npz: vectors of 3 coordinates, but of 4"),
    ):
        np.savez(tmp_path / f"{name}.npz", ids=ids, vectors=vectors)
        assert parts in refused(*words, tmp_path / f"{name}.npz", "--out", stale)
    for without in ("--vectors", "--index", "--topics"):
        place = words.index(without)
        assert f"needs {without}" in refused(*words[:place], *words[place + 2 :], files[1], "--out", stale)
    assert not stale.exists()


def test_a_weight_is_trained_held_out_and_ranked_by(command, refused, made, tmp_path):
    """As `HybridSearch.learn_weight` of all topics, and for each fold of the others."""
    rng, topics, index = np.random.default_rng(5), read_topics(made / "topics.tsv"), made / "index"
    positions, qrels, files = PositionalIndex.from_lucene(index), read_qrels(made / "qrels.txt"), [tmp_path / "d.npz"]
    docids = positions.docids_of(np.arange(positions.n_documents))
    rows, queries = rng.standard_normal((len(docids), 9)), rng.standard_normal((len(topics), 9))
    for query, qid in zip(queries, topics, strict=True):  # near to the relevant documents
        query[:] = rows[[docid in qrels.get(qid, {}) for docid in docids]].sum(axis=0) + 0.5 * query
    files.append(tmp_path / "q.npz")
    np.savez(files[0], ids=docids, vectors=rows)
    np.savez(files[1], ids=[*topics], vectors=queries)
    search = HybridSearch(positions, ArrayVectors(docids, rows, dict(zip(topics, queries, strict=True))))
    model, held_out, out = (tmp_path / name for name in ("w.json", "held-out.run", "out.run"))
    given = ["--index", index, "--topics", made / "topics.tsv", "--vectors", files[0], "--query-vectors", files[1]]
    words = ["train", *given, "--qrels", made / "qrels.txt"]
    code, printed, _ = command(*words, "--folds", 3, "--out", model, "--out-run", held_out)
    learned = search.learn_weight(topics, qrels)
    assert learned.weight < 0.9
    assert HybridModel.load(model).weight == pytest.approx(learned.weight)
    run = read_run(held_out)
    means = [evaluate(given, qrels, ["nDCG@10"]).means[0] for given in (search.run(topics), run)]
    assert [
        re.search(rf"^{name} +(\S+?)\*?$", printed, re.M)[1] for name in ("hybrid without judgements", "held out")
    ] == [f"{mean:.4f}" for mean in means]
    assert (code, f"weigh {learned.weight:.3g} times" in printed) == (0, True)
    for fold in split_folds([*topics], 3, 0):
        others = search.learn_weight({qid: text for qid, text in topics.items() if qid not in fold}, qrels)
        assert [run[qid].docids for qid in fold] == [others(Query(qid, topics[qid])).docids for qid in fold]
    assert command("rerank", *given, "--model", model, "--out", out)[0] == 0
    assert {qid: ranking.docids for qid, ranking in read_run(out).items()} == {
        qid: ranking.docids for qid, ranking in learned.run(topics).items()
    }
    assert read_run(out).tag.endswith("+training-topics")
    for parts, call in (
        ("a weight of hybrid search|--query-vectors", ["rerank", *given[:4], "--model", model]),
        ("a weight of hybrid search", ["explain", model]),
        ("needs --query-vectors", words[:7] + words[9:]),
        ("needs --qrels", words[:-2]),
        ("excludes --model", [*words, "--model", "mrf"]),
    ):
        message = refused(*call, *([] if call[0] == "explain" else ["--out", tmp_path / "none"]))
        assert all(part in message for part in parts.split("|"))
    scored = {*topics} & {*qrels}
    np.savez(tmp_path / "some.npz", ids=[*topics][1:], vectors=queries[1:])  # the first topic counts nowhere
    _, printed, err = command(*words[:-3], tmp_path / "some.npz", *words[-2:], "--folds", 3, "--out", tmp_path / "x")
    assert "no vector of 1 of" in err
    assert f"Means over {len(scored - {next(iter(topics))})} judged queries.\n*" in printed
    assert "missing" not in printed
    text = model.read_text()
    model.write_text(text.replace(HybridModel.load(model).fingerprint, "0" * 64))
    assert "another collection" in refused("rerank", *given, "--model", model, "--out", tmp_path / "none")
    assert command("rerank", *given, "--model", model, "--transfer", "--out", out)[0] == 0
    model.write_text(text.replace("hybrid weight", "linear model"))
    assert "not a greylag hybrid weight" in refused("rerank", *given, "--model", model, "--out", tmp_path / "none")
    model.write_text(text.replace('"weight": ', '"weight": -'))
    assert "weight must be" in refused("rerank", *given, "--model", model, "--out", tmp_path / "none")


def test_without_an_index(command, refused, tmp_path):
    """Given vectors and given scores of aspects need no index; what needs one says so."""
    rng, docids, out = np.random.default_rng(3), [f"d{i}" for i in range(12)], tmp_path / "out.run"
    first = Run((Ranking("1", "", docids, np.arange(12.0, 0.0, -1.0)),), "first")
    write_run(first, tmp_path / "first.run")
    vectors, scores, path = rng.standard_normal((12, 4)), rng.random((12, 2)), tmp_path / "vectors.npz"
    np.savez(path, ids=docids, vectors=vectors)
    folder = tmp_path / "vectors"
    folder.mkdir()
    np.save(folder / "v.npy", vectors)
    (folder / "docid").write_text("\n".join(docids))
    rows = [f"1 a{a} {docid} {float(scores[d, a])}\n" for a in range(2) for d, docid in enumerate(docids)]
    (tmp_path / "aspects").write_text("".join(rows))
    given = ["rerank", "--run", tmp_path / "first.run", "--out", out, "--stage"]
    mmr = MMR(vectors=ArrayVectors(docids, vectors), k=5)
    for words, expected in (
        (["mmr(k=5)", "--vectors", path], mmr),
        ([f"mmr(k=5,vectors={path})"], mmr),
        (["mmr(k=5)", "--vectors", folder], mmr),
        ([f"mmr(k=5,vectors={folder / 'v.npy'})"], mmr),
        ([f"xquad(aspects={tmp_path / 'aspects'})"], XQuAD(aspects=lambda _: scores)),
    ):
        assert command(*given, *words) == (0, "", "")
        assert read_run(out)["1"].docids == expected(first["1"]).docids
    out.unlink()
    given[4] = folder / "docid"
    assert "docid is the input" in refused(*given, "mmr", "--vectors", folder / "v.npy")
    given[4] = out
    assert "MMR needs an index or vectors=" in refused(*given, "mmr")
    assert "stage coverage: it needs an index" in refused(*given, "coverage")
    assert "--vectors is for dpp, mmr, msd" in refused(*given, "random", "--vectors", path)


def test_a_stage_that_imports_its_neighbours_when_it_is_called_says_so(refused, tmp_path_factory, monkeypatch):
    folder = tmp_path_factory.mktemp("own")
    monkeypatch.chdir(folder)
    (folder / "late_helper.py").touch()
    body = "    def __call__(self, ranking):\n        import late_helper\n        return ranking\n"
    (folder / "late_stage.py").write_text(
        f"import dataclasses, greylag\n@dataclasses.dataclass(frozen=True)\nclass Late(greylag.Stage):\n{body}"
    )
    error = refused("rerank --run RUN --topics TOPICS --out TMP/x --stage late_stage:Late")
    assert "'late_helper': code of your own imports it when it is called" in error
