"""Names of languages, and which one texts look like."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable
from functools import cache
from itertools import islice

from greylag.base import ParameterError, shown

_log = logging.getLogger("greylag")
ENGLISH, WHITESPACE = "en", "whitespace"
NAMES = {
    "ar": "Arabic", "bn": "Bengali", "da": "Danish", "de": "German", "en": "English", "es": "Spanish",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "hi": "Hindi", "hu": "Hungarian", "id": "Indonesian",
    "it": "Italian", "ja": "Japanese", "ko": "Korean", "nl": "Dutch", "no": "Norwegian", "pl": "Polish",
    "pt": "Portuguese", "ro": "Romanian", "ru": "Russian", "sv": "Swedish", "te": "Telugu", "th": "Thai",
    "tr": "Turkish", "uk": "Ukrainian", "zh": "Chinese",
}  # fmt: skip
"""English names, by ISO 639-1 code, of the languages of Anserini's analyzers, and Romanian."""
_SCRIPTS = {
    "zh": "\u4e00-\u9fff", "ja": "\u3041-\u30ff", "ko": "\uac00-\ud7a3", "ru": "\u0400-\u04ff", "ar": "\u0600-\u06ff",
    "hi": "\u0900-\u097f", "bn": "\u0980-\u09ff", "te": "\u0c00-\u0c7f", "th": "\u0e00-\u0e7f",
}  # fmt: skip
_OF_SCRIPT = {language: re.compile(f"[{characters}]") for language, characters in _SCRIPTS.items()}
_FREQUENT = {
    language: frozenset(frequent.split())
    for language, frequent in {
        "en": "the of and to in is that for was with are",
        "da": "og det at af en til ikke på er som med",
        "de": "der die das und nicht ist von mit ein eine den",
        "es": "el los las del que una por con en se es",
        "fi": "ja on ei että oli hän kun mutta se ovat myös",
        "fr": "les des une est dans que pour du le et qui",
        "hu": "az és hogy nem egy volt meg csak ez mint el",
        "id": "yang dan di dengan untuk dari pada ini itu dalam adalah",
        "it": "il che di della per non con una gli è del",
        "nl": "het een van en niet dat zijn op de te voor",
        "no": "og det av en til ikke på er som med jeg",
        "pl": "w na się nie jest że do z oraz przez jak",
        "pt": "não uma que do da os para com em um são",
        "ro": "și în să că nu este care pe din cu mai",
        "sv": "och att det som en på är inte av för ett",
        "tr": "ve bir bu için ile olarak da de çok daha olan",
    }.items()
}
"""Eleven of the most frequent words of languages in Latin script."""
_SAMPLE_TEXTS, _SAMPLE_CHARACTERS, _TEXT_CHARACTERS, _MIN_WORDS, _MIN_SHARE = 100, 10_000, 1000, 100, 0.05
"""Frequent words are .12 or more of samples of German and Spanish, and .02 or less of English without stop words."""


def language_code(name: str) -> str:
    """Return the code of a language's name or code, such as German, de or de-DE, in any case; or "whitespace"."""
    if not isinstance(name, str):
        raise ParameterError(f"language is {shown(name)}: give a name or code, such as German or de")
    code = re.split("[-_]", name.strip().lower())[0]
    codes = {language.lower(): code for code, language in NAMES.items()} | {code: code for code in (*NAMES, WHITESPACE)}
    if code not in codes:
        known = ", ".join(f"{language} ({code})" for code, language in NAMES.items())
        raise ParameterError(
            f"language {name!r} has no analysis: split and lower-case words yourself, in documents and topics, "
            f"and give whitespace, which keeps them; or give {known}"
        )
    return codes[code]


def likely_language(texts: Iterable[str]) -> str | None:
    """Return the code of the language that texts are evidently in, by script or frequent words; None if unsure."""
    parts, room = [], _SAMPLE_CHARACTERS
    for text in islice(texts, _SAMPLE_TEXTS):
        parts.append(text[:_TEXT_CHARACTERS])
        room -= len(parts[-1])
        if room <= 0:
            break
    sample = " ".join(parts)
    if not sample.isascii():
        scripts = {language: len(pattern.findall(sample)) for language, pattern in _OF_SCRIPT.items()}
        # Japanese mixes kana with Chinese characters; a tenth of kana tells it from Chinese.
        scripts["ja"] += scripts["zh"] if 10 * scripts["ja"] > scripts["zh"] else 0
        script = max(scripts, key=scripts.__getitem__)
        if 2 * scripts[script] > sum(map(str.isalpha, sample)):
            return script
    occurring = Counter(sample.lower().split())  # punctuation is left at words: this is asked for each call of `rerank`
    total = occurring.total()
    counts = {language: sum(map(occurring.__getitem__, frequent)) for language, frequent in _FREQUENT.items()}
    first, second = sorted(counts, key=counts.__getitem__, reverse=True)[:2]
    # Texts in two languages are taken for English unless the other one clearly prevails.
    least = max(_MIN_SHARE * total, 2 * counts["en"] * (first != "en"))
    if total < _MIN_WORDS or counts[first] < least:
        return None
    return first if counts[first] > counts[second] else None


def warn_of_other_language(texts: Iterable[str], language: str) -> None:
    """Log a warning, once for each language, if texts that are analysed as English evidently are in another one."""
    if language == ENGLISH:
        warn_of(likely_language(texts))


@cache
def warn_of(likely: str | None) -> None:
    """Log a warning if the language that texts are evidently in is not English, as which they are analysed."""
    if likely in NAMES and likely != ENGLISH:
        _log.warning(
            "the texts look %s and are analysed as English: give the language, as in greylag index --language %s, or "
            "in Python language=%r", NAMES[likely], likely, likely,
        )  # fmt: skip
