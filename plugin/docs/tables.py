"""Tables and sentences of figures in the pages, made from the scores that the experiment files expect.

A page has a block `<!-- made: NAME -->`, a blank line, what `MADE[NAME]` gives, a blank line, `<!-- end -->`. The
blocks are kept in the repository, where they can be read; `make names` writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path

import yaml

from greylag.recipes import general_model
from greylag.studies.config import shipped_file
from greylag_papers.beyond.encoder import COSINES, ENCODER, HYBRID, METHODS, RERANKED, SUM, USUAL, WITHOUT_BM25
from greylag_papers.beyond.few_topics import SYSTEMS
from greylag_papers.beyond.questions import CONFIDENCE, LEARNED, NUMBERS
from greylag_papers.beyond.ranker_curve import AUTOMATIC, BEST, points

Figures = Mapping[str, Mapping[str, float]]
"""The expected figures of an experiment file, by row and name."""

CURVES = ("CACM", "Vaswani", "Cranfield", "WikiQA", "NFCorpus", "MQ2008")
"""The collections of the learning curves, in the order of picture and table."""
FEW = (5, 10, 25)
"""Numbers of judged topics that are few."""
GENERAL = {
    "cacm": "CACM, abstracts",
    "cranfield": "Cranfield, abstracts",
    "vaswani": "Vaswani, abstracts",
    "nfcorpus": "NFCorpus, abstracts",
    "wikiqa": "WikiQA, answers to questions",
    "climate_fever": "Climate-FEVER, claims",
    "tabfact": "TabFact, tables",
    "ambient": "AMBIENT, web snippets for a sense",
    "div400": "Div400, photos of landmarks",
    "clariq": "ClariQ, clarifying questions",
    "cosqa": "CoSQA, code for web queries",
    "time": "TIME, news of 1963",
    "lisa": "LISA, abstracts",
    "cisi": "CISI, abstracts",
    "xquad_en": "XQuAD, sentences, English",
    "xquad_de": "the same in German",
    "xquad_es": "the same in Spanish",
    "xquad_zh": "the same in Chinese",
}
"""The collections of the general model."""
KINDS = {
    "stackfaq": "StackFAQ, answers to rephrased questions",
    "humanevalx": "HumanEval-X, functions for descriptions",
    "legalquad": "LegalQuAD, German court decisions for questions",
    "nl2bash": "NL2Bash, shell commands for descriptions",
}
"""Collections that nothing about the general model was learned from or chosen on."""
ERRORS = Path(__file__).parents[1] / "benchmarks" / "significance.yaml"
"""The errors of tests on few topics, which a benchmark of that name writes."""
_NUMBERS = (
    "none one two three four five six seven eight nine ten eleven twelve "
    "thirteen fourteen fifteen sixteen seventeen eighteen"
).split()
_BLOCK = re.compile(r"(<!-- made: ([\w-]+) -->\n)(?:(?!<!-- ).*\n)*?(<!-- end -->)")


def with_figures(text: str) -> str:
    """A page with its blocks made anew."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{MADE[block[2]]()}\n\n{block[3]}", text)


@cache
def expected(name: str) -> Figures:
    """The scores that an experiment file expects, in its order."""
    found: Figures = yaml.safe_load(shipped_file(name).read_text(encoding="utf-8")).get("expected", {})
    return found


def curve_points() -> dict[str, Figures]:
    """The expected figures of each learning curve that has some, by the collection's title."""
    found = {title: expected(f"{title.lower()}.ranker_curve") for title in CURVES}
    return {title: figures for title, figures in found.items() if figures}


def curves() -> str:
    """The learning curves at all sizes."""
    systems = (AUTOMATIC, "general", "BM25", "RM3", "LightGBM")
    rows = [["", "topics", *systems, "less BM25 (MQ2008: LightGBM)", f"less {BEST}"]]
    for title, figures in curve_points().items():
        for size, means in points(figures).items():
            first, other = (row for name, row in figures.items() if name.startswith(f"{size} topics, {AUTOMATIC}"))
            best = max((name for name in means if name != AUTOMATIC), key=means.__getitem__)
            cells = [_number(means[name]) if name in means else "" for name in systems]
            rows.append([title, str(size), *cells, _difference(first), f"{_difference(other)} {best}"])
    return _table(rows)


