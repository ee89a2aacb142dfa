"""Learns the word aligner of a prepared corpus once, saves it beside the corpus, and opens it again
afterwards.

    runs/mine/data/   train/   valid/   tokenizers/   alignment/  table.safetensors  alignment.json

A run that is resumed, or that runs in several processes, must see the same links, so they read the
table that the first process learned. It belongs to the training pairs with a certain fingerprint
and to certain settings; with others, or if it is damaged, it is learned again. The same pairs and
settings give the same table.

Tested against: the table in memory, other pairs, a damaged file.
"""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch

from headwise.data.pairs.alignment.aligner import AlignerSettings, fit_aligner
from headwise.data.pairs.alignment.lexical_table import LexicalTable
from headwise.data.shards import TokenStore
from headwise.errors import CheckpointError
from headwise.language import say
from headwise.storage import (
    manifest_digest,
    publish_directory,
    read_json,
    verify_directory,
    write_json,
)
from headwise.weights import read_tensors, write_tensors

logger = logging.getLogger(__name__)

KIND = "alignment"
FOLDER, TABLE, DESCRIPTION = "alignment", "table.safetensors", "alignment.json"


@dataclass(frozen=True)
class LearnedAlignment:
    """The table of an aligner, and what changes if it changes."""

    table: LexicalTable
    fingerprint: str


def prepare_alignment(
    directory: Path,
    pairs: TokenStore,
    *,
    num_targets: int,
    settings: AlignerSettings | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> LearnedAlignment:
    """The aligner of the pairs in `directory`; it is learned if it is not there."""
    settings = settings or AlignerSettings()
    place, inputs = directory / FOLDER, describe_inputs(pairs, num_targets, settings)
    if place.exists():
        try:
            if _read_inputs(place) == inputs:
                return open_alignment(directory)
        except CheckpointError as error:
            logger.warning("%s", say(f"{error}; it is learned again", f"{error}；将重新学习"))
    table = fit_aligner(pairs, num_targets=num_targets, settings=settings, progress=progress)
    with publish_directory(place, kind=KIND, replace=True) as temporary:
        write_tensors(
            temporary / TABLE,
            {
                "keys": torch.from_numpy(table.keys),
                "probabilities": torch.from_numpy(table.probabilities),
                "null": torch.from_numpy(table.null),
            },
        )
        numbers = {"null_probability": table.null_probability, "tension": table.tension}
        write_json(temporary / DESCRIPTION, {"inputs": inputs, **numbers})
    return open_alignment(directory)


def open_alignment(directory: Path) -> LearnedAlignment:
    """What `prepare_alignment` made; every checksum is verified."""
    place = directory / FOLDER
    verify_directory(place, kind=KIND)
    description, tensors = read_json(place / DESCRIPTION), read_tensors(place / TABLE)
    try:
        table = LexicalTable(
            tensors["keys"].numpy(),
            tensors["probabilities"].numpy(),
            tensors["null"].numpy(),
            float(description["null_probability"]),
            float(description["tension"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise _damaged(place) from error
    return LearnedAlignment(table, manifest_digest(place))


def describe_inputs(pairs: TokenStore, num_targets: int, settings: AlignerSettings) -> str:
    """A hash of everything that the table depends on."""
    inputs = [pairs.fingerprint, num_targets, settings.model_dump(mode="json")]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def _read_inputs(place: Path) -> str:
    description = read_json(place / DESCRIPTION)
    if not isinstance(description, dict) or not isinstance(description.get("inputs"), str):
        raise _damaged(place)
    found: str = description["inputs"]
    return found


def _damaged(place: Path) -> CheckpointError:
    return CheckpointError(
        "is damaged (a required entry is missing); remove the directory, and the aligner is "
        "learned again",
        "已损坏（缺少必需的条目）；请删除该目录，将重新学习词对齐",
        file=place / DESCRIPTION,
    )
