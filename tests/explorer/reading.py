"""A decoder-only language model that has learned nothing, over a few words."""

from headwise.models.choices import DecoderOnlySettings, build_language_model
from headwise.positions.choices import DEFAULT_POSITION
from headwise.positions.declaration import PositionKind
from headwise.randomness import torch_generator
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.neural_token_model import NeuralTokenModel
from headwise.text.tokenizer import EOS, SPECIAL_PIECES
from headwise.text.vocabulary import Vocabulary
from headwise.text.word_tokenizer import WordTokenizer

WORDS = ("the", "old", "dog", "saw", "a", "child", "<img/src=x/onerror=alert(1)>")
CONTEXT = 13


def make_reader(
    *, layers: int = 3, heads: int = 2, position: PositionKind = DEFAULT_POSITION
) -> LanguageModel:
    """Reads at most 12 words at once, as one trained on a stream does: from </s>."""
    tokenizer = WordTokenizer(Vocabulary([*SPECIAL_PIECES, *WORDS]), lowercase=False)
    settings = DecoderOnlySettings(dim=8, layers=layers, heads=heads, position=position)
    network = build_language_model(
        settings, size=tokenizer.size, generator=torch_generator("reader")
    ).eval()
    reader = NeuralTokenModel(network, first=EOS, context=CONTEXT)
    return LanguageModel(tokenizer, reader, settings=settings)