def curve_gains() -> str:
    """How far the automatic choice is above tuned BM25 on collections of texts, in a sentence."""
    every = [(name, row) for figures in curve_points().values() for name, row in figures.items()]
    least, most, _ = _gains([row for name, row in every if name.endswith(f"{AUTOMATIC} less BM25")])
    best = [row for name, row in every if name.endswith(f"less {BEST}")]
    below = sum(row["difference"] < 0 and row["p"] < 0.05 for row in best)
    where, than = "nowhere", "any other"
    if below:
        where, than = f"at {_NUMBERS[below]} size{'s' if below > 1 else ''}", "another"
    texts = sum("BM25" in next(iter(points(figures).values())) for figures in curve_points().values())
    return (
        f"On {_NUMBERS[texts]} public text collections, nDCG@10 on held-out topics was {least} to {most} above "
        f"tuned BM25,\nand {where} significantly below {than} system ([evidence](../evidence/rankers.md))."
    )


def few_topics() -> str:
    """What few judged topics gain over the general model, nDCG@10 of held-out topics."""
    figures, gain = expected("few_topics"), f"{AUTOMATIC} less general"
    rows = [["", "general", *(f"{size} topics" for size in FEW)]]
    for name, title in GENERAL.items():
        cells = [_difference(figures[f"{name}, {size} topics, {gain}"]) for size in FEW]
        rows.append([title, _number(figures[f"{name}, {FEW[0]} topics"]["general"]), *cells])
    means = (_interval(figures[f"all, {size} topics, {gain}"], "mean") for size in FEW)
    return _table([*rows, ["mean", "", *means]])


def few_topics_means() -> str:
    """The mean differences of the automatic choice over the collections, by number of topics."""
    rows = [["topics", *(f"less {other}" for other in SYSTEMS[1:])]]
    for size in FEW:
        found = [expected("few_topics")[f"all, {size} topics, {AUTOMATIC} less {other}"] for other in SYSTEMS[1:]]
        rows.append([str(size), *(f"{_interval(row, 'mean')}, {row['above']:.0f}" for row in found)])
    return _table(rows)


def few_topics_gain() -> str:
    """What few judged topics gain over the general model, in a sentence."""
    figures, gain = expected("few_topics"), f"{AUTOMATIC} less general"
    found = [[figures[f"{name}, {size} topics, {gain}"] for name in GENERAL] for size in FEW]

    def listed(values: Iterable[str]) -> str:
        *first, last = values
        return f"{', '.join(first)} and {last}"

    means = listed(_number(figures[f"all, {size} topics, {gain}"]["mean"], "+.3f") for size in FEW)
    above = listed(_NUMBERS[sum(row["difference"] > 0 for row in rows)] for rows in found)
    surely = [
        listed(_NUMBERS[sum(sign * row["difference"] > 0 and row["p"] < 0.05 for row in rows)] for rows in found)
        for sign in (1, -1)
    ]
    return (
        f"On {_NUMBERS[len(GENERAL)]} public collections, nDCG@10 on held-out topics after training on "
        f"{listed(map(str, FEW))} judged topics differs by {means}\nfrom the general model on average. It is "
        f"above it on {above},\nsignificantly on {surely[0]}, and significantly below it on {surely[1]}."
    )


def general_collections() -> str:
    """The general model on each collection, nDCG@10 of the top 100."""
    figures, kind, indexes = expected("general"), ", nDCG@10, top 100", general_model().provenance["indexes"]
    systems = ("BM25", "tuned BM25", "RM3", "SDM", "general", "general-positions")
    rows = [["", "terms", *systems[:-1], "without texts", "general less BM25"]]
    for name, title in GENERAL.items():
        means = (_number(figures[name + kind][system]) for system in systems)
        gain = _interval(figures[f"{name}{kind}, general less BM25"], "difference")
        rows.append([title, f"{indexes[name]['average_length']:.0f}", *means, gain])
    return _table(rows)


def general_kinds() -> str:
    """The general model as shipped, on kinds of collection that it was not learned from, nDCG@10 of the top 100."""
    figures, kind = expected("general-kinds"), ", nDCG@10, top 100"
    systems = ("BM25", "tuned BM25", "RM3", "SDM", "general", "general-positions")
    rows = [["", *systems[:-1], "without texts", "general less BM25"]]
    for name, title in KINDS.items():
        means = (_number(figures[name + kind][system]) for system in systems)
        rows.append([title, *means, _difference(figures[f"{name}{kind}, general less BM25"])])
    return _table(rows)


def general_weights() -> str:
    """The weights of the general model for short, middling and long documents."""
    model = general_model()
    slopes = model.by_length
    assert slopes is not None
    lengths = slopes.shortest, slopes.middle, slopes.longest
    by_feature = zip(*(model.at_length(length).weights for length in lengths), strict=True)
    rows = [["feature", *(f"{length:.0f} terms" for length in lengths)]]
    for feature, weights in zip(model.features, by_feature, strict=True):
        rows.append([f"`{str(feature).removesuffix('@z')}`", *(_number(weight, "+.3f") for weight in weights)])
    return _table(rows)


