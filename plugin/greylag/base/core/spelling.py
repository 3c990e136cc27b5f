"""The spelling of all that has options: ``mmr(k=20)``, ``mrf(max_features=5,mu=500)``, ``bm25(k1=[0.6,0.9])``.

Stages, models, learners and searches are spelt ``NAME`` or ``NAME(OPTION=VALUE,...)``. A value is a number, true or
false, a word, or several of these in brackets. The options of a class are its parameters that can be spelt;
their types are its annotations, and their meanings stand in its docstring.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache
from importlib import import_module
from inspect import cleandoc
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from greylag.base.errors import ParameterError

Scalar = bool | int | float | str
Value = Scalar | tuple[Scalar, ...]
MAX_INTEGER = 2**31
# A name may also be MODULE:CLASS, for a stage that is not registered.
_CALL = re.compile(r"(?P<name>[a-z0-9-]+|[A-Za-z_][\w.]*:[A-Za-z_]\w*)(?:\((?P<options>[^()]*)\))?", re.ASCII)
_NUMBER = re.compile(r"[-+]?(\d{1,100}\.?\d{0,100}|\.\d{1,100})(e[-+]?\d{1,5})?", re.IGNORECASE | re.ASCII)
_BARE = re.compile(r"=([^=\[\]()]+,[^=\[\]()]+)(?=\)|,\w+=)")  # several values without brackets
_COMMA = re.compile(r",(?![^\[]*\])")  # outside brackets
GUESSES = {
    guess: ours.split()
    for guesses, ours in {
        "k": "rank_constant n_hits hits",
        "rrf_k": "rank_constant",
        "top_n top_k n num_results n_results similarity_top_k num_hits hits limit": "k n_hits hits",
        "lambda lambda_ lambda_mult lambda_param theta": "relevance_weight mmr",
        "embedding embeddings": "vectors",
        "weight": "weights",
        "fetch_k rerank_depth": "depth",
        "max_per_source": "max_per_group",
        "filter filters": "where",
        "score_threshold similarity_cutoff score_cutoff min_score": "min_confidence",
        "group_by": "group",
        "docs documents texts": "passages docs documents",
        "input": "passages docs run documents runs",
        "run": "runs",
        "corpus": "background docs documents index",
        "query queries": "topics",
        "qrel judgements judgments": "qrels",
        "metric metrics scoring": "measures measure",
        "q": "per_query",
        "json tsv csv markdown latex html junit": "format",
        "cv n_splits n_folds kfold kcv": "folds",
        "estimator model": "recipe",
        "ranker learner": "recipe model",
        "method": "stage recipe model",
        "lang": "language",
        "name run_name": "tag",
        "o output out_path save": "path out",
        "threads n_threads workers num_workers n_jobs": "n_jobs threads jobs",
        "es": "elasticsearch",
        "validate": "check",
        "margin threshold tolerance max_drop max_loss delta rule": "fail_if",
        "floor minimum min at_least": "floors",
        "team": "teams",
        "groups kinds": "categories",
        "version": "release",
        "effect mde": "loss",
        "n_estimators num_iterations num_boost_round n_trees": "trees",
        "num_leaves max_leaves": "leaves",
        "eta lr": "learning_rate",
        "min_data_in_leaf min_child_samples": "min_documents",
        "early_stopping early_stopping_round early_stopping_rounds": "validate",
        "monotone_constraints": "increasing decreasing",
    }.items()
    for guess in guesses.split()
}
"""What users of other packages write, and what they may mean here, the likeliest first."""
ATTRIBUTES = {
    **dict.fromkeys(("search", "batch_search", "set_bm25"), "bm25"),
    **dict.fromkeys("add add_documents add_texts upsert update delete remove".split(), "with_passages"),
    **dict.fromkeys("retrieve query invoke similarity_search get_relevant_documents".split(), "search"),
    **dict.fromkeys("aretrieve ainvoke".split(), "asearch"),
    **dict.fromkeys("get get_by_ids".split(), "__getitem__"),
    **dict.fromkeys(("transform", "predict"), "run"),
    "set_qld": "ql",
    **dict.fromkeys(("to_json", "to_csv", "to_html", "to_markdown"), "format to_frame"),
    **dict.fromkeys("to_pandas to_dataframe to_table".split(), "to_frame"),
    **dict.fromkeys("per_query by_query by_topic per_topic".split(), "by_query to_frame"),
    **dict.fromkeys("to_junit to_excel save write dump report print html plot letters".split(), "format to_frame"),
    **dict.fromkeys("means mean results aggregate summary measures to_dict".split(), "by_measure to_dict"),
    **dict.fromkeys("comparisons baseline p_values pvalues p significant detectable".split(), "significance"),
    **dict.fromkeys("check assert_passed fail_if floor floors passed failed failures junit".split(), "gated"),
    **dict.fromkeys("anova tukey test ttest t_test".split(), "significance"),
    **dict.fromkeys("tau kendall_tau tau_ap correlation correlations correlate".split(), "correlated"),
    **dict.fromkeys("groups slices segments by_segment by_group categorised".split(), "by_category"),
    **dict.fromkeys("power power_analysis sample_size".split(), "powered"),
    **dict.fromkeys("medians difficulty participants".split(), "sheets"),
    **dict.fromkeys("topics queries qids".split(), "keys"),
    "runs": "scores",
    "regressions": "gated",
    "get_top_documents": "head",
    "version": "released",
}
"""Methods of classes of other packages, and those that do the same here."""
_COMPARE = "compare({'then': run, 'now': other}, qrels, ['nDCG@10'], baseline='then') of greylag"
NAMES = {
    guess: way
    for guesses, way in {
        "Qrels TrecQrel load_qrels parse_qrel parse_qrels read_trec_qrels read_qrel": (
            "read_qrels(path) of greylag, or {qid: {docid: grade}}, which is taken everywhere"
        ),
        "TrecRun Results load_run load_runs parse_run read_trec_run": (
            "read_run(path) of greylag, or {qid: {docid: score}}, which is taken everywhere"
        ),
        "TrecEval RelevanceEvaluator Evaluator Scorer iter_calc calc_aggregate calc score evaluate_run": (
            "evaluate(run, qrels, ['nDCG@10', 'AP']) of greylag"
        ),
        "AP MAP nDCG NDCG P R RR MRR Recall Precision Success ERR RBP Bpref Judged measures metrics ndcg map": (
            "names of measures, as in evaluate(run, qrels, ['nDCG@10', 'AP']) of greylag"
        ),
        "Report report evaluate_runs Experiment statistical_test paired_ttest ttest t_test anova tukey": _COMPARE,
        "fisher_randomization_test bootstrap_test compare_runs significance": _COMPARE,
        "gate Gate GateRule Floors check_gate assert_no_regression assert_not_worse non_inferiority regression": (
            f"{_COMPARE}, and .gated(0.02) of it"
        ),
        "power loss_power sample_size": "compare({'now': run}, qrels, ['nDCG@10']).powered(0.05) of greylag",
        "kappa cohen_kappa agreement fleiss_kappa": "compare_qrels(first, second) of greylag.evaluation",
        "kendall_tau kendalltau tau tau_ap correlation rbo": (
            "compare(runs, qrels, ['AP', 'nDCG@10']).correlated() of greylag"
        ),
        "pool make_pool Pool TrecPool TrecPoolMaker pool_top": "pool_runs(runs, depth=100) of greylag.evaluation",
        "fuse fusion rrf reciprocal_rank_fusion combos combsum": "fuse_runs(runs, 'rrf') of greylag",
        "sheets difficulty": "compare(runs, qrels).sheets() of greylag",
        "load_baseline read_baseline read_json load_evaluation from_json read_scores": (
            "read_evaluation(path) of greylag.evaluation, or the path in place of a run of compare"
        ),
        "check_run check_submission validate": "greylag check RUN --topics TOPICS, a command",
        "score_holes unjudged": "compare(runs, qrels, unjudged=True) of greylag",
    }.items()
    for guess in guesses.split()
}
"""Names that users of other packages import, and what to write."""
_WORDS = {bool: "true or false", int: "an integer below 2^31", float: "a number", str: "a word"}


def read_call(text: str) -> tuple[str, dict[str, Value]]:
    """Read the name and the options of ``NAME(OPTION=VALUE,...)``, in the order of the spelling."""
    match = _CALL.fullmatch(text.strip())
    inside = match["options"] if match else None
    pairs = [part.partition("=") for part in _COMMA.split(inside or "") if part]
    if match is None or not all(name.strip() and value.strip() for name, _, value in pairs):
        meant, how = _BARE.sub(r"=[\1]", text.strip().lower()), ""
        if meant != text.strip():
            with suppress(ParameterError):  # no call either
                read_call(meant)
                how = f": write {meant}"
        raise ParameterError(f"{text!r:.100} is not of the form NAME(OPTION=VALUE,...){how}")
    options: dict[str, Value] = {}
    # Not in a comprehension, which would keep the last of two in silence.
    for name, _, value in pairs:
        if name.strip() in options:
            raise ParameterError(f"{match['name']} has the option {name.strip()} twice: keep one")
        options[name.strip()] = read_value(value.strip())
    return match["name"], options


def read_value(text: str) -> Value:
    """Read a spelt value: a number, true or false, a word, or several in brackets."""
    if text.startswith("[") and text.endswith("]"):
        return tuple(read_scalar(part.strip()) for part in text[1:-1].split(","))
    return read_scalar(text)


def read_scalar(text: str) -> Scalar:
    """Read a number, true or false, or a word."""
    if text in ("true", "false"):
        return text == "true"
    if not _NUMBER.fullmatch(text):
        return text
    return int(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def spell(value: Value) -> str:
    """Spell a value as `read_value` reads it."""
    if isinstance(value, tuple):
        return f"[{','.join(map(spell, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True)
class Parameter:
    """An option of a class: a parameter of a dataclass that can be spelt."""

    name: str
    annotation: Any
    # MISSING if the option is required
    default: Any
    owner: type
    # Of a parameter that is spelt as a file
    open: Callable[[str], Any] | None = None

    @property
    def domain(self) -> str:
        """The values that it takes, for errors."""
        return domain(self.annotation) if self.open is None else "file"

    def read(self, value: Value) -> Any:
        """Read the value, or the file that it names; raises `ParameterError` if it has another type."""
        if self.open is not None:
            return self.open(spell(value))
        if not accepts(self.annotation, value):
            raise ParameterError(f"{self.name} is {spell(value)!r:.60}: it must be {self.domain}")
        kind = _items(self.annotation)
        values = value if isinstance(value, tuple) else (value,)
        if float in _alternatives(kind or self.annotation):
            values = tuple(float(scalar) if type(scalar) is int else scalar for scalar in values)
        return values if kind else values[0]

    def read_text(self, text: str) -> Any:
        """Read the value from its spelling; a text is itself, though it looks like a number."""
        return text if accepts(self.annotation, text) else self.read(read_value(text))

    @property
    def documented(self) -> tuple[str, str]:
        """The type as the docstring has it, and the first paragraph of the meaning."""
        text = cleandoc(self.owner.__doc__ or "").partition("Parameters\n----------\n")[2]
        for heading, meaning in re.findall(r"^(\w[^\n]*)((?:\n(?: .*)?)*)", text.partition("\n\n--")[0], re.MULTILINE):
            names, _, kind = heading.partition(" : ")
            if self.name in names.split(", "):
                # A docstring may refer to another class's for a parameter.
                if alike := re.fullmatch(r"\s*As in `(\w+)`\.\s*", meaning):
                    owner = vars(import_module(self.owner.__module__))[alike[1]]
                    return replace(self, owner=owner).documented
                first = cleandoc(meaning).partition("\n\n")[0]
                return re.split(r", default|, optional", kind)[0], " ".join(first.replace("`", "").split())
        return self.domain, ""


def parameters(kind: type, *without: str) -> dict[str, Parameter]:
    """Return the options of a dataclass by name: values and, of stages, files (`Stage.readers`), except those named."""
    return {name: parameter for name, parameter in _options(kind).items() if name not in without}


@cache  # reranking a few passages would take longer
def _options(kind: type) -> dict[str, Parameter]:
    # Modules import the class of an index for type checkers alone, as it loads Numba.
    hints = get_type_hints(kind, localns={"PositionalIndex": object})
    # A stage names the functions that open its files, such as `RankingModel.load` for ``model``.
    files = getattr(kind, "readers", {})
    return {
        field.name: Parameter(
            field.name,
            hints[field.name],
            field.default if field.default_factory is MISSING else field.default_factory(),
            kind,
            files.get(field.name),
        )
        for field in fields(kind)
        if field.init and (field.name in files or domain(hints[field.name]))
    }


def read_options(of: str, options: Mapping[str, Value], known: Mapping[str, Parameter]) -> dict[str, Any]:
    """Read the values of options by name; raises `ParameterError` if one is unknown, missing, or of another type."""
    for name in options:
        if name not in known:
            raise ParameterError(f"{of} has no option {name!r:.60}: {nearest(name, known)}")
    for name, parameter in known.items():
        if parameter.default is MISSING and name not in options:
            raise ParameterError(f"{of} needs the option {name}: {of}({name}={parameter.domain.upper()})")
    return {name: known[name].read(value) for name, value in options.items()}


def meant(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that another package calls so; None if there is none."""
    known, proposed = set(known), GUESSES.get(name, [])
    if "latent" not in known:  # xQuAD's lambda weighs diversity, whereas that of methods of vectors weighs relevance
        proposed = [ours for ours in proposed if ours != "relevance_weight"]
    return next((ours for ours in proposed if ours in known), None)


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of an error about an unknown name: similar names, or all if there are none."""
    known = list(known)
    similar = [ours] if (ours := meant(name, known)) else close(name, known)
    if not known:
        return "there are none"
    return f"did you mean {' or '.join(similar)}?" if similar else f"use {', '.join(known)}"


def close(name: str, known: Iterable[str]) -> list[str]:
    """Return the three closest known names, if few letters differ; json is not close to jobs, nor stages to scale."""
    few = 1 if len(name) <= 5 else 2
    distances = {ours: _distance(name, ours) for ours in known if abs(len(ours) - len(name)) <= few}
    return sorted((ours for ours, n in distances.items() if n <= few), key=distances.__getitem__)[:3]


def _distance(name: str, ours: str) -> int:
    """Count the letters to insert, delete, replace or swap with their neighbours."""
    rows = [list(range(len(ours) + 1))]
    for i, letter in enumerate(name, 1):
        row = [i]
        for j, other in enumerate(ours, 1):
            row.append(min(rows[-1][j] + 1, row[-1] + 1, rows[-1][j - 1] + (letter != other)))
            if i > 1 < j and name[i - 2 : i] == ours[j - 1] + ours[j - 2]:
                row[j] = min(row[j], rows[-2][j - 2] + 1)
        rows.append(row)
    return rows[-1][-1]


def _alternatives(annotation: Any) -> list[Any]:
    """Return the types of a union."""
    return list(get_args(annotation)) if get_origin(annotation) in (Union, UnionType) else [annotation]


def _items(annotation: Any) -> Any:
    """Return the type of the items of ``tuple[TYPE, ...]``; None for other types."""
    kinds = [kind for kind in _alternatives(annotation) if get_origin(kind) is tuple]
    return get_args(kinds[0])[0] if kinds and len(get_args(kinds[0])) == 2 and get_args(kinds[0])[1] is ... else None


def accepts(annotation: Any, value: Any) -> bool:
    """Return whether a value has a type; integers are numbers, and an item is accepted for a tuple."""
    if kind := _items(annotation):
        return all(accepts(kind, item) for item in (value if isinstance(value, tuple) else (value,)))
    for kind in _alternatives(annotation):
        if get_origin(kind) is Literal:
            if value in get_args(kind):
                return True
        elif kind is int and type(value) is int:  # by type, as True is an int
            return abs(value) < MAX_INTEGER
        elif type(value) is kind or (kind is float and type(value) is int):
            return True
    return False


def domain(annotation: Any) -> str:
    """Return the values of a type that can be spelt, for errors; empty if there are none."""
    if several := _items(annotation):
        return f"{domain(several)}, or several in brackets" if several in _WORDS else ""
    kinds = _alternatives(annotation)
    known = [_WORDS[kind] for kind in kinds if kind in _WORDS]
    known += [", ".join(map(str, get_args(kind))) for kind in kinds if get_origin(kind) is Literal]
    return " or ".join(known)
