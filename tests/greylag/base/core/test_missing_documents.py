"""The warnings of unknown documents."""

from greylag.base.core import missing_documents


def test_a_query_alone_and_nothing_unknown(caplog):
    missing_documents.report_missing("they stay", "q1", ["x", "y"], 5)
    missing_documents.report_missing("they stay", "q2", [], 5)
    with missing_documents.gather_missing() as tally:
        missing_documents.report_missing("they stay", "q", [], 3)
    tally.warn("run a")
    assert caplog.messages == [
        "query q1: 2 of 5 documents of 1 queries are unknown, such as x (query q1, with 2 of 5): they stay"
    ]


def test_one_warning_for_merged_tallies(caplog):
    run = missing_documents.MissingTally()
    for number in range(10):
        with missing_documents.gather_missing() as tally:
            missing_documents.report_missing("they stay", f"q{number}", [f"x{number}"], 3)
            if number == 3:
                missing_documents.report_missing("they go", "q3", ["x3"], 3)
        run.merge(tally.counts)
    assert caplog.messages == []
    run.warn("run a")
    assert caplog.messages == [
        "run a: 10 of 30 documents of 10 queries are unknown, such as x0 (query q0, with 1 of 3): they stay, they go"
    ]


def test_one_warning_for_each_thing_that_documents_are(caplog):
    with missing_documents.gather_missing() as tally:
        missing_documents.report_missing("they stay", "q1", ["x"], 3)
        missing_documents.report_missing("they are least", "q1", ["x", "y"], 3, what="not in a.run")
        missing_documents.report_missing("they are least", "q2", ["z"], 3, what="not in a.run")
    tally.warn("run a")
    assert caplog.messages == [
        "run a: 1 of 3 documents of 1 queries are unknown, such as x (query q1, with 1 of 3): they stay",
        "run a: 3 of 6 documents of 2 queries are not in a.run, such as x (query q1, with 2 of 3): they are least",
    ]
