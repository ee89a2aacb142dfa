"""Builds what a parallel translator has beside the parts of a Transformer."""

from headwise.models.parallel.choices import (
    ClassifierLength,
    CopyInput,
    GraphStructure,
    ManyBeginLength,
    ParallelSettings,
    UpsampledLength,
)
from headwise.models.parallel.length_classifier import LengthClassifier
from headwise.models.parallel.links import Links
from headwise.models.parallel.translator import ParallelParts


def build_parallel_parts(settings: ParallelSettings) -> ParallelParts:
    """The parts that the settings name, not initialised."""
    length, structure = settings.length, settings.structure
    classifier, links = None, None
    if isinstance(length, ClassifierLength):
        classifier = LengthClassifier(
            dim=settings.dim, num_classes=length.classes, relative=length.relative
        )
    if isinstance(structure, GraphStructure):
        links = Links(settings.dim, num_heads=structure.link_heads)
    return ParallelParts(
        classifier,
        copies_source=isinstance(settings.input, CopyInput),
        num_begins=length.positions if isinstance(length, ManyBeginLength) else None,
        factor=length.factor if isinstance(length, UpsampledLength) else None,
        links=links,
        output_form=structure.output_form,
    )