def general_means() -> str:
    """The mean differences of the general model over the collections."""
    others = ("BM25", "tuned BM25", "RM3", "SDM", "general-positions")
    rows = [["general less", *others[:-1], "without texts"]]
    for depth, measure in product((100, 1000), ("nDCG@10", "AP")):
        found = [expected("general")[f"all, {measure}, top {depth}, general less {other}"] for other in others]
        rows.append([f"{measure}, top {depth}", *(_interval(row, "mean") for row in found)])
        rows.append(["worst, above on", *(f"{_number(row['least'], '+.3f')}, {row['above']:.0f}" for row in found)])
    return _table(rows)


def general_gain() -> str:
    """What the general model gains over BM25's top 1000, in a sentence."""
    figures, kind = expected("general"), ", nDCG@10, top 1000, general less BM25"
    least, most, sure = _gains([figures[name + kind] for name in GENERAL])
    return (
        f"On {_NUMBERS[len(GENERAL)]} public collections, each ranked by weights of the others, nDCG@10 was\n"
        f"{least} to {most} above BM25, {_number(figures[f'all{kind}']['mean'])} on "
        f"average, significantly on {sure} ([evidence](../evidence/general-model.md))."
    )


def encoder_collections() -> str:
    """What is found beside an encoder without judgements, nDCG@10 of each collection and their mean."""
    systems = ["BM25", "general", ENCODER, *(method for method in METHODS if method != WITHOUT_BM25), COSINES, HYBRID]
    return _encoder_table(systems, SUM)


def encoder_top_100() -> str:
    """The same of the top 100 documents of each side."""
    return _encoder_table([ENCODER, USUAL, SUM, COSINES, HYBRID], SUM, "nDCG@10, top 100")


def encoder_alone() -> str:
    """What the general model makes of an encoder's own hits, nDCG@10 of each collection and their mean."""
    return _encoder_table([ENCODER, RERANKED, WITHOUT_BM25, SUM, HYBRID])


def encoder_differences() -> str:
    """The mean differences of hybrid search over the collections."""
    others = ENCODER, USUAL, SUM, COSINES
    rows = [["hybrid less", *others]]
    for label in ("nDCG@10", "AP", "nDCG@10, top 100", "AP, top 100"):
        found = [expected("encoder")[f"all, {label}, {HYBRID} less {other}"] for other in others]
        rows.append([label, *(_interval(row, "mean") for row in found)])
        rows.append(["worst, above on", *(f"{_number(row['least'], '+.3f')}, {row['above']:.0f}" for row in found)])
    return _table(rows)


def _encoder_table(systems: list[str], other: str = "", label: str = "nDCG@10") -> str:
    figures, difference = expected("encoder"), f"{HYBRID} less {other}"
    rows = [["", *systems, *[difference] * bool(other)]]
    for name in _encoder_rows(label):
        found = figures.get(f"{name}, {difference}", {})
        shown = _difference(found) if "p" in found else _interval(found, "mean") if other else ""
        title = {**GENERAL, **KINDS}.get(name.removesuffix(f", {label}"), "mean")
        rows.append([title, *(_number(figures[name][system]) for system in systems), *[shown] * bool(other)])
    return _table(rows)


def _encoder_rows(label: str = "nDCG@10") -> list[str]:
    return [name for name in expected("encoder") if name.endswith(f", {label}")]


def encoder_alone_gain() -> str:
    """What the general model makes of an encoder's own hits, in a sentence."""
    figures = expected("encoder")
    reranked, added = (figures[f"all, nDCG@10, {of} less {ENCODER}"] for of in (RERANKED, WITHOUT_BM25))
    return (
        f"On {_NUMBERS[len(_encoder_rows()) - 1]} collections, the reranked run differs from the encoder's by "
        f"{_number(reranked['mean'], '+.3f')} nDCG@10 on average and\n{_number(reranked['least'], '+.3f')} at worst, "
        f"the sum by {_number(added['mean'], '+.3f')} and {_number(added['least'], '+.3f')}; it is above the "
        f"encoder's on {_NUMBERS[int(added['above'])]}\n([evidence](../evidence/encoder.md#the-encoders-hits-alone))."
    )


def encoder_gain() -> str:
    """What hybrid search gains over what is usual, in a sentence."""
    figures, end = expected("encoder"), f", nDCG@10, {HYBRID} less {USUAL}"
    each = [row for name, row in figures.items() if name.endswith(end) and name != f"all{end}"]
    least, most, sure = _gains(each)
    return (
        f"On {_NUMBERS[len(each)]} public collections, nDCG@10 of hybrid search was {least} to {most} above the "
        f"usual fusion,\nreciprocal ranks of BM25 and the encoder, {_number(figures[f'all{end}']['mean'])} on average, "
        f"significantly on {sure} ([evidence](../evidence/encoder.md))."
    )


