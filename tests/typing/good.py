"""A user's code, which type checkers accept."""

from pathlib import Path

from greylag import (
    CSSVM,
    MMR,
    CoordinateAscent,
    Coulomb,
    CuttingPlane,
    DiversityModel,
    EssentialPages,
    FeatureExtractor,
    GreedySelection,
    GreylagError,
    LinearModel,
    LuceneIndex,
    ManifoldRanker,
    MRFRanker,
    Objective,
    Pipeline,
    PositionalIndex,
    Query,
    Ranking,
    Run,
    SVMDiv,
    build_index,
    candidate_pool,
    compare,
    evaluate,
    read_qrels,
    read_run,
    read_topics,
    write_run,
)


def reverse(ranking: Ranking) -> Ranking:
    """A stage of the user's own."""
    return ranking.permute(range(len(ranking))[::-1])


n_documents: int = build_index(Path("docs.jsonl"), Path("index"))
lucene = LuceneIndex("index")
index = PositionalIndex.from_lucene(lucene)
topics: dict[str, str] = read_topics("topics.tsv")
ranking: Ranking = lucene.bm25(k=100)(Query("1", "grey goose"))
pipeline: Pipeline = lucene.bm25() >> MMR(index, relevance_weight=0.7, k=20) >> reverse
run: Run = pipeline.run(topics, n_jobs=2, tag="mmr")
run = (lucene.ql(mu=500.0) >> ManifoldRanker(index, alpha=0.6, graph="mutual_knn")).run(topics)
run = EssentialPages(index, k=5).run(read_run(Path("bm25.run")))
write_run(run, "mmr.run")

qrels = read_qrels("qrels.txt")
extractor = FeatureExtractor(index, candidate_pool(["SD"]))
greedy = GreedySelection(Objective.parse("nDCG@10"), max_features=5, retrain=True)
ascent = CoordinateAscent(Objective.parse("AP"), restarts=5)
model: LinearModel = LinearModel.load("model.json")
reranked: Run = MRFRanker(model, index, transfer=True).run(run)
scores = {name: evaluate(each, qrels, ["AP", "nDCG@10"]) for name, each in (("mmr", run), ("mrf", reranked))}
p: list[float] = [comparison.p for comparison in compare(scores, "mmr", test="randomization").comparisons]

learners: list[CuttingPlane | Coulomb] = [CuttingPlane(C=10.0), Coulomb(M=3, alpha=0.1, C=100.0, assignment="best")]
diversity: DiversityModel = DiversityModel.load("div.json")
stages = [SVMDiv(diversity, index, k=10), CSSVM(diversity, index, titles={"d1": "Geese"})]
fused: Run = stages[0].run(run)
members: tuple[Run, ...] = CSSVM(diversity, index).member_runs(run)
error: type[Exception] = GreylagError
