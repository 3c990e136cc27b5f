"""Answers from Lucene and Anserini themselves, independent of greylag's own loops."""

from greylag.index.lucene.bulk_calls import directory
from greylag.index.lucene.jvm import java_class


def reader(path):
    return java_class("io.anserini.index.IndexReaderUtils").getReader(str(path))


def phrase_document_frequency(path, terms):
    """The number of documents that contain the analysed `terms` as a phrase, by Lucene's PhraseQuery."""
    builder, term = (
        java_class("org.apache.lucene.search.PhraseQuery$Builder")(),
        java_class("org.apache.lucene.index.Term"),
    )
    for text in terms:
        builder.add(term("contents", text))
    return int(java_class("org.apache.lucene.search.IndexSearcher")(reader(path)).count(builder.build()))


def anserini_index(documents, out, **options):
    """Index a folder of JSON lines with Anserini, given its own arguments (such as ``storePositions``)."""
    arguments = java_class("io.anserini.index.IndexCollection$Args")()
    arguments.input, arguments.index = str(documents), str(out)
    arguments.collectionClass, arguments.generatorClass = "JsonCollection", "DefaultLuceneDocumentGenerator"
    arguments.threads, arguments.memoryBuffer, arguments.quiet = 1, 64, True
    for name, value in options.items():
        setattr(arguments, name, value)
    java_class("io.anserini.index.IndexCollection")(arguments).run()


def join(indexes, out, delete=None):
    """Combine the unmerged segments of several indexes, and delete the documents with the id `delete`."""
    configuration = java_class("org.apache.lucene.index.IndexWriterConfig")()
    writer = java_class("org.apache.lucene.index.IndexWriter")(directory(out), configuration)
    for index in indexes:
        writer.addIndexes(directory(index))
    if delete is not None:
        term = java_class("org.apache.lucene.index.Term")("id", delete)
        writer.deleteDocuments(java_class("org.apache.lucene.search.TermQuery")(term))
    writer.close()


def segments(path):
    return int(java_class("org.apache.lucene.index.SegmentInfos").readLatestCommit(directory(path)).size())
