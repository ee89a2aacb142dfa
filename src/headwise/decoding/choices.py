"""The kinds of generation a recipe may name under `decoding: {kind: …}`.

    decoding: {kind: greedy}
    decoding: {kind: drafted, drafter: {kind: jacobi}, block: 4}
    decoding: {kind: beam, size: 5, length_penalty: {kind: wu, alpha: 0.6}, max_length: {extra: 10}}
    decoding: {kind: sampling, temperature: 0.8, top_p: 0.9, seed: 1}
    decoding: {kind: greedy, memory: {store: stores/law}}          with stored neighbours
    decoding: {kind: one_pass, lengths: 5}                         all parallel models
    decoding: {kind: noisy_parallel, judge: runs/teacher/model}    lengths or fertilities
    decoding: {kind: mask_predict, passes: 10}                     models that predict the length
    decoding: {kind: edits, rounds: 10}                            models that edit
    decoding: {kind: ctc_beam, size: 5}                            models with CTC
    decoding: {kind: graph_beam, language_model: runs/pieces}      with a language model
    decoding: {kind: lookahead}                                    graphs; joint_viterbi, graph_beam

A new kind is one file with its settings and its `Generator`, one name in the union and one case in
the match. The settings declare what the model must give (`output_forms`), and what else may be
asked of the kind: a search tree, several results, options of a request to the server. The generator
declares the rules that it follows. Phrases in the settings are text; `rules/phrases.py` prepares
them for a tokenizer.
Tested: every kind through `decode`, empty sources, phrases for all sentences and for each; and a
new kind that writes all words at once through everything that generates.
"""

from collections.abc import Callable
from typing import Annotated, Any, get_args

from pydantic import Field

from headwise.decoding.drafting.generator import DraftedSearch, DraftedSettings
from headwise.decoding.generation_settings import GenerationSettings, explain_wrong_settings
from headwise.decoding.generator import Generator
from headwise.decoding.parallel.ctc_search import CtcBeamSettings, CtcSearch
from headwise.decoding.parallel.edit_search import EditSearch
from headwise.decoding.parallel.edits import EditSettings
from headwise.decoding.parallel.graph_search import (
    GraphBeamSettings,
    GraphSearch,
    JointViterbiSettings,
    LookaheadSettings,
)
from headwise.decoding.parallel.language_fusion import PrefixModel
from headwise.decoding.parallel.mask_predict import MaskPredictSettings
from headwise.decoding.parallel.noisy import Judge
from headwise.decoding.parallel.noisy_pass import NoisyParallelSettings, NoisyPass
from headwise.decoding.parallel.one_pass import OnePass, OnePassSettings
from headwise.decoding.parallel.sequence_pass import SequencePass
from headwise.decoding.search.beam import BeamSettings
from headwise.decoding.search.greedy import GreedySettings
from headwise.decoding.search.sampling import SamplingSettings
from headwise.decoding.stepper_search import Steppers, StepperSearch, decode
from headwise.errors import SettingsError
from headwise.neighbours.settings import MemorySettings

__all__ = [
    "BeamSettings",
    "DecodingSettings",
    "DraftedSettings",
    "EditSettings",
    "GreedySettings",
    "NoisyParallelSettings",
    "MaskPredictSettings",
    "OnePassSettings",
    "SamplingSettings",
    "check_output_form",
    "decode",
    "default_decoding",
    "decoding_kinds",
    "kinds_with_several_results",
    "make_generator",
]

DecodingSettings = Annotated[
    GreedySettings
    | BeamSettings
    | SamplingSettings
    | DraftedSettings
    | OnePassSettings
    | NoisyParallelSettings
    | MaskPredictSettings
    | EditSettings
    | CtcBeamSettings
    | LookaheadSettings
    | JointViterbiSettings
    | GraphBeamSettings,
    Field(discriminator="kind"),
]


