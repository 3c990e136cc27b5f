"""Windows matched by a direct implementation of their definition."""

from greylag.features.spec import UNLIMITED


def ordered_matches(document, clique, width):
    """#M: from every occurrence of the first term, each next term at its first occurrence after the previous one."""
    found = []
    for begin, word in enumerate(document):
        if word != clique[0]:
            continue
        end = begin + 1
        for term in clique[1:]:
            later = [p for p in range(end, len(document)) if document[p] == term]
            if not later or later[0] - end + 1 > width:
                break
            end = later[0] + 1
        else:
            found.append((begin, end))
    return found


def unordered_matches(document, clique, width, profile="indri"):
    """#uw: from every occurrence of any term, the shortest span with all of them, if it is short enough."""
    found = []
    longest = width if profile == "inquery" else width * len(clique)
    for begin, word in enumerate(document):
        if word not in clique:
            continue
        for end in range(begin + 1, len(document) + 1):
            stretch = document[begin:end]
            if all(stretch.count(term) >= clique.count(term) for term in clique):
                if width == UNLIMITED or end - begin <= longest:
                    found.append((begin, end))
                break
    return found


def count(matches, profile):
    if profile == "galago":
        return len(matches)
    total, free = 0, 0
    for begin, end in sorted(matches):
        if begin >= free:
            total, free = total + 1, end
    return total


def random_documents(rng, number):
    """Short documents over few words, with holes, so that windows overlap, repeat and fail in every way."""
    words = ["cat", "cow", "dog", "pig", None]
    return [[words[i] for i in rng.integers(len(words), size=rng.integers(0, 40))] for _ in range(number)]


def as_text(document):
    return " ".join("the" if word is None else word for word in document)
