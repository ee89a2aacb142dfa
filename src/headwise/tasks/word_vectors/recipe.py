"""The recipe of word vectors: skip-gram or CBOW, negative samples or hierarchical softmax."""

from typing import ClassVar, Literal

from pydantic import Field

from headwise.data.corpus_names import LanguageCode
from headwise.data.text.choices import Texts
from headwise.settings import Settings
from headwise.tasks.any_recipe import AnyRecipe
from headwise.tasks.declared_results import Result
from headwise.tasks.word_vectors.form import FORM


class WordVectorData(Settings):
    """The text."""

    language: LanguageCode = "en"
    """Which side of a parallel corpus is read, if one is named."""
    train: Texts = Field(min_length=1)
    """A text, one sentence or paragraph a line: a file, also .gz or .xz, or a known corpus; or a
    list of them."""


class WordVectorText(Settings):
    """What counts as a word."""

    unit: Literal["words", "characters"] = "words"
    """`words`: cut at whitespace; `characters`: every character but spaces, for Chinese that is not
    segmented."""
    lowercase: bool = True
    """Write everything in lower case."""
    min_count: int = Field(default=5, ge=1)
    """Words seen less often are left out of the text."""
    max_words: int | None = Field(default=None, ge=2)
    """Keep at most this many words, the most frequent."""


class NegativeSampling(Settings):
    """Tell the right word from a few drawn at random."""

    kind: Literal["negative_sampling"] = "negative_sampling"
    negatives: int = Field(default=5, ge=1, le=1000)
    """Negative samples for each pair."""
    power: float = Field(default=0.75, ge=0, le=1)
    """Negative samples are drawn in proportion to count^power."""
    share: int = Field(default=16, ge=1, le=256)
    """Neighbouring centres that share their negative samples."""
    pool: int | None = Field(default=None, ge=1, le=1024)
    """Negative samples drawn for such a block, each of weight negatives/pool; null: 24, or 20 for
    cbow."""


class HierarchicalSoftmax(Settings):
    """Decide turn by turn along a Huffman tree."""

    kind: Literal["hierarchical_softmax"] = "hierarchical_softmax"


class WordVectorModel(Settings):
    """What is learnt."""

    kind: Literal["skip_gram", "cbow"] = "skip_gram"
    """`skip_gram`: each context word predicts the centre; `cbow`: their mean does."""
    dim: int = Field(default=100, ge=1, le=4096)
    """Numbers a word."""
    window: int = Field(default=5, ge=1, le=100)
    """Words on either side at most; drawn from 1 to this for each centre."""
    output: NegativeSampling | HierarchicalSoftmax = Field(
        default=NegativeSampling(), discriminator="kind"
    )
    """How the softmax over all words is avoided."""


class WordVectorTraining(Settings):
    """How it is learnt."""

    epochs: int = Field(default=5, ge=1)
    """Passes over the text."""
    rate: float | None = Field(default=None, gt=0, le=10)
    """Learning rate at the start, falling in a straight line to nothing; none = 0.025, or 0.05 for
    cbow."""
    subsample: float = Field(default=1e-3, ge=0, le=1)
    """Words more frequent than this are thinned out; 0 keeps all."""
    threads: int = Field(default=2, ge=1, le=256)
    """Threads that learn into one table; 1 repeats to the last bit."""
    seed: int = Field(default=1, ge=0)
    """The start and all draws follow from it."""


class WordVectorRecipe(AnyRecipe):
    """What `headwise train` takes for `task: word_vectors`."""

    bundle_form: ClassVar = FORM
    results: ClassVar = {
        "words": Result(("different words", "词的种数")),
        "text_words": Result(("words of text", "文本词数")),
        "epochs": Result(("epochs", "轮数")),
        "words_per_second": Result(("words per second", "每秒词数")),
    }

    task: Literal["word_vectors"]
    """What is made."""
    data: WordVectorData
    """The text it learns from."""
    text: WordVectorText = WordVectorText()
    """What counts as a word."""
    model: WordVectorModel = WordVectorModel()
    """What is learnt."""
    training: WordVectorTraining = WordVectorTraining()
    """How it is learnt."""
