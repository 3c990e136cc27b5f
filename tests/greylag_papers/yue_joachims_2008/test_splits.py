from __future__ import annotations

import pytest

from greylag import ParameterError
from greylag_papers.yue_joachims_2008.queries import Split, first_split, folds, rotations
from tests.greylag_papers.yue_joachims_2008.samples import queries


def qids(split: Split) -> list[list[str]]:
    return [[query.qid for query in part] for part in split]


def test_first_split_tests_the_rest() -> None:
    assert qids(first_split(queries(6), 3, 1)) == [["0", "1", "2"], ["3"], ["4", "5"]]


def test_rotations_test_each_query_once() -> None:
    given = queries(8)
    splits = rotations(given, n_training=4, n_validation=2)
    assert [split.test[0].qid for split in splits] == [query.qid for query in given]
    assert qids(splits[5]) == [["6", "7", "0", "1"], ["2", "3"], ["5"]]
    for split in splits:
        assert (len(split.training), len(split.validation), len(split.test)) == (4, 2, 1)
        assert len({query.qid for part in split for query in part}) == 7


def test_rotations_can_test_blocks() -> None:
    splits = rotations(queries(8), n_training=3, n_validation=2, n_splits=3)
    assert qids(splits[0]) == [["3", "4", "5"], ["6", "7"], ["0", "1", "2"]]
    assert qids(splits[1]) == [["6", "7", "0"], ["1", "2"], ["3", "4", "5"]]
    assert qids(splits[2]) == [["0", "1", "2"], ["3", "4"], ["6", "7"]]
    with pytest.raises(ParameterError, match="2 splits of 8 queries leave 4, fewer than 5"):
        rotations(queries(8), n_training=3, n_validation=2, n_splits=2)


@pytest.mark.parametrize(("n", "blocks"), [(44, [22, 22]), (25, [9, 8, 8]), (17, [1] * 17), (40, [20, 20])])
def test_folds_test_each_query_once_on_unseen_queries(n: int, blocks: list[int]) -> None:
    splits = folds(queries(n), 12, 4)
    assert [len(split.test) for split in splits] == blocks
    assert [query.qid for split in splits for query in split.test] == [str(i) for i in range(n)]
    for split in splits:
        assert (len(split.training), len(split.validation)) == (12, 4)
        seen = [query.qid for part in split for query in part]
        assert len(set(seen)) == len(seen)


@pytest.mark.parametrize("split", [first_split, rotations, folds])
@pytest.mark.parametrize(("n", "n_training", "n_validation"), [(16, 12, 4), (9, 0, 4), (9, 4, 0)])
def test_too_few_queries(split, n: int, n_training: int, n_validation: int) -> None:
    message = f"{n} queries are too few for {n_training} to train on, {n_validation} to validate on and at least 1 to"
    with pytest.raises(ParameterError, match=message):
        split(queries(n), n_training, n_validation)