def encoder_weight() -> str:
    """What a weight from judged questions gains over the collections, nDCG@10."""
    rows = [["judged", "collections", "gain", "worst", "above on", "significantly above", "significantly below"]]
    end, start = f", {LEARNED}", f"all, {LEARNED}, "
    each = [row for name, row in expected("encoder").items() if name.endswith(end)]
    for name, row in expected("encoder").items():
        if name.startswith(start):
            judged = name.removeprefix(start)
            counts = (f"{row[of]:.0f}" if of in row else "" for of in ("above", "significant", "significantly below"))
            gains = _interval(row, "mean"), _number(row["least"], "+.3f")
            rows.append([judged, str(sum(judged in own for own in each)), *gains, *counts])
    return _table(rows)


def encoder_limits() -> str:
    """How well numbers tell questions with an answer from others, over the collections."""
    found = {number: expected("encoder")[f"all, {number}"] for number in NUMBERS}
    columns = [*found[CONFIDENCE]]
    return _table(
        [["number", *columns], *([name, *(_number(row[of]) for of in columns)] for name, row in found.items())]
    )


def encoder_limit_gain() -> str:
    """What a limit keeps and refuses, in a sentence."""
    row = expected("encoder")[f"all, {CONFIDENCE}"]
    kept, unanswerable, others = (_number(row[of], ".2f") for of in ("kept", "unanswerable refused", "others refused"))
    return (
        f"With MiniLM on {_NUMBERS[len(_encoder_rows()) - 1]} public collections, a limit kept {kept} of other such "
        f"questions, and refused {unanswerable} of those\nwhose answers had been taken away and {others} of other "
        "collections' ([measured](../evidence/encoder.md#nothing-found))."
    )


def errors_of_tests() -> str:
    """How often tests on few topics find a difference of equal systems, in per cent."""
    found: Figures = yaml.safe_load(ERRORS.read_text(encoding="utf-8"))
    measures, sizes = (dict.fromkeys(name.removesuffix(" topics").split(", ")[n] for name in found) for n in (0, 1))
    rows = [["topics", *(f"{measure}: {test}" for measure in measures for test in ("t", "exact"))]]
    for size in sizes:
        of_size = (found[f"{measure}, {size} topics"] for measure in measures)
        rows.append([size, *(f"{100 * row[test]:.1f}" for row in of_size for test in ("t", "exact"))])
    worst = {size: found[f"Success@1, {size} topics"]["worst"] for size in sizes}
    first, most = next((int(size), share) for size, share in worst.items() if share == max(worst.values()))
    return (
        f"{_table(rows)}\n\nThese are means over how many topics differ. Where a certain number does, the t-test errs "
        f"by Success@1 in up to {100 * most:.1f} %\nof cases, on {_NUMBERS[first]} topics and more; the exact test "
        "never in more than 5 %."
    )


def _gains(rows: list[Mapping[str, float]]) -> tuple[str, str, str]:
    """The least and the highest difference, and how many are significant."""
    gains = [row["difference"] for row in rows]
    return _number(min(gains)), _number(max(gains)), _NUMBERS[sum(row["p"] < 0.05 for row in rows) % len(_NUMBERS)]


def _number(value: float, form: str = ".3f") -> str:
    return re.sub(r"\b0\.", ".", f"{value:{form}}")


def _interval(row: Mapping[str, float], name: str) -> str:
    low, high = (_number(row[end], "+.3f") for end in ("low", "high"))
    return f"{_number(row[name], '+.3f')} [{low}, {high}]"


def _difference(row: Mapping[str, float]) -> str:
    return _interval(row, "difference").replace(" ", "* " if row["p"] < 0.05 else " ", 1)


def _table(rows: Iterable[Iterable[str]]) -> str:
    lines = [f"| {' | '.join(cells)} |".replace("|  |", "| |") for cells in rows]
    return "\n".join([lines[0], "|---" * (lines[0].count("|") - 1) + "|", *lines[1:]])


MADE: Mapping[str, Callable[[], str]] = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(curve_gains, curves, few_topics, few_topics_gain, few_topics_means),
        *(general_collections, general_gain, general_kinds, general_means, general_weights),
        errors_of_tests,
        *(encoder_alone, encoder_alone_gain, encoder_collections, encoder_differences, encoder_gain, encoder_top_100),
        *(encoder_limit_gain, encoder_limits, encoder_weight),
    )
}
"""What makes each block."""
