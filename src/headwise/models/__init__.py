"""Models from n-grams to the Transformer: `from headwise.models import EncoderDecoder`.

Word vectors are two tables (`WordTables`) and one update of them (`learn_skip_gram`, `learn_cbow`).
To train word vectors on a text, use `headwise.train` with a recipe of task word_vectors. A name is
imported when it is first used, so that counting words does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from headwise.models.choices import (
        DecoderOnlySettings,
        EncoderDecoderSettings,
        build_language_model,
        build_model,
    )
    from headwise.models.decoder_only import DecoderOnly
    from headwise.models.elmo import BidirectionalLanguageModel, ElmoEncoder
    from headwise.models.encoder_decoder import EncoderDecoder
    from headwise.models.labeller import LabelModel, build_labeller
    from headwise.models.masked_language_model import (
        MaskedLanguageModel,
        build_masked_language_model,
    )
    from headwise.models.neural_ngram import NeuralNgram, NeuralNgramSettings
    from headwise.models.ngram import NgramModel, NgramSettings, TokenStream, count_ngrams, estimate
    from headwise.models.parallel.choices import ParallelSettings
    from headwise.models.parallel.translator import ParallelTranslator
    from headwise.models.recurrent.choices import RecurrentTranslatorSettings
    from headwise.models.recurrent.language_model import RecurrentLanguageModel, RecurrentSettings
    from headwise.models.recurrent.translator import RecurrentTranslator
    from headwise.models.sentence_encoder import SentenceEncoder
    from headwise.models.transformer_settings import (
        DecoderSettings,
        StackSettings,
        TransformerSettings,
    )
    from headwise.models.vector_space import VectorSpace
    from headwise.models.word_vectors import WordTables, learn_cbow, learn_skip_gram, start_tables

__all__ = [
    "BidirectionalLanguageModel",
    "DecoderOnly",
    "DecoderOnlySettings",
    "DecoderSettings",
    "ElmoEncoder",
    "EncoderDecoder",
    "EncoderDecoderSettings",
    "LabelModel",
    "MaskedLanguageModel",
    "NeuralNgram",
    "NeuralNgramSettings",
    "NgramModel",
    "NgramSettings",
    "ParallelSettings",
    "ParallelTranslator",
    "RecurrentLanguageModel",
    "RecurrentSettings",
    "RecurrentTranslator",
    "RecurrentTranslatorSettings",
    "SentenceEncoder",
    "StackSettings",
    "TokenStream",
    "TransformerSettings",
    "VectorSpace",
    "WordTables",
    "build_labeller",
    "build_language_model",
    "build_masked_language_model",
    "build_model",
    "count_ngrams",
    "estimate",
    "learn_cbow",
    "learn_skip_gram",
    "start_tables",
]

_HOMES = {
    "choices": (
        "DecoderOnlySettings",
        "EncoderDecoderSettings",
        "build_language_model",
        "build_model",
    ),
    "decoder_only": ("DecoderOnly",),
    "elmo": ("BidirectionalLanguageModel", "ElmoEncoder"),
    "encoder_decoder": ("EncoderDecoder",),
    "labeller": ("LabelModel", "build_labeller"),
    "masked_language_model": ("MaskedLanguageModel", "build_masked_language_model"),
    "neural_ngram": ("NeuralNgram", "NeuralNgramSettings"),
    "ngram": ("NgramModel", "NgramSettings", "TokenStream", "count_ngrams", "estimate"),
    "parallel.choices": ("ParallelSettings",),
    "parallel.translator": ("ParallelTranslator",),
    "recurrent.choices": ("RecurrentTranslatorSettings",),
    "recurrent.language_model": ("RecurrentLanguageModel", "RecurrentSettings"),
    "recurrent.translator": ("RecurrentTranslator",),
    "sentence_encoder": ("SentenceEncoder",),
    "transformer_settings": ("DecoderSettings", "StackSettings", "TransformerSettings"),
    "vector_space": ("VectorSpace",),
    "word_vectors": ("WordTables", "learn_cbow", "learn_skip_gram", "start_tables"),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(f"headwise.models.{module}"), name)
    raise AttributeError(
        f"module 'headwise.models' has no attribute {name!r}; it offers {', '.join(__all__)}"
    )
