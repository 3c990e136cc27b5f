"""What users of other tools write, and what works in its place; read where a command or an option is unknown."""

from __future__ import annotations

_SCORED = "a run against judgements is scored by greylag evaluate --qrels QRELS RUN"
COMMANDS = {
    guess: way
    for guesses, way in {
        "eval score trec_eval treceval report leaderboard measure metrics summary results table": _SCORED,
        "compare diff ttest t-test significance test": "write greylag evaluate --qrels QRELS RUN --baseline OTHER",
        "gate regress regression assert fail verify": (
            "write greylag evaluate --qrels QRELS RUN --baseline ACCEPTED.json --fail-if 0.02, or --floor nDCG@10=0.3"
        ),
        "agreement kappa agree assessors": "write greylag evaluate --qrels QRELS --other-qrels OTHER",
        "tau kendall correlate": "write greylag evaluate --qrels QRELS RUN... -m AP -m nDCG@10 --tau",
        "sheets difficulty participants topics": "write greylag evaluate --qrels QRELS RUN... --out-sheets FOLDER",
        "unjudged holes": "write greylag evaluate --qrels QRELS RUN... --unjudged",
        "predict apply": "write greylag rerank --model MODEL",
        "fit learn tune": "write greylag train",
        "pooling sample": "write greylag pool RUN... --depth 100 --out POOL",
        "check_run check-run validate lint": "write greylag check RUN... --topics TOPICS",
        "merge combine rrf fusion": "write greylag fuse",
    }.items()
    for guess in guesses.split()
}
_CUTOFF = "-m nDCG@10, a measure with its cut-off"
_LEVEL = "-m 'AP(rel=2)', a measure with its level"
OPTIONS = {
    command: {guess: way for guesses, way in ways.items() for guess in guesses.split()}
    for command, ways in {
        "evaluate": {
            "per-topic by-query by-topic queries topic-scores all-topics query-eval": "--per-query",
            "sort sort-by": "--order",
            "output out o save csv-file json-file export": "> FILE after the command, which prints",
            "report": "--format html > FILE",
            "junitxml junit-xml xml": "--format junit",
            "k top depth cutoff cut n top-k": _CUTOFF,
            "M max-docs": "-m AP@100, a measure with its cut-off",
            "rel min-rel relevance-level relevance-threshold l": _LEVEL,
            "c complete": "nothing: judged topics without a ranking count as 0",
            "significance stat-test ttest t-test student paired": "--baseline or --all-pairs, with --test t",
            "bootstrap permutation fisher": "--test randomization",
            "pairwise pairs all": "--all-pairs",
            "anova hsd tukey bonferroni": "--all-pairs --correction tukey",
            "kendall correlation rank-correlation": "--tau",
            "kappa agreement second-qrels qrels2 other second": "--other-qrels",
            "difficulty sheets participants hardest median": "--out-sheets FOLDER",
            "summary no-per-query means mean": "nothing: means are shown, unless there is --per-query",
            "alpha max-p level": "nothing: the level is 0.05, and --format json has every p",
            "fail-if-worse fail-on-regression": "--fail-if worse",
            "fail-under min min-score threshold fail-below at-least minimum": "--floor MEASURE=SCORE",
            "tolerance max-drop max-loss regression max-regression fail": "--fail-if MARGIN, such as 0.02",
            "reference compare against base control": "--baseline",
            "plot figure chart graph": "--out-figure FILE.svg",
            "groups category by strata segment": "--categories",
            "judged-only condensed J": "-m 'nDCG(judged_only=True)@10'",
            "unjudged-as-relevant unjudged-relevant holes bounds": "--unjudged",
            "label run-name alias": "NAME=RUN",
            "version-name name build commit": "--release TEXT",
            "sample-size detectable mde": "--power LOSS",
            "letor svmlight": "--qrels, which takes LETOR text",
        },
        "pool": {
            "k top top-k n size pool-depth cutoff": "--depth",
            "judged exclude": "--qrels",
            "random": "--sample",
            "by-team team-file groups": "--teams",
            "strategy": "--depth, as pools are of each run's top",
        },
        "check": {
            "k top max-depth max-docs length": "--depth",
            "qrels collection docs": "--docids, a file of docids or judgements",
        },
        "train": {
            "vali valid val dev": "--validation, with --letor",
            "test": "nothing: greylag rerank --letor TEST ranks another file, and --folds holds topics out",
            "svmlight libsvm train": "--letor",
        },
    }.items()
}
