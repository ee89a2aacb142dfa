"""Checks which translators can translate together, and joins them (decoding/ensemble.py).

The members must write from left to right, translate between the same languages and have the same
vocabularies, because their probabilities are averaged token by token. Their architectures may
differ: a Transformer and a recurrent network can be members of one ensemble.

Tested with models of both kinds, and with a model of another vocabulary, direction or kind.
"""

from collections.abc import Sequence

from headwise.decoding.ensemble import EnsembleSteppers, Mean
from headwise.errors import UsageError
from headwise.models.parallel.choices import is_parallel
from headwise.models.steppers import ModelSteppers
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.judge import have_same_pieces


def join_models(bundles: Sequence[TranslatorBundle], mean: Mean) -> EnsembleSteppers:
    """The models of these bundles, on one device, as one model."""
    first = bundles[0]
    for bundle in bundles:
        _check_kind(bundle)
        _check_languages(bundle, first)
        _check_order(bundle, first)
        _check_vocabularies(bundle, first)
    return EnsembleSteppers([ModelSteppers(bundle.model) for bundle in bundles], mean=mean)


def _check_kind(bundle: TranslatorBundle) -> None:
    if is_parallel(bundle.recipe.model):
        raise UsageError(
            f"{bundle.directory} is a parallel model, and an ensemble averages the next token; "
            "give translators that write from left to right (model.kind=encoder_decoder or "
            "recurrent)",
            f"{bundle.directory} 是并行模型，而集成对下一个词元的概率取平均；请给出从左到右翻译的"
            "模型（model.kind=encoder_decoder 或 recurrent）",
        )


def _check_languages(bundle: TranslatorBundle, first: TranslatorBundle) -> None:
    given, needed = (
        f"{one.recipe.data.source} → {one.recipe.data.target}" for one in (bundle, first)
    )
    if given != needed:
        raise UsageError(
            f"{bundle.directory} translates {given}, and {first.directory} {needed}; an ensemble "
            "needs translators of the same direction",
            f"{bundle.directory} 的方向是 {given}，而 {first.directory} 是 {needed}；"
            "集成需要方向相同的翻译模型",
        )


def _check_order(bundle: TranslatorBundle, first: TranslatorBundle) -> None:
    own, other = bundle.recipe.data.target_order, first.recipe.data.target_order
    if own != other:
        raise UsageError(
            f"{bundle.directory} was trained with data.target_order={own}, and {first.directory} "
            f"with {other}; models that write in opposite directions predict other tokens at each "
            "step: let one choose among the candidates of the other (headwise rerank --translator)",
            f"{bundle.directory} 以 data.target_order={own} 训练，而 {first.directory} 以 {other} "
            "训练；书写方向相反的模型每一步预测的词元不同：请让其中一个在另一个的候选译文中挑选"
            "（headwise rerank --translator）",
        )


def _check_vocabularies(bundle: TranslatorBundle, first: TranslatorBundle) -> None:
    own, other = bundle.tokenizers, first.tokenizers
    if not (
        have_same_pieces(own.source, other.source) and have_same_pieces(own.target, other.target)
    ):
        raise UsageError(
            f"{bundle.directory} has another vocabulary than {first.directory}, and an ensemble "
            "averages token by token; train its members on the same data with the same text "
            "section, or start one from the other (model.start_from)",
            f"{bundle.directory} 与 {first.directory} 的词表不同，而集成逐个词元取平均；请用相同的"
            "数据和 text 设置训练各成员，或由一个模型开始训练另一个（model.start_from）",
        )
