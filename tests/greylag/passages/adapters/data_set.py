"""A data set of ir_datasets, made from local files by its own classes."""

FILES = {
    "docs": "d1\tthe cat sat\nd2\ta dog ran\n",
    "queries": "1\tcat\n2\tdog run\n",
    "qrels": "1 0 d1 2\n1 0 d2 0\n2 0 d2 1\n",
    "scoreddocs": "1 Q0 d2 1 3.5 x\n1 Q0 d1 2 3.0 x\n",
}


class Local:
    """A file, as ir_datasets reads its downloads."""

    def __init__(self, path):
        self._path = path

    def path(self, force=True):
        return self._path

    def stream(self):
        return self._path.open("rb")


def registered(tmp_path, monkeypatch):
    """A data set with all four kinds, registered as "greylag-test"."""
    import ir_datasets
    from ir_datasets import formats

    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))

    def file(kind):
        (tmp_path / kind).write_text(FILES[kind])
        return Local(tmp_path / kind)

    made = ir_datasets.Dataset(
        formats.TsvDocs(file("docs"), namespace="t", lang="en"),
        formats.TsvQueries(file("queries"), namespace="t", lang="en"),
        formats.TrecQrels(file("qrels"), {0: "no", 1: "yes", 2: "very"}),
        formats.TrecScoredDocs(file("scoreddocs")),
    )
    monkeypatch.setitem(ir_datasets.registry._registered, "greylag-test", made)
    return made
