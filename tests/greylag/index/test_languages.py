"""Languages: their names, what texts look like, and analysis compared with Lucene's analyzers and Snowball stemmers.

Tests `multilingual`.
"""

import gzip
import json
import random
import re
import unicodedata
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from greylag import PositionalIndex, Reranker, build_index, rerank
from greylag.index import languages, multilingual, spliced
from greylag.index.languages import NAMES, language_code, likely_language
from greylag.index.lucene.jvm import calls_java, java_class
from greylag.index.lucene.lucene_index import analyzer_of
from greylag.index.multilingual import analysis_of
from tests.greylag.index.lucene.samples import write_json

SENTENCES = {
    "ar": "ذهب الولد إلى المدرسة في الصباح وعاد إلى البيت",
    "bn": "ছেলেটি সকালে স্কুলে গিয়েছিল এবং বাড়ি ফিরেছিল",
    "da": "Drengen og pigen er på vej til skolen, og det er ikke langt at gå med en af dem.",
    "de": "Der Junge und das Mädchen sind auf dem Weg in die Schule, und die ist nicht weit, mit der Bahn.",
    "en": "The boy and the girl are on the way to school, and it is not far from the house in the village.",
    "es": "El niño y la niña van por el camino que lleva a la escuela con los libros y las plumas del padre.",
    "fi": "Poika ja tyttö ovat matkalla kouluun, ja se ei ole kaukana, mutta oli kylmä, että hän palasi, kun on talvi.",
    "fr": "Le garçon et la fille sont sur le chemin de l'école, qui est dans le village pour les livres.",
    "hi": "लड़का सुबह स्कूल गया और घर लौट आया",
    "hu": "Az anya és az apa egy iskola előtt volt, és nem tudta, hogy ez csak egy álom, mint az előző.",
    "id": "Anak itu pergi ke sekolah dengan teman dari desa ini dan untuk belajar di kelas yang besar, dalam hujan.",
    "it": "Il ragazzo e la ragazza non sono nella scuola che è del paese, per una gita con gli amici.",
    "ja": "少年は朝、学校へ行って家に帰りました。",
    "ko": "소년은 아침에 학교에 갔다가 집에 돌아왔다",
    "nl": "De jongen en het meisje zijn op weg van het huis naar de school, en dat is niet ver te voet.",
    "no": "Gutten og jenta er på vei til skolen, og det er ikke langt av veien, som jeg går med en av dem.",
    "pl": "Chłopiec i dziewczynka nie są w szkole, do której się idzie z domu na wsi, że jest daleko.",
    "pt": "O menino e a menina não são da escola que fica em uma vila, com os livros do pai para os dias com chuva.",
    "ro": "Băiatul și fata nu sunt la școala care este în sat, cu cărțile din casă și pe care le are.",
    "ru": "Мальчик утром пошёл в школу и вернулся домой",
    "sv": "Pojken och flickan är på väg till skolan, och det är inte långt för ett barn att gå, som en av dem.",
    "te": "బాలుడు ఉదయం పాఠశాలకు వెళ్లి ఇంటికి తిరిగి వచ్చాడు",
    "th": "เด็กชายไปโรงเรียนตอนเช้าและกลับบ้าน",
    "tr": "Çocuk ve annesi okul için bir yol bulur, bu yol daha da güzel olan ve çok uzun olan bir yol ile birleşir.",
    "zh": "男孩早上去学校，然后回家。",
}


@pytest.mark.parametrize("name", ["German", "german", "GERMAN", "de", "DE", "de-DE", "de_AT", " de "])
def test_names_as_people_write_them(name):
    assert language_code(name) == "de"
    assert PositionalIndex.from_texts({"d": "Die Häuser"}, language=name).language == "de"


def test_names_are_those_of_anserini_and_romanian():
    known = {str(code) for code in java_class("io.anserini.analysis.AnalyzerMap").analyzerMap.keySet().toArray()}
    assert known | {"en", "ro"} == NAMES.keys()


@pytest.mark.parametrize("language", SENTENCES)
def test_what_a_text_looks_like(language):
    assert likely_language([SENTENCES[language]] * 10) == language


@pytest.mark.parametrize(
    ("collection", "language"), [("nfcorpus", None), ("xquad_de", "de"), ("xquad_es", "es"), ("xquad_en", "en")]
)
def test_what_samples_of_a_collection_look_like(collection, language, data):
    with gzip.open(data(collection) / "docs.jsonl.gz", "rt") as lines:
        texts = [json.loads(line)["contents"] for line in lines]
    rng = random.Random(1)
    assert {likely_language(rng.sample(texts, 20)) for _ in range(100)} <= {language, "en", None}
    assert likely_language(texts) == language


@pytest.mark.parametrize("text", ["", "jaguar speed", "x = f(y)", "der", "des Moines, el Paso, la Jolla", "1234 5678"])
def test_a_short_text_looks_like_nothing(text):
    assert likely_language([text]) is None


def test_texts_in_another_language_are_warned_of_once(caplog, tmp_path):
    languages.warn_of.cache_clear()
    for _ in range(2):
        rerank("Schule", [SENTENCES["de"]] * 8, method="mmr")
    rerank("Schule", [SENTENCES["de"]], method="mmr", language="de")
    PositionalIndex.from_texts({"d": SENTENCES["en"]})
    assert sum("look" in message for message in caplog.messages) == 1  # beside the line that loops are compiled
    assert "look German and are analysed as English: give the language, as in greylag index --lang" in caplog.text
    write_json(tmp_path / "docs.jsonl", {"d": SENTENCES["ru"]})
    build_index(tmp_path / "docs.jsonl", tmp_path / "index")
    assert "look Russian" in caplog.text
    caplog.clear()
    build_index(tmp_path / "docs.jsonl", tmp_path / "russian", language="Russian")
    assert "look" not in caplog.text
    index, coming = PositionalIndex.from_texts({"d": SENTENCES["en"]}), [" ".join([SENTENCES["fr"]] * 8)]
    spliced(index, ["d", "e"], np.array([0, 1]), coming)
    assert "look" not in caplog.text
    spliced(index, ["e"], np.array([1]), coming)
    assert "look French" in caplog.text


