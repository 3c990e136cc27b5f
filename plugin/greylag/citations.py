"""What to cite for a method, as BibTeX: the one table of `greylag explain`, LaTeX tables and the page on citing."""
# ruff: noqa: E501

from __future__ import annotations

import re

# The names by which greylag's files and options call a method, the key, authors, title, where it was published, year.
REFERENCES = (
    (("BM25", "bm25"), "robertson1994", "Stephen E. Robertson and Steve Walker and Susan Jones and Micheline "
     "Hancock-Beaulieu and Mike Gatford", "Okapi at {TREC}-3", "TREC", 1994),
    (("LM", "QL", "ql"), "zhai2004", "ChengXiang Zhai and John Lafferty", "A study of smoothing methods for language "
     "models applied to information retrieval", "@ACM Transactions on Information Systems", 2004),
    (("RM3", "rm3", "expansion"), "abduljaleel2004", "Nasreen Abdul-Jaleel and James Allan and W. Bruce Croft and "
     "Fernando Diaz and Leah Larkey and Xiaoyan Li and Mark D. Smucker and Courtney Wade",
     "{UMass} at {TREC} 2004: Novelty and {HARD}", "TREC", 2004),
    (("Rocchio", "rocchio"), "rocchio1971", "J. J. Rocchio", "Relevance feedback in information retrieval",
     "The {SMART} Retrieval System: Experiments in Automatic Document Processing", 1971),
    (("bm25prf",), "robertson1976", r"Stephen E. Robertson and Karen Sp{\"a}rck Jones", "Relevance weighting of search "
     "terms", "@Journal of the American Society for Information Science", 1976),
    (("SDM", "SD", "FD"), "metzler2005", "Donald Metzler and W. Bruce Croft", "A {Markov} random field model for term "
     "dependencies", "SIGIR", 2005),
    (("GreedySelection", "greedy"), "metzler2007", "Donald Metzler", "Automatic feature selection in the {Markov} random "
     "field model for information retrieval", "CIKM", 2007),
    (("LambdaMART", "lambdamart"), "wu2010", "Qiang Wu and Christopher J. C. Burges and Krysta M. Svore and "
     "Jianfeng Gao", "Adapting boosting for information retrieval measures", "@Information Retrieval", 2010),
    (("translation",), "berger1999", "Adam Berger and John Lafferty", "Information retrieval as statistical translation",
     "SIGIR", 1999),
    (("CoordinateAscent", "coordinate-ascent"), "metzlercroft2007", "Donald Metzler and W. Bruce Croft",
     "Linear feature-based models for information retrieval", "@Information Retrieval", 2007),
    (("mmr",), "carbonell1998", "Jaime Carbonell and Jade Goldstein", "The use of {MMR}, diversity-based reranking for "
     "reordering documents and producing summaries", "SIGIR", 1998),
    (("msd",), "gollapudi2009", "Sreenivas Gollapudi and Aneesh Sharma", "An axiomatic approach for result "
     "diversification", "WWW", 2009),
    (("msd",), "borodin2012", "Allan Borodin and Hyun Chul Lee and Yuli Ye", "Max-sum diversification, monotone "
     "submodular functions and dynamic updates", "PODS", 2012),
    (("dpp",), "chen2018", "Laming Chen and Guoxin Zhang and Eric Zhou", "Fast greedy {MAP} inference for determinantal "
     "point process to improve recommendation diversity", "NeurIPS", 2018),
    (("essential-pages",), "swaminathan2009", "Ashwin Swaminathan and Cherian V. Mathew and Darko Kirovski",
     "Essential pages", "Web Intelligence", 2009),
    (("xquad",), "santos2010", "Rodrygo L. T. Santos and Craig Macdonald and Iadh Ounis", "Exploiting query "
     "reformulations for web search result diversification", "WWW", 2010),
    (("pm2",), "dang2012", "Van Dang and W. Bruce Croft", "Diversity by proportionality: an election-based approach to "
     "search result diversification", "SIGIR", 2012),
    (("svmdiv", "subtopic-loss"), "yue2008", "Yisong Yue and Thorsten Joachims", "Predicting diverse subsets using "
     "structural {SVMs}", "ICML", 2008),
    (("cssvm",), "schiegg2016", "Martin Schiegg and Ferran Diego and Fred A. Hamprecht", "Learning diverse models: the "
     "{Coulomb} structured support vector machine", "ECCV", 2016),
    (("manifold",), "zhou2003", r"Dengyong Zhou and Jason Weston and Arthur Gretton and Olivier Bousquet and Bernhard "
     r"Sch{\"o}lkopf", "Ranking on data manifolds", "NIPS", 2003),
    (("rrf", "reciprocal-rank"), "cormack2009", r"Gordon V. Cormack and Charles L. A. Clarke and Stefan B{\"u}ttcher",
     "Reciprocal rank fusion outperforms {Condorcet} and individual rank learning methods", "SIGIR", 2009),
    (("combsum",), "fox1994", "Edward A. Fox and Joseph A. Shaw", "Combination of multiple searches", "TREC", 1994),
    (("nDCG",), "jarvelin2002", r"Kalervo J{\"a}rvelin and Jaana Kek{\"a}l{\"a}inen", "Cumulated gain-based evaluation "
     "of {IR} techniques", "@ACM Transactions on Information Systems", 2002),
    (("ERR",), "chapelle2009", "Olivier Chapelle and Donald Metzler and Ya Zhang and Pierre Grinspan", "Expected "
     "reciprocal rank for graded relevance", "CIKM", 2009),
    (("bpref",), "buckley2004", "Chris Buckley and Ellen M. Voorhees", "Retrieval evaluation with incomplete "
     "information", "SIGIR", 2004),
    (("infAP",), "yilmaz2006", "Emine Yilmaz and Javed A. Aslam", "Estimating average precision with incomplete and "
     "imperfect judgments", "CIKM", 2006),
    (("alpha-nDCG",), "clarke2008", r"Charles L. A. Clarke and Maheedhar Kolla and Gordon V. Cormack and Olga Vechtomova "
     r"and Azin Ashkan and Stefan B{\"u}ttcher and Ian MacKinnon", "Novelty and diversity in information retrieval "
     "evaluation", "SIGIR", 2008),
    (("ERR-IA", "P-IA"), "agrawal2009", "Rakesh Agrawal and Sreenivas Gollapudi and Alan Halverson and Samuel Ieong",
     "Diversifying search results", "WSDM", 2009),
    (("NRBP",), "clarke2009", "Charles L. A. Clarke and Maheedhar Kolla and Olga Vechtomova", "An effectiveness measure "
     "for ambiguous and underspecified queries", "ICTIR", 2009),
    (("S-recall",), "zhai2003", "ChengXiang Zhai and William W. Cohen and John Lafferty", "Beyond independent relevance: "
     "methods and evaluation metrics for subtopic retrieval", "SIGIR", 2003),
    (("paired t-test", "randomisation test"), "smucker2007", "Mark D. Smucker and James Allan and Ben Carterette",
     "A comparison of statistical significance tests for information retrieval evaluation", "CIKM", 2007),
    (("Wilcoxon signed-rank test",), "wilcoxon1945", "Frank Wilcoxon", "Individual comparisons by ranking methods",
     "@Biometrics Bulletin", 1945),
    (("Holm's",), "holm1979", "Sture Holm", "A simple sequentially rejective multiple test procedure",
     "@Scandinavian Journal of Statistics", 1979),
    (("Benjamini & Hochberg's",), "benjamini1995", "Yoav Benjamini and Yosef Hochberg", "Controlling the false discovery "
     "rate: a practical and powerful approach to multiple testing",
     "@Journal of the Royal Statistical Society: Series B", 1995),
    (("effect size",), "sakai2018", "Tetsuya Sakai", "Laboratory Experiments in Information Retrieval: Sample Sizes, "
     "Effect Sizes, and Statistical Power", "=Springer", 2018),
    (("trec_eval",), "vangysel2018", "Christophe Van Gysel and Maarten de Rijke", "Pytrec\\_eval: an extremely fast "
     "{Python} interface to trec\\_eval", "SIGIR", 2018),
    (("Pyserini",), "lin2021", "Jimmy Lin and Xueguang Ma and Sheng-Chieh Lin and Jheng-Hong Yang and Ronak Pradeep and "
     "Rodrigo Nogueira", "Pyserini: a {Python} toolkit for reproducible information retrieval research with sparse and "
     "dense representations", "SIGIR", 2021),
)  # fmt: skip
_VENUES = {"@": ("article", "journal"), "=": ("book", "publisher")}  # other venues are conferences


def cite(text: str) -> list[str]:
    """A line of BibTeX for each method that a text names."""
    named = [any(re.search(rf"(?<![\w-]){re.escape(name)}(?!\w)", text) for name in row[0]) for row in REFERENCES]
    return [_bibtex(*row[1:]) for row, found in zip(REFERENCES, named, strict=True) if found]


def _bibtex(key: str, authors: str, title: str, venue: str, year: int) -> str:
    kind, where = _VENUES.get(venue[0], ("inproceedings", "booktitle"))
    return (
        f"@{kind}{{{key}, author = {{{authors}}}, title = {{{title}}}, {where} = {{{venue.lstrip('@=')}}}, "
        f"year = {{{year}}}}}"
    )
