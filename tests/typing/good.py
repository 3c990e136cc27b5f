"""A user's code, which type checkers accept."""

from pathlib import Path

from greylag import (
    MMR,
    GreylagError,
    LuceneIndex,
    ModelRanker,
    PositionalIndex,
    Query,
    Ranking,
    Run,
    build_index,
    compare,
    evaluate,
    read_qrels,
    read_run,
    read_topics,
    train,
    write_run,
)
from greylag.base import Pipeline
from greylag.diversity import CSSVM, DiversityModel, EssentialPages, SVMDiv
from greylag.evaluation import Evaluation, compare_scores, read_subtopic_qrels
from greylag.features import FeatureExtractor, candidate_pool
from greylag.learning import CoordinateAscent, CuttingPlane, GreedySelection, Objective, RankingData, training_data
from greylag.rankers import ManifoldRanker, RankingModel
from greylag.recipes import (
    AutomaticRecipe,
    BaselineRecipe,
    DiversityRecipe,
    MRFRecipe,
    baselines,
    cross_validate,
    train_on_data,
)
from greylag_papers.schiegg_2016.coulomb import Coulomb


def reverse(ranking: Ranking) -> Ranking:
    """A stage of the user's own."""
    return ranking.permute(range(len(ranking))[::-1])


n_documents: int = build_index(Path("docs.jsonl"), Path("index"))
lucene = LuceneIndex("index")
index = PositionalIndex.from_lucene(lucene)
topics: dict[str, str] = read_topics("topics.tsv")
ranking: Ranking = lucene.bm25(k=100)(Query("1", "grey goose"))
pipeline: Pipeline[Query] = lucene.bm25() >> MMR(index, relevance_weight=0.7, k=20) >> reverse
run: Run = pipeline.run(topics, n_jobs=2, tag="mmr")
run = (lucene.ql(mu=500.0) >> ManifoldRanker(index, alpha=0.6, graph="mutual_knn")).run(topics)
run = EssentialPages(index, k=5).run(read_run(Path("bm25.run")))
write_run(run, "mmr.run")

qrels = read_qrels("qrels.txt")
extractor = FeatureExtractor(index, candidate_pool("sd"))
data: RankingData = training_data(run.rankings, qrels, extractor)
model: RankingModel = train_on_data(data, GreedySelection("nDCG@10", max_features=5, retrain=True))
score: float = train(run, qrels, index, AutomaticRecipe("nDCG@10"), folds=5).scores["held out"].means[0]
recipe = MRFRecipe(candidate_pool("sd"), CoordinateAscent(Objective.parse("AP"), restarts=5))
held_out: Run = cross_validate(recipe, run, qrels, index).run
bm25: RankingModel = BaselineRecipe(baselines.BM25, grid={"k1": [0.9, 1.2], "b": [0.4]}).fit(run, qrels, index).model
model.save("model.json")
reranked: Run = ModelRanker(model, index, transfer=True).run(run)
found: Evaluation = compare({"mmr": run, "mrf": "mrf.run"}, qrels, ["AP", "nDCG@10"], baseline="mmr", test="wilcoxon")
mean: float = found.scores["mrf"].by_measure["AP"]
scores = {name: evaluate(each, qrels, ["AP", "nDCG@10"]) for name, each in (("mmr", run), ("mrf", reranked))}
p: list[float] = [comparison.p for comparison in compare_scores(scores, "mmr", test="randomization").comparisons]

learners: list[CuttingPlane | Coulomb] = [CuttingPlane(C=10.0), Coulomb(M=3, alpha=0.1, C=100.0, assignment="best")]
subtopics, diverse = read_subtopic_qrels("qrels.subtopics.txt"), DiversityRecipe(learners[1], k=10, preset="svmdiv2")
diversity: DiversityModel = train(run, subtopics, index, diverse).model
stages = [SVMDiv(diversity, index, k=10), CSSVM(diversity, index, titles={"d1": "Geese"})]
fused: Run = stages[0].run(run)
members: tuple[DiversityModel, ...] = diversity.members
error: type[Exception] = GreylagError
