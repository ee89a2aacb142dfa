"""The translator: a trained bundle as a function from texts to translations.

    translator = Translator.load("runs/demo/model")
    translator(["The dog is old."])[0].text
    translator(["The dog is old."], alignment=True, attention=True)[0].alignment

Sentences are cut into tokens, sorted by length inside a window, decoded in batches and returned in
order, so a file of any length needs the memory of one window. Empty lines stay empty.
Alignment and attention come from one teacher-forced pass over the finished translation: the search
itself never stores a map.
"""

import logging
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import tee
from pathlib import Path
from typing import Any, Literal, Self

import torch

from headwise.decoding.batches import generate_stream
from headwise.decoding.choices import DecodingSettings, make_generator
from headwise.decoding.ensemble import EnsembleSteppers, Mean
from headwise.decoding.generation_settings import GenerationSettings, explain_wrong_settings
from headwise.decoding.generator import Generator
from headwise.decoding.results import Hypothesis, SearchResult
from headwise.decoding.rules.phrases import encode_phrases
from headwise.errors import UsageError
from headwise.models.inference import InferenceForm, Precision, choose_form, exchange
from headwise.models.parallel.inference import ParallelInference
from headwise.models.recurrent.choices import attends
from headwise.models.steppers import ModelSteppers, offer_of
from headwise.settings import Settings, apply_overrides, check_settings
from headwise.tasks.translation.asked_models import AskedModels
from headwise.tasks.translation.attention_trace import AttentionTrace, align_pieces
from headwise.tasks.translation.bundle import TranslatorBundle, load_translator_bundle
from headwise.tasks.translation.drafting_speed import DraftingSpeed
from headwise.tasks.translation.ensemble import join_models
from headwise.tasks.translation.input_warning import InputCheck, InputWarning
from headwise.tasks.translation.length_limits import longest_source, within_positions
from headwise.tasks.translation.memory import ForcedReading, WordVotes
from headwise.tasks.translation.source_sentences import Candidate, SourceSentence, explain_length
from headwise.text.phrase_matching import on_one_line
from headwise.text.tokenizer import BOS, EOS
from headwise.training.precision import Device, choose_device


@dataclass(frozen=True)
class Translation:
    """What a translator gives for one sentence."""

    source: str
    n_best: tuple[Candidate, ...]
    alignment: tuple[tuple[int, int], ...] | None = None
    """Links (source piece, target piece), if asked for."""
    attention: AttentionTrace | None = None
    """The maps, if asked for."""
    source_pieces: tuple[str, ...] = ()
    target_pieces: tuple[str, ...] = ()
    """The pieces that links refer to, with the end marks; empty without links and maps."""
    warning: InputWarning | None = None
    """Why the sentence is unlike the text that the model learned to read."""
    parts: tuple["Translation", ...] = ()
    """The translations of its sentences, if it was translated line by line."""
    too_long: Literal["split", "empty"] | None = None
    """What was done with a line that is too long; None for every other."""
    speed: DraftingSpeed | None = None
    """Tokens and steps of the model, if it writes several tokens in a step."""
    votes: tuple[WordVotes, ...] | None = None
    """Which stored examples spoke at each token, if a memory took part and it was asked for."""

    @property
    def text(self) -> str:
        return self.n_best[0].text

    @property
    def score(self) -> float:
        return self.n_best[0].score

    def __str__(self) -> str:
        return self.text

    def as_dict(self) -> dict[str, Any]:
        result: dict[str, Any] = {"source": self.source, "text": self.text, "score": self.score}
        result["n_best"] = [
            {"text": one.text, "score": one.score, "log_probability": one.log_probability}
            for one in self.n_best
        ]
        if self.alignment is not None:
            result["alignment"] = [list(link) for link in self.alignment]
            result["source_pieces"] = list(self.source_pieces)
            result["target_pieces"] = list(self.target_pieces)
        if self.warning is not None:
            result["warning"] = self.warning.code
        if self.too_long is not None:
            result["too_long"] = self.too_long
        if self.speed is not None:
            result["tokens_per_step"] = round(self.speed.tokens_per_step, 3)
        if self.votes is not None:
            result["memory"] = [one.as_dict() for one in self.votes]
        return result


class _Decoding(Settings):
    """Wraps the union of search settings so that it can be checked by itself."""

    decoding: DecodingSettings


def _check_of(bundle: TranslatorBundle) -> InputCheck:
    data = bundle.recipe.data
    read = ", ".join(bundle.sources) or data.source
    return InputCheck(bundle.tokenizers, source=read, target=data.target)


