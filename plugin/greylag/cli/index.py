"""``greylag index``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer
from joblib import effective_n_jobs

from greylag.base import ParameterError, scratch_folder
from greylag.cli.options import Shared
from greylag.cli.terminal import write_line
from greylag.index import ENGLISH, PositionalIndex, build_index, language_code, stamp_documents
from greylag.passages import write_documents


def index(
    context: typer.Context,
    docs: Annotated[
        Path,
        typer.Argument(
            help="File or folder of documents, plain, gzipped or in tar archives. "
            "Hidden files and READMEs are skipped in folders, but not in archives. Or irds:NAME."
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder of the index; must not exist yet.")],
    collection: Annotated[
        Literal["JsonCollection", "TrecCollection", "HtmlCollection", "TableCollection"] | None,
        typer.Option("--collection", help="Format of the documents; detected by default."),
    ] = None,
    fields: Annotated[
        str | None,
        typer.Option(
            "--fields",
            metavar="id=FIELD,contents=FIELD+FIELD",
            help="Fields of JSON objects, or columns of tables (.csv, .tsv), to index; columns without names are "
            "numbered from 1.",
        ),
    ] = None,
    language: Annotated[
        str,
        typer.Option(
            "--language",
            help="Language of the documents, such as German or de; or whitespace, which keeps words unchanged.",
        ),
    ] = ENGLISH,
    texts: Annotated[
        bool,
        typer.Option(
            "--texts/--no-texts",
            help="Store the texts, too: features of surface words (written:characters) need them.",
        ),
    ] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an index that greylag made.")] = False,
) -> None:
    """Index documents with positions, and export the positions.

    After an interruption, the same command completes the index.
    """
    shared: Shared = context.obj
    threads, language = effective_n_jobs(shared.jobs), language_code(language)
    build = partial(build_index, out=out, language=language, texts=texts, threads=threads, overwrite=overwrite)
    without = [] if texts else ["without texts"]
    if str(docs).startswith("irds:"):
        if collection is not None or fields is not None:
            raise ParameterError("--collection and --fields are for files, not for irds: names")
        # Anserini indexes files alone, so the data set's documents are written to one first.
        with scratch_folder() as folder:
            origin = " ".join([str(docs), *([] if language == ENGLISH else [language]), *without])
            n = build(write_documents(str(docs), folder / "docs.jsonl"), origin=origin)
    else:
        origin = stamp_documents(docs, collection, fields, language, *without)
        n = build(docs, collection=collection, fields=fields, origin=origin)
    positional = PositionalIndex.from_lucene(out)
    write_line(f"{out}: {n} documents, {positional.n_tokens} tokens, {positional.n_terms} terms")
