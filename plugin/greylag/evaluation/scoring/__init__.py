"""Measures, scores of runs and tests of their differences, pools, folds and teams.

`measures` is the one grammar of measures, on which learning builds; `subtopics` the one definition of subtopic coverage
and loss, for evaluation and for SVM-div. `submission` checks TREC's rules and repairs nothing.
"""
