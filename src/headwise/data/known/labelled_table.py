"""The labelled and tagged corpora that a recipe can name as `known:…`, with the files of each.

Corpora without labels are in `table.py`.
"""

from headwise.data.known.table import GITHUB, KnownCorpusEntry, KnownPartEntry

_SENSES = (
    GITHUB
    + "/danlou/bert-disambiguation/e1b829108b03c374a52e8b9ddf070925e41f2382/data/CoarseWSD-20/*/"
)
_REVIEWS = GITHUB + "/SophonPlus/ChineseNlpCorpus"

LABELLED_CORPORA = (
    KnownCorpusEntry(
        name="sst2",
        description=(
            "Film reviews, whole sentences, positive (1) or negative (0): 6,920, 872 and 1,821"
        ),
        description_zh="影评整句，褒（1）或贬（0）：6,920、872 与 1,821 句",
        licence="none stated",
        source="github clairett/pytorch-sentiment-classification, data/SST2, commit 457ffd8",
        parts={
            "sst2/train": KnownPartEntry("sst2/train.tsv.gz", ("en",), form="classes"),
            "sst2/dev": KnownPartEntry("sst2/dev.tsv.gz", ("en",), form="classes"),
            "sst2/test": KnownPartEntry("sst2/test.tsv.gz", ("en",), form="classes"),
        },
        addresses={
            "sst2/": GITHUB
            + "/clairett/pytorch-sentiment-classification/457ffd83de90a9d6d472d8ffc31bbffe40a8b236/data/SST2/{stem}",
        },
    ),
    KnownCorpusEntry(
        name="trec-qc",
        description="Questions by what they ask for, 6 coarse and 50 fine classes: 5,452 and 500",
        description_zh="按所问内容分类的问句，6 大类、50 小类：5,452 与 500 句",
        licence="none stated (Li and Roth, research data)",
        source=(
            "github nltk/nltk_data, packages/corpora/qc.zip, commit 5db857e; one byte re-encoded "
            "to UTF-8"
        ),
        parts={
            "trec-qc/train": KnownPartEntry("trec-qc/train.txt.gz", ("en",), form="questions"),
            "trec-qc/test": KnownPartEntry("trec-qc/test.txt.gz", ("en",), form="questions"),
        },
        addresses={
            "trec-qc/": GITHUB + "/nltk/nltk_data/gh-pages/packages/corpora/qc.zip#qc/{stem}"
        },
        change="latin-1",
    ),
    KnownCorpusEntry(
        name="chinese-sentiment",
        description=(
            "Chinese reviews of deliveries (11,987) and hotels (7,766), positive (1) or negative "
            "(0), no split"
        ),
        description_zh="外卖（11,987 条）与酒店（7,766 条）评论，褒（1）或贬（0），未划分",
        licence="none stated",
        source="github SophonPlus/ChineseNlpCorpus, datasets, commit a0b781d",
        parts={
            "chinese-sentiment/deliveries": KnownPartEntry(
                "chinese-sentiment/waimai_10k.csv.gz", ("zh",), form="reviews"
            ),
            "chinese-sentiment/hotels": KnownPartEntry(
                "chinese-sentiment/ChnSentiCorp_htl_all.csv.gz", ("zh",), form="reviews"
            ),
        },
        addresses={
            "chinese-sentiment/waimai": _REVIEWS
            + "/032ed697ea6b37f6b99b2203c8fdbe0a9b47fd3e/datasets/waimai_10k/{stem}",
            "chinese-sentiment/ChnSenti": _REVIEWS
            + "/4ef366aa97c927f5bd69e1d97dc88461590174fd/datasets/ChnSentiCorp_htl_all/{stem}",
        },
    ),
    KnownCorpusEntry(
        name="ud-english-ewt",
        description=(
            "Universal Dependencies, English web text with tags: 12,544, 2,001 and 2,077 sentences"
        ),
        description_zh="通用依存树库，英语网络文本及词性：12,544、2,001 与 2,077 句",
        licence="CC BY-SA 4.0",
        source="github UniversalDependencies/UD_English-EWT, commit 15d613d8",
        parts={
            "ud-english-ewt/train": KnownPartEntry(
                "ud-english-ewt/en_ewt-ud-train.conllu.gz", ("en",), form="conllu"
            ),
            "ud-english-ewt/dev": KnownPartEntry(
                "ud-english-ewt/en_ewt-ud-dev.conllu.gz", ("en",), form="conllu"
            ),
            "ud-english-ewt/test": KnownPartEntry(
                "ud-english-ewt/en_ewt-ud-test.conllu.gz", ("en",), form="conllu"
            ),
        },
        # Of the commit no more than these eight digits is known.
        addresses={
            "ud-english-ewt/": GITHUB + "/UniversalDependencies/UD_English-EWT/15d613d8/{stem}"
        },
    ),
    KnownCorpusEntry(
        name="coarsewsd-20",
        description=(
            "CoarseWSD-20: 20 nouns of several senses in sentences of Wikipedia, 23,370 and 10,196"
        ),
        description_zh="CoarseWSD-20：维基百科句子中的 20 个多义名词，23,370 与 10,196 句",
        licence="CC BY-NC 4.0",
        source=(
            "github danlou/bert-disambiguation, data/CoarseWSD-20, commit d8728bc; the words' "
            "folders joined in one table"
        ),
        parts={
            "coarsewsd-20/train": KnownPartEntry(
                "coarsewsd-20/train.tsv.gz", ("en",), form="senses"
            ),
            "coarsewsd-20/test": KnownPartEntry("coarsewsd-20/test.tsv.gz", ("en",), form="senses"),
        },
        addresses={
            "coarsewsd-20/train": _SENSES + "train.data.txt",
            "coarsewsd-20/test": _SENSES + "test.data.txt",
        },
    ),
    KnownCorpusEntry(
        name="word-vectors-eval",
        description=(
            "Pairs of words as people rate them (WordSim-353, SimLex-999, MEN, RG-65) and 19,544 "
            "analogies"
        ),
        description_zh="人评分的词对（WordSim-353、SimLex-999、MEN、RG-65）与 19,544 道类比题",
        licence="MIT; the analogies Apache-2.0",
        source=(
            "github mfaruqui/eval-word-vectors, data/word-sim, commit 94b3dd9; github "
            "RaRe-Technologies/gensim, gensim/test/test_data/questions-words.txt, commit 2d17ddf0"
        ),
        addresses={
            "word-vectors-eval/questions": GITHUB
            + "/RaRe-Technologies/gensim/develop/gensim/test/test_data/questions-words.txt",
            "word-vectors-eval/": GITHUB
            + "/mfaruqui/eval-word-vectors/94b3dd9fdbac7ed08dbee7179cd5ee464acf0594/data/word-sim/{name}",
        },
    ),
)
