"""Builds what a parallel translator has beside the parts of a Transformer."""

from headwise.models.parallel.choices import (
    ClassifierLength,
    CopyInput,
    ManyBeginLength,
    ParallelSettings,
)
from headwise.models.parallel.length_classifier import LengthClassifier
from headwise.models.parallel.translator import ParallelParts


def build_parallel_parts(settings: ParallelSettings) -> ParallelParts:
    """The parts that the settings name, not initialised."""
    classifier = None
    if isinstance(settings.length, ClassifierLength):
        classifier = LengthClassifier(
            dim=settings.dim,
            num_classes=settings.length.classes,
            relative=settings.length.relative,
        )
    return ParallelParts(
        classifier,
        copies_source=isinstance(settings.input, CopyInput),
        num_begins=(
            settings.length.positions if isinstance(settings.length, ManyBeginLength) else None
        ),
    )
