"""Prepared pairs of the pocket corpus and their segmentations, for the tests of this folder."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Literal

from headwise.data.pairs.choices import DataSettings
from headwise.data.pairs.preparation import PreparedData, prepare_data
from headwise.data.pairs.segmentation.choices import BpeDropout, UnigramSampling
from headwise.data.pairs.segmentation.prepared import PreparedSegmentation, prepare_segmentation
from headwise.data.pairs.segmentation.segmented_pairs import SegmentedPairs
from headwise.text.choices import SentencePieceSettings

Algorithm = Literal["bpe", "unigram"]
SETTINGS = {"bpe": BpeDropout(probability=0.3), "unigram": UnigramSampling(alpha=0.3)}
ROWS = (64, 64)


@cache
def prepared(algorithm: Algorithm, order: str = "written") -> PreparedData:
    """Of English and Chinese."""
    data = DataSettings.model_validate(
        {
            "source": "en",
            "target": "zh",
            "train": {"kind": "pocket", "split": "train", "count": 400, "tag": "<bt>"},
            "target_order": order,
        }
    )
    text = SentencePieceSettings(algorithm=algorithm, size=1050, coverage=0.9995)
    return prepare_data(data, text, Path(mkdtemp(prefix="headwise-pairs-")))


def segmented(
    algorithm: Algorithm, directory: Path, order: str = "written"
) -> tuple[PreparedSegmentation, SegmentedPairs]:
    found = prepared(algorithm, order)
    cut = prepare_segmentation(
        directory, found.train, found.tokenizers, SETTINGS[algorithm], rows=ROWS
    )
    return cut, cut.of(found.train, source=ROWS[0], target=ROWS[1])
