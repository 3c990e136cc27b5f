"""A user's mistakes, each of which type checkers reject: a line is marked with mypy's and pyright's kind of error."""

import greylag
from greylag import (
    MMR,
    LuceneIndex,
    ModelRanker,
    PositionalIndex,
    Query,
    Run,
    compare,
    evaluate,
    read_qrels,
    read_run,
    read_topics,
    write_run,
)
from greylag.diversity import CSSVM, DiversityModel, EssentialPages
from greylag.features import FeatureExtractor, candidate_pool
from greylag.learning import CoordinateAscent, CuttingPlane, GreedySelection, Objective, training_data
from greylag.rankers import ManifoldRanker, RankingModel
from greylag.recipes import train_on_data
from greylag_papers.schiegg_2016.coulomb import Coulomb

index = PositionalIndex.from_lucene("index")
model, diversity = RankingModel.load("model.json"), DiversityModel.load("div.json")
run, qrels, topics = read_run("bm25.run"), read_qrels("qrels.txt"), read_topics("topics.tsv")
objective, extractor = Objective.parse("AP"), FeatureExtractor(index, candidate_pool())
data = training_data(run.rankings, qrels, extractor)

greylag.MMRR(index)  # attr-defined reportAttributeAccessIssue
LuceneIndex(3)  # arg-type reportArgumentType
PositionalIndex.from_lucene(3)  # arg-type reportArgumentType
Query("1")  # call-arg reportCallIssue
Query(1, "geese")  # arg-type reportArgumentType
run["1"].docids.append("d2")  # attr-defined reportAttributeAccessIssue
run["1"] = run["2"]  # index reportIndexIssue
run.tag = "other"  # misc reportAttributeAccessIssue
MMR(index, lambd=0.5)  # call-arg reportCallIssue
MMR(index, 20)  # call-arg reportCallIssue
MMR("index")  # arg-type reportArgumentType
EssentialPages(index, 20, 5)  # call-arg reportCallIssue
ManifoldRanker(index, None, True)  # call-arg reportCallIssue
ManifoldRanker(index, graph="ring")  # arg-type reportArgumentType
ManifoldRanker(index, k=10)  # call-arg reportCallIssue
ModelRanker(index, model)  # arg-type reportArgumentType
ModelRanker(model, index, True)  # call-arg reportCallIssue
CSSVM(model, index)  # arg-type reportArgumentType
Coulomb(3, 0.1, 100.0)  # call-arg reportCallIssue
Coulomb(M=3, assignment="worst")  # arg-type reportArgumentType
CuttingPlane(C="one")  # arg-type reportArgumentType
GreedySelection(objective, 5)  # call-arg reportCallIssue
GreedySelection(objective, restarts=3)  # call-arg reportCallIssue
CoordinateAscent(3)  # arg-type reportArgumentType
MMR(index).run(topics)  # arg-type reportArgumentType
LuceneIndex("index").ql().run(run)  # arg-type reportArgumentType
MMR(index).run(3)  # arg-type reportArgumentType
MMR(index).run(run, 2)  # call-arg reportCallIssue
MMR(index) >> LuceneIndex("index").bm25()  # operator reportOperatorIssue
index >> MMR(index)  # operator reportOperatorIssue
MMR(index) >> 3  # operator reportOperatorIssue
evaluate(run, qrels, 10)  # arg-type reportArgumentType
compare({"a": run}, qrels, baseline="a", test="sign")  # call-overload reportCallIssue reportArgumentType
train_on_data(extractor, GreedySelection("AP"))  # arg-type reportArgumentType
train_on_data(data)  # call-arg reportCallIssue
write_run("mmr.run", run)  # arg-type reportArgumentType
read_qrels()  # call-arg reportCallIssue
diversity.weights = ()  # misc reportAttributeAccessIssue
wrong: Run = MMR(index)(run["1"])  # assignment reportAssignmentType
