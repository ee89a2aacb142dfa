"""Starts a classifier or tagger from a pre-trained encoder (`model.start_from`).

The encoder's tokenizer and weights are copied. They are useless with another vocabulary or another
shape, so both recipes must have the same text section and the same encoder settings; an error names
each difference. To start from word vectors, see vector_start.py. Tested: weights are equal after
starting; another vocabulary, another width and another kind of model are refused.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from headwise.errors import CheckpointError
from headwise.models.sentence_encoder import ElmoSettings, SentenceEncoderSettings
from headwise.settings import Settings, read_settings_file
from headwise.storage import verify_directory
from headwise.tasks.accepted_models import check_listed, task_of_bundle
from headwise.tasks.bundle_directory import find_bundle
from headwise.tasks.bundle_form import KIND
from headwise.tasks.pretraining.forms import ENCODERS
from headwise.tasks.pretraining.masked_recipe import MaskedRecipe
from headwise.tasks.pretraining.vector_start import VectorStart, start_from_vectors
from headwise.tasks.recipe import complete_recipe
from headwise.tasks.recipe_files import shipped_recipes
from headwise.tasks.word_vectors.bundle import VECTORS
from headwise.text.choices import TextSettings, load_fitting_tokenizers
from headwise.text.tokenizer import Tokenizer
from headwise.weights import Weights, put_weights, read_tensors, weights_of

FREE = (
    "dropout",
    "word_dropout",
    "pooling",
    "start_from",
    "letters",
    "spelling",
    "letter_dropout",
    "pairs",
)
"""Settings of a model that may differ: they shape no weight of the encoder, or none that is taken
over."""
PREFIX = "encoder."
REQUIRED = MaskedRecipe.bundle_form.required_files
"""Files of a bundle that an encoder is taken from."""


@dataclass(frozen=True)
class Start:
    """What is taken over."""

    file: Path
    tokenizer: Tokenizer
    weights: Weights
    heads: Weights
    """What stood on the encoder."""

    def put_heads_into(self, model: nn.Module) -> None:
        """For going on with the same task: what stood on the encoder, where the model has it
        too."""
        target = weights_of(model)
        shared = {name: tensor for name, tensor in self.heads.items() if name in target}
        put_weights({name: target[name] for name in shared}, shared, file=self.file)

    def put_into(self, encoder: nn.Module) -> None:
        """Every weight the two encoders have in common; letters and pairs are learnt anew where
        they are new.
        """
        target, source = weights_of(encoder), dict(self.weights)
        for name in [
            name
            for name in target.keys() | source.keys()
            if name.startswith(("letters.", "pairs."))
        ]:
            if name not in target or name not in source or target[name].shape != source[name].shape:
                target.pop(name, None)
                source.pop(name, None)
        put_weights(target, source, file=self.file)


def find_start(model: SentenceEncoderSettings, text: TextSettings) -> Start | VectorStart | None:
    """The bundle that `model.start_from` names, checked against the recipe; None if it names
    none."""
    if model.start_from is None:
        return None
    if not model.start_from.exists():
        raise _explain_absent(model)
    path = find_bundle(model.start_from, recipe=ENCODERS.example)
    if (path / VECTORS).is_file() and not isinstance(model, ElmoSettings):
        return start_from_vectors(path, model, text)
    ENCODERS.check(task_of_bundle(path), path)
    check_listed(verify_directory(path, kind=KIND), path, REQUIRED)
    data = read_settings_file(path / "recipe.yaml")
    data = complete_recipe(data)
    _compare("text", data["text"], text, (), path)
    _compare("model", data["model"], model, FREE, path)
    found = read_tensors(path / "weights.safetensors")
    weights = {
        name.removeprefix(PREFIX): tensor
        for name, tensor in found.items()
        if name.startswith(PREFIX)
    }
    heads = {name: tensor for name, tensor in found.items() if not name.startswith(PREFIX)}
    return Start(
        path / "weights.safetensors",
        load_fitting_tokenizers(path / "tokenizer", text).source,
        weights,
        heads,
    )


def _explain_absent(model: SentenceEncoderSettings) -> CheckpointError:
    """Nothing is there yet: what makes it, by its name or by the kind of the encoder that is to
    start from it.
    """
    assert model.start_from is not None
    named = model.start_from.name
    usual = {"elmo": "english-elmo", "encoder": "english-masked"}.get(model.kind, "word-vectors")
    recipe = named if named in shipped_recipes() else usual
    command = f"headwise train {recipe} --run {model.start_from}"
    return CheckpointError(
        f"model.start_from: nothing is there; train what to start from first, e.g. `{command}` "
        "(the head of the recipe has the line for its own), or start from nothing with "
        "model.start_from=null",
        "model.start_from：该处什么也没有；请先训练要由之开始的模型，例如 "
        f"`{command}`（配方开头写有它自己的命令），或用 model.start_from=null 从零开始",
        file=model.start_from,
    )


def _compare(
    section: str, theirs: dict[str, Any], ours: Settings, free: tuple[str, ...], path: Path
) -> None:
    mine = ours.model_dump(mode="json")
    keys = [key for key in mine.keys() | theirs.keys() if key not in free]
    differing = sorted(key for key in keys if mine.get(key) != theirs.get(key))
    if differing:
        listed = ", ".join(
            f"{section}.{key}={theirs.get(key)} there, {mine.get(key)} here" for key in differing
        )
        what = (
            ("another vocabulary", "词表不同")
            if section == "text"
            else ("another encoder", "编码器不同")
        )
        raise CheckpointError(
            f"cannot be started from: {what[0]} ({listed}); give the recipe the same {section} "
            "section, or start from another bundle",
            f"不能由此开始：{what[1]}（{listed}）；请使配方的 {section} 部分相同，或换一个模型",
            file=path,
        )
