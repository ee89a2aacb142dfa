"""Fills a gap in a sentence with the words that a masked language model (BERT) predicts.

    'a ____ film'   →   P(word | a [mask] film)

The gap is one token: a word, a piece or a character, depending on the tokenizer. The same command
accepts autoregressive language models, which see only the text before the gap; `load_predictor`
chooses by the kind of bundle. Tested: the probabilities of all words sum to one; the text on both
sides of the gap matters; a trained model finds the masked word.
"""

from pathlib import Path

import torch

from headwise.data.text.masking import FIRST_WORD, MASK
from headwise.errors import UsageError
from headwise.models.masked_language_model import MaskedLanguageModel, build_masked_language_model
from headwise.tasks.accepted_models import task_of_bundle
from headwise.tasks.arguments import require_path, require_text
from headwise.tasks.bundle import open_bundle
from headwise.tasks.language.answers import Prediction
from headwise.tasks.language.language_model import GAP, LanguageModel
from headwise.tasks.pretraining.forms import PREDICTORS
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.text.choices import load_fitting_tokenizers
from headwise.text.tokenizer import BOS, Tokenizer


class GapFiller:
    """A masked model and its tokenizer."""

    sums_to_one = True

    def __init__(self, tokenizer: Tokenizer, model: MaskedLanguageModel, *, longest: int) -> None:
        self.tokenizer, self.model, self.longest = tokenizer, model.eval(), longest

    @staticmethod
    def load(path: Path | str) -> "GapFiller":
        opened = open_bundle(require_path(path, "path", "runs/english-masked"), MaskedRecipe)
        recipe = opened.recipe
        tokenizer = load_fitting_tokenizers(opened.directory / "tokenizer", recipe.text).source
        has_pairs = recipe.second_task == "next_sentence"
        model = opened.load_weights(
            lambda: build_masked_language_model(
                recipe.model, vocabulary_size=tokenizer.size, has_pairs=has_pairs, generator=None
            )
        )
        return GapFiller(
            tokenizer, model, longest=recipe.data.row_tokens // (2 if has_pairs else 1)
        )

    @torch.inference_mode()
    def predict(self, text: str, *, count: int = 5, length: int = 1) -> list[Prediction]:
        """The `count` likeliest words for the gap (____) of a text."""
        tokens, place = self._read(text, length)
        row = torch.tensor([tokens])
        position = torch.arange(len(tokens))[None]
        guesses = self.model(
            row, segment=torch.ones_like(row), position=position, places=torch.tensor([place])
        )
        logits = (guesses.hidden @ self.model.word_vectors.T + self.model.head.bias)[0].double()
        logits[:FIRST_WORD] = -torch.inf  # marks are no words
        scores, ids = logits.log_softmax(-1).topk(min(count, len(logits) - FIRST_WORD))
        return [
            Prediction(
                self.tokenizer.decode([number]), tuple(self.tokenizer.pieces([number])), score
            )
            for score, number in zip(scores.tolist(), ids.tolist(), strict=True)
        ]

    def _read(self, text: str, length: int) -> tuple[list[int], int]:
        gaps = list(GAP.finditer(require_text(text, "text")))
        if len(gaps) != 1 or length != 1:
            raise UsageError(
                f"a masked model fills in one word in one gap; the text has {len(gaps)} gaps and "
                f"{length} tokens are wanted: give one ____ and --length 1, or take a language "
                "model",
                f"掩码模型在一个空里填一个词；文中有 {len(gaps)} 个空，要求 {length} 个词元："
                "请只给一个 ____ 并取 --length 1，或改用语言模型",
            )
        before, after = (
            self.tokenizer.encode(part) for part in (text[: gaps[0].start()], text[gaps[0].end() :])
        )
        tokens = [BOS, *before, MASK, *after]
        if len(tokens) > self.longest:
            raise UsageError(
                f"the text has {len(tokens)} tokens, this model has read {self.longest} at most; "
                "give less around the gap",
                f"文本有 {len(tokens)} 个词元，该模型至多读过 {self.longest} 个；"
                "请缩短空两边的文字",
            )
        return tokens, 1 + len(before)


def load_predictor(path: Path | str) -> LanguageModel | GapFiller:
    """What answers `headwise predict`: a language model, or a masked one."""
    found = require_path(path, "path", "runs/ptb/model")
    if found.is_dir() and task_of_bundle(PREDICTORS.find(found)) == "masked_language":
        return GapFiller.load(found)
    return LanguageModel.load(found)
