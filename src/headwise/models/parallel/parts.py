"""Builds the parts that a parallel translator (all words at once) has beside those of a
Transformer: a predictor of lengths or fertilities, links, transitions between tokens, heads that
edit.
"""

from headwise.models.parallel.choices import (
    ClassifierLength,
    CopyInput,
    CrfStructure,
    EditedLength,
    FertilityLength,
    GraphStructure,
    ManyBeginLength,
    ParallelSettings,
    UpsampledLength,
    output_form,
)
from headwise.models.parallel.edit_heads import EditHeads
from headwise.models.parallel.fertility import FertilityClassifier
from headwise.models.parallel.length_classifier import LengthClassifier
from headwise.models.parallel.links import Links
from headwise.models.parallel.transitions import DynamicTransitions, LowRankTransitions
from headwise.models.parallel.translator import Chain, ParallelParts


def build_parallel_parts(settings: ParallelSettings, *, target_size: int) -> ParallelParts:
    """The parts that the settings name, not initialised."""
    length, structure = settings.length, settings.structure
    classifier, fertility, links, chain = None, None, None, None
    if isinstance(length, ClassifierLength):
        classifier = LengthClassifier(
            dim=settings.dim, num_classes=length.classes, relative=length.relative
        )
    if isinstance(length, FertilityLength):
        fertility = FertilityClassifier(settings.dim, most=length.most)
    if isinstance(structure, GraphStructure):
        links = Links(settings.dim, num_heads=structure.link_heads)
    if isinstance(structure, CrfStructure):
        chain = build_chain(structure, dim=settings.dim, target_size=target_size)
    return ParallelParts(
        classifier,
        copies_source=isinstance(settings.input, CopyInput),
        num_begins=length.positions if isinstance(length, ManyBeginLength) else None,
        factor=length.factor if isinstance(length, UpsampledLength) else None,
        links=links,
        fertility=fertility,
        chain=chain,
        edits=(
            EditHeads(settings.dim, max_insertions=length.insertions)
            if isinstance(length, EditedLength)
            else None
        ),
        output_form=output_form(settings),
    )


def build_chain(structure: CrfStructure, *, dim: int, target_size: int) -> Chain:
    """The scores of neighbouring tokens."""
    transitions: LowRankTransitions | DynamicTransitions
    if structure.transitions == "dynamic":
        transitions = DynamicTransitions(target_size, dim=dim, rank=structure.rank)
    else:
        transitions = LowRankTransitions(target_size, rank=structure.rank)
    return Chain(transitions, min(structure.candidates, target_size))
