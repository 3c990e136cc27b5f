"""Runs, topics and judgements, random and fixed."""

from hypothesis import strategies as st

from greylag.ranking import Ranking, Run

NAMES = st.text(
    st.characters(min_codepoint=33, max_codepoint=0x2FF, blacklist_categories=("Z", "C")), min_size=1, max_size=6
)
SCORES = st.floats(-1e6, 1e6).map(lambda x: x + 0.0)
TOPICS = st.dictionaries(NAMES, st.text(max_size=20), min_size=1, max_size=4)
QRELS = st.dictionaries(
    NAMES, st.dictionaries(NAMES, st.integers(-2, 4), min_size=1, max_size=6), min_size=1, max_size=4
)


@st.composite
def runs(draw):
    """Runs with texts, ties, and at least one document for each query."""
    rankings = []
    for qid, query in draw(TOPICS).items():
        scored = draw(st.dictionaries(NAMES, SCORES, min_size=1, max_size=8))
        rankings.append(Ranking.sort(qid, query, list(scored), list(scored.values())))
    return Run(tuple(rankings), "random")


PASSAGES = ["the cat sat", "the cat sat down", "a dog ran", "a dog ran away", "wing flow"]
SCORED = [0.9, 0.8, 0.7, 0.6, 0.5]
