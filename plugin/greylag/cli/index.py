"""``greylag index``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer
from joblib import effective_n_jobs

from greylag.cli.options import Jobs
from greylag.index.positional import PositionalIndex
from greylag.lucene.build import build_index
from greylag.lucene.documents import stamp_documents


def index(
    docs: Annotated[
        Path,
        typer.Argument(
            help="File or folder of documents, plain, gzipped or in tar archives. "
            "Hidden files and READMEs of a folder are not indexed; those of an archive are."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the index; must not exist yet.")],
    collection: Annotated[
        Literal["JsonCollection", "TrecCollection", "HtmlCollection"] | None,
        typer.Option("--collection", help="Format of the documents; detected by default."),
    ] = None,
    jobs: Jobs = -1,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that greylag made.")] = False,
) -> None:
    """Index documents with positions, and export the positions.

    If it was interrupted, the same command completes what is missing.
    """
    n = build_index(
        docs,
        out,
        collection=collection,
        threads=effective_n_jobs(jobs),
        origin=stamp_documents(docs, collection),
        overwrite=overwrite,
    )
    positional = PositionalIndex.from_lucene(out)
    typer.echo(f"{out}: {n} documents, {positional.n_tokens} tokens, {positional.n_terms} terms")