class Translator:
    """A loaded bundle that translates."""

    form: InferenceForm
    """How linear layers compute: the choice for `precision` on this machine."""

    def __init__(
        self,
        bundle: TranslatorBundle,
        *,
        device: Device = "auto",
        precision: Precision = "auto",
        others: Sequence["Translator"] = (),
        mean: Mean = "probabilities",
    ) -> None:
        """`precision`: auto and fp32 give the trained model's results up to rounding.

        bf16, fp16 and int8 are faster and less exact. `others`, on the same device, translate
        together with this model: an ensemble, whose settings, alignments and pictures are this
        model's.
        """
        place = choose_device(device)
        self.form = choose_form(precision, place)
        if self.form.remark is not None:
            logging.getLogger(__name__).warning(self.form.remark)
        self.model = exchange(bundle.model.to(place).eval(), self.form)
        # Nobody here needs the weights twice: if the bundle was loaded for us, the trained form
        # goes.
        self.bundle = replace(bundle, model=self.model)
        self.recipe = bundle.recipe
        self.tokenizers = bundle.tokenizers
        self.members = (self, *others)
        self.longest_source = min(
            (longest_source(one.recipe.model) for one in self.members),
            key=lambda limit: limit.tokens,
        )
        self.check_input = _check_of(bundle)
        self.offer: ModelSteppers | ParallelInference | EnsembleSteppers = offer_of(self.model)
        if others:
            self.offer = join_models([one.bundle for one in self.members], mean)
        self.asked_models = AskedModels(self)

    @classmethod
    def load(
        cls, directory: Path | str, *, device: Device = "auto", precision: Precision = "auto"
    ) -> Self:
        """A translator from a bundle (or the run directory that holds one)."""
        bundle = load_translator_bundle(directory, several_directions=True)
        return cls(bundle, device=device, precision=precision)

    @classmethod
    def ensemble(
        cls,
        directories: Sequence[Path | str],
        *,
        mean: Mean = "probabilities",
        device: Device = "auto",
        precision: Precision = "auto",
    ) -> Self:
        """Several translators as one, which searches in the mean of their probabilities."""
        if isinstance(directories, str | Path) or not directories:
            raise UsageError(
                "an ensemble is made of several models, and no list of them was given; write "
                'Translator.ensemble(["runs/a", "runs/b"])',
                "集成由多个模型组成，而给出的不是模型列表；请写 "
                'Translator.ensemble(["runs/a", "runs/b"])',
            )
        return cls.join(list(map(load_translator_bundle, directories)), mean, device, precision)

    @classmethod
    def join(
        cls,
        bundles: Sequence[TranslatorBundle],
        mean: Mean = "probabilities",
        device: Device = "auto",
        precision: Precision = "auto",
    ) -> Self:
        """The translator of one bundle or, of several, their ensemble."""
        first, *others = bundles
        rest = [cls(one, device=device, precision=precision) for one in others]
        return cls(first, device=device, precision=precision, others=rest, mean=mean)

    def into(self, target: str | None, source: str | None = None) -> Self:
        """The same model as a translator of one of its directions (text/tagged_tokenizer.py)."""
        bundle = self.bundle.toward(target, source)
        if bundle is self.bundle:
            return self
        one = copy(self)
        one.bundle, one.recipe, one.tokenizers = bundle, bundle.recipe, bundle.tokenizers
        one.members = (one, *self.members[1:])
        one.check_input = _check_of(bundle)
        one.asked_models = AskedModels(one)
        return one

    @property
    def source_language(self) -> str:
        return self.recipe.data.source

    @property
    def target_language(self) -> str:
        return self.recipe.data.target

    def settings(self, overrides: Sequence[str] = ()) -> DecodingSettings:
        """The recipe's decoding settings with changes such as `size=8` or `kind=greedy`."""
        changed = apply_overrides(self.recipe.decoding.model_dump(mode="json"), overrides)
        return check_settings(_Decoding, {"decoding": changed}).decoding

    def __call__(
        self,
        texts: Sequence[str],
        decoding: DecodingSettings | None = None,
        *,
        alignment: bool = False,
        attention: bool = False,
        to: str | None = None,
    ) -> list[Translation]:
        """Translate sentences; the result has one entry for each, in order. `to`: the language to
        write, of a model with several."""
        if (
            isinstance(texts, str)
            or not isinstance(texts, Sequence)
            or not all(isinstance(text, str) for text in texts)
        ):
            raise UsageError(
                f"{type(texts).__name__} was given where a list of texts is needed; write "
                "translator([text])",
                f"需要文本列表，给出的却是 {type(texts).__name__}；请写 translator([text])",
            )
        one = self if to is None else self.into(to)
        return list(one.stream(texts, decoding, alignment=alignment, attention=attention))

    def stream(
        self,
        texts: Iterable[str],
        decoding: DecodingSettings | None = None,
        *,
        alignment: bool = False,
        attention: bool = False,
    ) -> Iterator[Translation]:
        """Translate any number of sentences with the memory of one window."""
        sentences = (self._prepare(text, number) for number, text in enumerate(texts, start=1))
        return self.stream_sentences(sentences, decoding, alignment=alignment, attention=attention)

    def stream_sentences(
        self,
        sentences: Iterable[SourceSentence],
        decoding: DecodingSettings | None = None,
        *,
        alignment: bool = False,
        attention: bool = False,
        votes: bool = False,
    ) -> Iterator[Translation]:
        """The same for sentences that are encoded already and known to fit."""
        settings = self.within_positions(self.recipe.decoding if decoding is None else decoding)
        phrases = encode_phrases(settings, self.tokenizers.target)
        without_prefix = replace(phrases, prefix=())
        given, ruled, answered = tee(sentences, 3)
        results = generate_stream(
            self.generator(settings),
            (sentence.tokens for sentence in given),
            settings,
            rules=(without_prefix if sentence.is_continued else phrases for sentence in ruled),
        )
        for sentence, result in zip(answered, results, strict=True):
            found = self._translation(sentence, result, alignment=alignment, attention=attention)
            if votes and settings.asked_memory is not None:
                memory = self.asked_models.memory(settings.asked_memory)
                found = replace(found, votes=memory.votes(sentence.tokens, result.best))
            yield found

    @property
    def attends(self) -> bool:
        """Whether it has attention, from which alignments and pictures are made."""
        return attends(self.recipe.model)

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without their end; of white space none."""
        self.bundle.toward(None)  # of several directions, one must have been chosen
        return self.tokenizers.source.encode(text) if text.strip() else []

    def _prepare(self, text: str, number: int) -> SourceSentence:
        """Encode a sentence, and refuse one that is too long before the model sees it."""
        tokens = self.encode(text)
        if len(tokens) >= self.longest_source.tokens:
            raise explain_length(len(tokens) + 1, self.longest_source, sentence=number)
        return SourceSentence(text, tokens)

    def generator(self, settings: DecodingSettings) -> Generator:
        """How these settings generate with this model."""
        return make_generator(
            settings,
            self.offer,
            find_judge=self.asked_models.judge,
            find_language_model=self.asked_models.language_model,
            find_memory=lambda asked: self.asked_models.memory(asked).steppers(),
        )

    @cached_property
    def forced_reading(self) -> ForcedReading:
        """The model as it reads finished pairs, for a memory."""
        return ForcedReading(self.model)

    def within_positions(self, settings: DecodingSettings) -> DecodingSettings:
        """The same settings, with outputs no longer than the model can write."""
        if not isinstance(settings, GenerationSettings):
            raise explain_wrong_settings(settings)
        for one in self.members:
            settings = within_positions(settings, one.recipe.model)
        return settings

    def fits(self, text: str) -> bool:
        """Whether a sentence is short enough to be translated."""
        return len(self.tokenizers.source.encode(text)) < self.longest_source.tokens

    def _translation(
        self,
        sentence: SourceSentence,
        result: SearchResult,
        *,
        alignment: bool,
        attention: bool,
    ) -> Translation:
        text, ids = sentence.text, sentence.tokens
        n_best = tuple(self.write_down(found) for found in result.hypotheses)
        trace = self.trace(ids, result.best.tokens) if (alignment or attention) and ids else None
        links: tuple[tuple[int, int], ...] | None = None
        if alignment:
            links = () if trace is None else align_pieces(trace)
        pieces = ((), ()) if trace is None else (trace.source_pieces, trace.target_pieces)
        return Translation(
            text,
            n_best,
            links,
            trace if attention else None,
            *pieces,
            warning=self.check_input(text, ids),
            speed=DraftingSpeed.of(result),
        )

    def write_down(self, found: Hypothesis) -> Candidate:
        """A hypothesis as text."""
        return Candidate(
            on_one_line(self.tokenizers.target.decode(found.tokens)),
            found.score,
            found.log_probability,
            is_whole=found.finished,
        )

    def decoder_pieces(self, target: Sequence[int]) -> tuple[str, ...]:
        """What stands at the positions of the decoder: the tokens before those that are written, or
        in a decoder that computes all positions at once, these tokens themselves."""
        pieces = self.tokenizers.target.pieces(target)
        return ("<s>", *pieces) if getattr(self.model, "is_causal", True) else (*pieces, "</s>")

    @torch.inference_mode()
    def trace(self, source: Sequence[int], target: Sequence[int]) -> AttentionTrace:
        """Every attention map of one sentence pair, in one pass over the finished target."""
        device = self.model.output.weight.device
        source_ids, target_ids = [*source, EOS], [BOS, *target]
        maps = self.model.attention_maps(
            torch.tensor([source_ids], device=device), torch.tensor([target_ids], device=device)
        )
        if not maps:
            raise UsageError(
                "alignments and pictures are read from attention, and this model has none "
                "(model.attention.kind=none); leave them out, or train with "
                "model.attention.kind=luong",
                "对齐与图画来自注意力，而该模型没有注意力（model.attention.kind=none）；"
                "请不要索取，或以 model.attention.kind=luong 训练",
            )
        return AttentionTrace(
            source_pieces=(*self.tokenizers.source.pieces(source), "</s>"),
            target_input_pieces=self.decoder_pieces(target),
            target_pieces=(*self.tokenizers.target.pieces(target), "</s>"),
            maps={name: weights[0].float().cpu().numpy() for name, weights in maps.items()},
        )