def lucene(language):
    """Return Lucene's analysis."""
    analyzer, java = java_class("io.anserini.analysis.AnalyzerUtils"), calls_java(analyzer_of)(language)
    return lambda text: list(analyzer.analyze(java, text).toArray())


CHARACTERS = [
    *"日本語のテキスト가나ｶﾞﾊﾟＡbc 1.,'，。x々ー\u3099\u309bㄱ〇ㇰ豈\u200d_\u0301é", "the", "www", "an", "ｱｲ", "𠀀", "s",
]  # fmt: skip


@pytest.mark.parametrize("language", ["zh", "ko"])
def test_bigrams_are_lucenes(language):
    analyze, expected, rng = analysis_of(language), lucene(language), random.Random(3)
    for sentence in SENTENCES.values():
        assert analyze(sentence) == expected(sentence)
    for _ in range(3000):
        text = "".join(rng.choices(CHARACTERS, k=rng.randint(1, 14)))
        assert analyze(text) == expected(text), ascii(text)
    every = [chr(c) for c in range(1, 0x20000) if unicodedata.ucd_3_2_0.category(chr(c)) not in ("Cn", "Co", "Cs")]
    every.remove("\ufeff")  # which is lost between Java and Python
    for first in range(0, len(every), 500):
        text = " \n ".join(map("x{0}日{0}{0}y".format, every[first : first + 500]))
        assert analyze(text) == expected(text), first


def test_an_index_of_bigrams_is_lucenes(tmp_path):
    texts = {str(n): sentence for n, sentence in enumerate([*SENTENCES.values(), "the cat www 日 本"])}
    build_index(write_json(tmp_path / "docs.jsonl", texts), tmp_path / "index", language="Chinese")
    built = PositionalIndex.from_lucene(tmp_path / "index")
    assert built.fingerprint == PositionalIndex.from_texts(texts, language="zh").fingerprint
    assert built.language == "zh"
    background = Reranker("mmr", background=built)
    assert [found.position for found in background.rank("学校", [SENTENCES["en"], SENTENCES["zh"]])] == [1, 0]


@pytest.mark.parametrize("language", sorted(multilingual._SNOWBALL))
def test_stems_are_those_of_lucenes_snowball(language, data):
    found = re.compile(r"[^\W\d_]+")
    vocabulary = set(found.findall(" ".join(SENTENCES.values()).lower()))
    for name in ("xquad_de", "xquad_es"):
        with gzip.open(data(name) / "docs.jsonl.gz", "rt") as lines:
            vocabulary.update(found.findall("".join(lines).lower()))
    stemmer, analyze = java_class(f"org.tartarus.snowball.ext.{NAMES[language]}Stemmer")(), analysis_of(language)
    different = 0
    script = "CYRILLIC" if language == "ru" else "LATIN"
    for word in sorted(vocabulary)[:: 1 if language in ("de", "es") else 5]:
        if language not in ("ar", "ru") and not unicodedata.name(word[0], "").startswith(script):
            continue
        stemmer.setCurrent(word)
        stemmer.stem()
        terms = analyze(word)
        if language == "ru" and terms != [stemmer.getCurrent()] and word.isascii() is False:
            continue  # NLTK transliterates letters that are not Russian
        different += terms != [stemmer.getCurrent()] and len(terms) == 1
    assert different <= (20 if language == "pt" else 1)  # NLTK's Portuguese drops the dots of ü


def test_elisions_are_cut_off_letters_are_folded_and_numbers_stay():
    assert analysis_of("fr")("L'avion, l’école d'aujourd'hui") == analysis_of("fr")("avion école hui")
    assert analysis_of("it")("dell'arte") == analysis_of("it")("arte")
    assert analysis_of("de")("Die Häuser der Stadt 1.000,5") == ["die", "haus", "der", "stadt", "1.000,5"]
    cedilla = str.maketrans("șțȘȚ", "şţŞŢ")
    for text in (SENTENCES["ro"], "condițiile ȚARĂ orașului acțiunea Școlile"):
        assert analysis_of("ro")(text) == analysis_of("ro")(text.translate(cedilla))
    assert analysis_of("ro")("condițiile") == ["cond"]
    assert analysis_of("tr")("İstanbul'da EVLER") == ["istanbul'da", "evler"]
    assert analysis_of("whitespace")("Die  Häuser,") == ["Die", "Häuser,"]


def test_arabic_stems_do_not_depend_on_threads_or_order():
    texts = [SENTENCES["ar"].replace(" ", f" {n} ") for n in range(60)]
    alone = [*map(analysis_of("ar"), texts)]
    multilingual._stems_of.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        assert [*pool.map(analysis_of("ar"), texts[::-1])] == alone[::-1]


def test_passages_are_reranked_in_their_language():
    passages = ["Der Hund schläft.", "Das Haus ist alt.", "Ein Auto fährt."]
    assert rerank("alte Häuser", passages, language="german")[0].position == 1
    background = PositionalIndex.from_texts({"d": SENTENCES["de"]}, language="de")
    assert Reranker("general", background=background, language="German").rank("Häuser", passages)[0].position == 1
