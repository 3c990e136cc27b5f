from greylag_papers.yue_joachims_2008.synthetic import count_significant


def test_what_is_to_the_contrary_is_counted_after_a_correction():
    better, worse = {"mean": 0.1, "against": 0.2}, {"mean": 0.2, "against": 0.1}
    rows = [{**better, "p": 0.04}, {**worse, "p": 0.04}, {**worse, "p": 0.001}, {**better, "p": 0.2}]
    assert count_significant(rows) == {"significant": 1, "contrary": 1, "of": 4}
