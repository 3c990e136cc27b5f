"""What users of other tools write, and what works in its place; read where a command or an option is unknown."""

from __future__ import annotations

from collections.abc import Callable

_SCORED = "a run against judgements is scored by greylag evaluate --qrels QRELS RUN"
COMMANDS = {
    guess: way
    for guesses, way in {
        "eval score trec_eval treceval ndeval ir_measures report leaderboard": _SCORED,
        "measure metrics summary results table stats inspect": _SCORED,
        "compare diff ttest t-test significance test": "write greylag evaluate --qrels QRELS RUN --baseline OTHER",
        "gate regress regression assert fail verify monitor ci audit baseline accept": (
            "write greylag evaluate --qrels QRELS RUN --baseline ACCEPTED.json --fail-if 0.02, or --floor nDCG@10=0.3"
        ),
        "agreement kappa agree assessors": "write greylag evaluate --qrels QRELS --other-qrels OTHER",
        "tau kendall correlate": "write greylag evaluate --qrels QRELS RUN... -m AP -m nDCG@10 --tau",
        "sheets difficulty participants topics medians overview appendix": (
            "write greylag evaluate --qrels QRELS RUN... --out-sheets FOLDER"
        ),
        "power sample-size mde": "write greylag evaluate --qrels QRELS RUN --power 0.05",
        "unjudged holes": "write greylag evaluate --qrels QRELS RUN... --unjudged",
        "predict apply": "write greylag rerank --model MODEL",
        "fit learn tune": "write greylag train",
        "pooling sample": "write greylag pool RUN... --depth 100 --out POOL",
        "check_run check-run validate lint errlog": "write greylag check RUN... --topics TOPICS",
        "merge combine rrf fusion": "write greylag fuse",
    }.items()
    for guess in guesses.split()
}
_CUTOFF = "-m nDCG@10, a measure with its cut-off"
_NOT_READ = "leave it out: formats of files are recognised, and judgements of preferences are not read"
_ONLY = "leave it out: --fail-if and --floor alone are checked, all at once"
_POWER = "--power LOSS"
_MISSING = "leave it out: judged topics without a ranking count as 0, and --fail-if missing fails for them"
_LEVEL = "-m 'AP(rel=2)', a measure with its level"
OPTIONS = {
    command: {guess: way for guesses, way in ways.items() for guess in guesses.split()}
    for command, ways in {
        "evaluate": {
            "per-topic by-query by-topic queries topic-scores all-topics query-eval": "--per-query",
            "sort sort-by": "--order",
            "output out o save csv-file json-file export output-file log-file": "--format json=FILE, or another format",
            "report html-report": "--format html=FILE",
            "junitxml junit-xml xml badge annotations": "--format junit=FILE",
            "github step-summary github-summary": '--format markdown="$GITHUB_STEP_SUMMARY"',
            "write-baseline update-baseline save-baseline accept store": "--format json=FILE, which --baseline takes",
            "history trend slack notify": "--format json=FILE, and keep it of each version",
            "places digits precision decimals round rounding-digits": "--format csv, whose numbers are unrounded",
            "show-percentages standard std sd": "--format csv, and compute it",
            "excel xlsx": "--format csv",
            "pdf word docx": "--format latex or --format html",
            "no-summary": "--per-query, which has no means",
            "h": "--help",
            "v verbose D debug quiet": "leave it out: what is noticed is on standard error",
            "R T prefs qrels-format results-format rel-info-format": _NOT_READ,
            "N num-docs": "leave it out: no measure needs the size of the collection",
            "Z zscore": "--baseline, whose table has the effect size d",
            "provider backend": "leave it out: trec_eval computes its measures, ir_measures others",
            "tie-break ties rank-by": "leave it out: equal scores are by docid, descending, as in trec_eval",
            "ndeval diversity": "--subtopics",
            "merge gold truth ground-truth": "--qrels, once for each file of judgements",
            "maxfail x exitfirst durations tb collect-only last-failed lf strict dry-run watch timeout latency": _ONLY,
            "exit-code exit-zero warn-only": "|| true after the command, which exits with 3 for a gate that failed",
            "config": "leave it out: all is in the options",
            "weights topic-weights query-weights": "leave it out: each topic counts alike",
            "k top depth cutoff cut n top-k": _CUTOFF,
            "M max-docs": "-m AP@100, a measure with its cut-off",
            "rel min-rel relevance-level relevance-threshold l": _LEVEL,
            "c complete make-comparable allow-missing missing-as-zero": _MISSING,
            "fail-if-missing fail-missing require-all missing": "--fail-if missing",
            "significance stat-test ttest t-test student paired": "--baseline or --all-pairs, with --test t",
            "bootstrap permutation fisher": "--test randomization",
            "pairwise pairs all": "--all-pairs",
            "one-sided alternative superiority": "--fail-if worse, which tests one side",
            "n-permutations n-resamples rounds seed random-seed": "--test randomization, which draws alike each time",
            "confidence confidence-level ci intervals": "--baseline, whose table has 95 % intervals",
            "effect-size cohen": "--baseline, whose table has the effect size d",
            "equivalence equivalent tost": "--margin",
            "anova hsd tukey tukey-hsd bonferroni": "--all-pairs --correction tukey",
            "kendall kendall-tau tau-ap rbo spearman pearson correlation rank-correlation": "--tau",
            "kappa cohen-kappa krippendorff fleiss agreement second-qrels qrels2 other second": "--other-qrels",
            "difficulty sheets participants hardest median per-run best-median-worst appendix": "--out-sheets FOLDER",
            "summary no-per-query means mean": "leave it out: means are shown, unless there is --per-query",
            "alpha max-p pvalue p-value level": "leave it out: the level is 0.05, and --format json has every p",
            "fail-if-worse fail-on-regression": "--fail-if worse",
            "fail-under cov-fail-under min min-score threshold fail-below at-least minimum": "--floor MEASURE=SCORE",
            "assert assert-min require expect": "--floor MEASURE=SCORE",
            "tolerance max-drop max-loss max-decrease regression max-regression delta": "--fail-if 0.02, a margin",
            "epsilon rtol atol rel-tol abs-tol budget non-inferiority": "--fail-if 0.02, a margin",
            "gate fail fail-on fail-on-drop noninferiority-margin": "--fail-if 0.02, a margin, or lower, or worse",
            "reference compare against base control": "--baseline",
            "plot figure chart graph box-plot boxplot heatmap": "--out-figure FILE.svg",
            "groups group-by category by strata stratify segment segments slices": "--categories",
            "judged-only condensed J ignore-unjudged remove-unjudged": "-m 'nDCG(judged_only=True)@10'",
            "unjudged-as-relevant unjudged-relevant holes bounds": "--unjudged",
            "label run-name alias": "NAME=RUN",
            "version-name name build commit": "--release TEXT",
            "sample-size detectable mde mdes effect power-analysis n-topics min-topics min-queries": _POWER,
            "letor svmlight": "--qrels, which takes LETOR text",
        },
        "pool": {
            "k top top-k n size pool-depth cutoff topX": "--depth",
            "budget rate": "--sample, at most so many documents of a topic",
            "stratified strata": "--sample, whose documents all have one probability",
            "shuffle": "leave it out: documents are by docid, which tells no ranks",
            "min-runs": "leave it out: what one run has is pooled",
            "judged exclude": "--qrels",
            "random": "--sample",
            "by-team team-file groups": "--teams",
            "strategy rrf move-to-front mtf bandit adaptive": "--depth, as pools are of each run's top",
        },
        "check": {
            "k top max-depth max-docs max-results length": "--depth",
            "errors all verbose v log errlog": "--format json, which has every breach",
            "fix repair": "leave it out: no run is changed",
            "strict track tag min-docs": "leave it out: TREC's rules are checked, all of them",
            "qrels collection docs corpus": "--docids, a file of docids or judgements",
        },
        "train": {
            "vali valid val dev": "--validation, with --letor",
            "test": "leave it out: greylag rerank --letor TEST ranks another file, and --folds holds topics out",
            "svmlight libsvm train": "--letor",
        },
    }.items()
}


def find_way(command: str, unknown: str, nearest: Callable[[str], str | None]) -> str | None:
    """Return what to do in place of an option, by its name, else by one of its words, as kappa of --cohens-kappa."""
    ways, name = OPTIONS.get(command, {}), unknown.lstrip("-").replace("_", "-")
    words = [word for word in name.split("-") if len(word) > 3] if "-" in name else []
    by_word = (ways.get(word) or nearest(f"--{word}") for word in words)
    way = ways.get(name) or nearest(unknown) or next(filter(None, by_word), None)
    return way if way is None or way.startswith("leave it out") else f"write {way}"
