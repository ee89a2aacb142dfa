"""Chooses the drafter, which guesses the next tokens, by what a recipe names under
`decoding: {kind: drafted, drafter: {kind: …}}`.
"""

from typing import Annotated

from pydantic import Field

from headwise.decoding.drafting.heads import HeadsDrafter, HeadsDrafterSettings
from headwise.decoding.drafting.jacobi import JacobiDrafter, JacobiDrafterSettings
from headwise.decoding.drafting.ngram import NgramDrafter, NgramDrafterSettings
from headwise.decoding.drafting.parallel import ParallelDrafter, ParallelDrafterSettings
from headwise.decoding.drafting.protocol import Drafter, Verifier

DrafterSettings = Annotated[
    JacobiDrafterSettings | NgramDrafterSettings | HeadsDrafterSettings | ParallelDrafterSettings,
    Field(discriminator="kind"),
]


def make_drafter(settings: DrafterSettings, verifier: Verifier) -> Drafter:
    """The drafter of these settings, for the rows of this verifier."""
    match settings:
        case JacobiDrafterSettings():
            return JacobiDrafter()
        case NgramDrafterSettings(longest=longest):
            return NgramDrafter(longest)
        case HeadsDrafterSettings():
            return HeadsDrafter(verifier)
        case ParallelDrafterSettings():
            return ParallelDrafter(verifier)