OUTPUT_FORMS = {
    "steps": ("one token after the other", "逐个词元"),
    "positions": ("the tokens of all positions at once", "所有位置的词元"),
    "cut_positions": (
        "the tokens of a fixed number of positions, cut at the first end",
        "固定数目位置的词元，在首个句末处截断",
    ),
    "chain": ("scores of tokens and of neighbouring tokens", "词元及相邻词元的得分"),
    "copies": ("the tokens at copies of source tokens", "源语言词元副本处的词元"),
    "revisions": ("deletions and insertions", "删除与插入"),
    "alignment": ("tokens and blanks at all positions at once", "所有位置的词元与空白"),
    "graph": ("a graph of vertices", "由顶点组成的图"),
}
"""What models give, in words."""


def decoding_kinds() -> tuple[type[GenerationSettings], ...]:
    """The settings of every kind, in the order of the union."""
    union, _ = get_args(DecodingSettings)
    kinds: tuple[type[GenerationSettings], ...] = get_args(union)
    return kinds


def default_decoding(output_form: str) -> GenerationSettings:
    """How a model generates if its recipe does not say."""
    kinds: dict[str, type[GenerationSettings]] = {"steps": BeamSettings, "revisions": EditSettings}
    return kinds.get(output_form, OnePassSettings)()


def check_output_form(settings: GenerationSettings, output_form: str) -> None:
    """Refuse settings that a model cannot follow, and name those that it can."""
    if not settings.output_forms or output_form in settings.output_forms:
        return
    fitting = [
        str(kind.model_fields["kind"].default)
        for kind in decoding_kinds()
        if output_form in kind.output_forms
    ]
    kind = getattr(settings, "kind", type(settings).__name__)
    en, zh = OUTPUT_FORMS.get(output_form, (output_form, output_form))
    raise SettingsError(
        f"decoding.kind={kind} was given, but the model gives {en}; use decoding.kind="
        f"{' or '.join(fitting)}",
        f"给出了 decoding.kind={kind}，但该模型给出的是{zh}；请用 decoding.kind="
        f"{' 或 '.join(fitting)}",
    )


def kinds_with_several_results(settings: GenerationSettings) -> list[str]:
    """The kinds that find several results for a sentence, for models that these settings suit."""
    return [
        str(kind.model_fields["kind"].default)
        for kind in decoding_kinds()
        if set(kind.output_forms) & set(settings.output_forms)
        and kind().with_num_results(2, may_widen=True) is not None
    ]


def make_generator(
    settings: GenerationSettings,
    model: Any,
    *,
    find_judge: Callable[[str], Judge] | None = None,
    find_language_model: Callable[[str], PrefixModel] | None = None,
    find_memory: Callable[[MemorySettings], Steppers] | None = None,
) -> Generator:
    """The generator of these settings; `model` is what a model offers (`models/steppers.py`).

    `find_judge` gives the model at a path that chooses among candidates, `find_language_model` the
    one that takes part in a search, `find_memory` the same model with a memory; a translator has
    all three.
    """
    language = None
    if isinstance(settings, GenerationSettings):
        check_output_form(settings, getattr(model, "output_form", "steps"))
        if settings.language_model_path is not None:
            assert find_language_model is not None, "such a search is made by a translator"
            language = find_language_model(settings.language_model_path)
    match settings:
        case GreedySettings() | BeamSettings() | SamplingSettings():
            if settings.memory is not None:
                assert find_memory is not None, "such a search is made by a translator"
                return StepperSearch(find_memory(settings.memory))
            return StepperSearch(model)
        case DraftedSettings():
            return DraftedSearch(model)
        case OnePassSettings() | CtcBeamSettings() if model.output_form == "alignment":
            return CtcSearch(model, language)
        case (
            OnePassSettings() | LookaheadSettings() | JointViterbiSettings() | GraphBeamSettings()
        ) if model.output_form == "graph":
            return GraphSearch(model, language)
        case OnePassSettings() if model.output_form in ("chain", "copies"):
            return SequencePass(model)
        case OnePassSettings() | MaskPredictSettings():
            return OnePass(model)
        case NoisyParallelSettings():
            settings.check_complete()
            assert find_judge is not None, "a search with a judge is made by a translator"
            assert settings.judge is not None
            return NoisyPass(model, find_judge(settings.judge))
        case EditSettings():
            return EditSearch(model)
        case _:
            raise explain_wrong_settings(settings)
