"""Saves and opens the source and target tokenizers of a translator, with probe sentences and their
ids.

A damaged tokenizer often loads and silently gives wrong ids. A pair is therefore stored with probe
sentences and their ids; loading encodes them again and compares. Half of the probes are ordinary
sentences; the other half is made from the vocabulary, so that many entries are used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError
from headwise.storage import read_json, write_json
from headwise.text.character_tokenizer import load_characters
from headwise.text.imported_pieces import load_imported_pieces
from headwise.text.known_words import KnownWords, load_known_words
from headwise.text.reversed_tokenizer import ReversedTokenizer, as_written, in_order
from headwise.text.sentencepiece_tokenizer import DESCRIPTION_FILE, load_pieces
from headwise.text.tokenizer import NUM_SPECIAL, Tokenizer
from headwise.text.vocabulary import FILE as VOCABULARY_FILE
from headwise.text.vocabulary import read_vocabulary
from headwise.text.word_tokenizer import load_words

PAIR_FILE = "tokenizers.json"
PROBES_FILE = "probes.json"
MAX_PROBES_BYTES = 8 << 20
PROBE_SENTENCES = (
    "A man in a blue shirt is standing on a ladder cleaning a window.",
    "Zwei junge weiße Männer sind im Freien in der Nähe vieler Büsche.",
    "请在 2024 年 3 月之前把报告（共 17 页）交给王老师。",
    "L'été dernier, nous n'avions que 3,5 % d'élèves – c'était trop peu !",
    "  two  spaces,\ta tab, ▁ a mark, 𝔘𝔫𝔦𝔠𝔬𝔡𝔢 😀 and e\u0301",
)
_NUM_VOCABULARY_PROBES = 32
_VOCABULARY_PROBE_LENGTH = 48


@dataclass(frozen=True)
class TokenizerPair:
    """Tokenizers of source and target; `shared` means that both are the same, apart from the order
    of the target's tokens (reversed_tokenizer.py)."""

    source: Tokenizer
    target: Tokenizer
    shared: bool
    known_words: KnownWords | None = None
    """Word counts of the training text; older models have none."""

    def save(self, directory: Path) -> None:
        """Write both tokenizers and their probes into an existing directory."""
        sides: dict[str, Tokenizer] = {"shared": self.source}
        if not self.shared:
            sides = {"source": self.source, "target": as_written(self.target)}
        probes = []
        for side, tokenizer in sides.items():
            (directory / side).mkdir()
            tokenizer.save(directory / side)
            texts = [*PROBE_SENTENCES, *vocabulary_probes(tokenizer)]
            probes += [
                {"side": side, "text": text, "ids": tokenizer.encode(text)} for text in texts
            ]
        description: dict[str, Any] = {
            "shared": self.shared,
            "sizes": {name: one.size for name, one in sides.items()},
        }
        if isinstance(self.target, ReversedTokenizer):
            description["target_order"] = "reversed"
        write_json(directory / PAIR_FILE, description)
        write_json(directory / PROBES_FILE, probes)
        if self.known_words is not None:
            self.known_words.save(directory)


def vocabulary_probes(tokenizer: Tokenizer) -> list[str]:
    """Texts made of evenly spread slices of the vocabulary, so that damage is likely to show."""
    step = max(_VOCABULARY_PROBE_LENGTH, (tokenizer.size - NUM_SPECIAL) // _NUM_VOCABULARY_PROBES)
    starts = range(NUM_SPECIAL, tokenizer.size, step)
    return [
        tokenizer.decode(range(a, min(a + _VOCABULARY_PROBE_LENGTH, tokenizer.size)))
        for a in starts
    ]


def load_tokenizers(directory: Path) -> TokenizerPair:
    """A saved pair; a CheckpointError if a probe has other ids now."""
    description = read_json(directory / PAIR_FILE)
    shared = description.get("shared") if isinstance(description, dict) else None
    order = description.get("target_order", "written") if isinstance(description, dict) else None
    if not isinstance(shared, bool) or order not in ("written", "reversed"):
        raise _damaged(directory / PAIR_FILE)
    sides = {
        side: load_tokenizer(directory / side)
        for side in (["shared"] if shared else ["source", "target"])
    }
    probes = read_json(directory / PROBES_FILE, max_bytes=MAX_PROBES_BYTES)
    if not isinstance(probes, list) or not probes:
        raise _damaged(directory / PROBES_FILE)
    for probe in probes:
        _check_probe(probe, sides, directory)
    source, target = (
        (sides["shared"], sides["shared"]) if shared else (sides["source"], sides["target"])
    )
    target = in_order(target, order)
    return TokenizerPair(source, target, shared=shared, known_words=load_known_words(directory))


def load_tokenizer(directory: Path) -> Tokenizer:
    """One tokenizer of any kind; the kind follows from its file."""
    if (directory / DESCRIPTION_FILE).exists():
        description = read_json(directory / DESCRIPTION_FILE)
        if not isinstance(description, dict) or not isinstance(description.get("reversible"), bool):
            raise _damaged(directory / DESCRIPTION_FILE)
        return load_pieces(directory, reversible=description["reversible"])
    data = read_vocabulary(directory)
    match data.get("kind") if isinstance(data, dict) else None:
        case "words":
            return load_words(directory)
        case "characters":
            return load_characters(directory)
        case "imported_pieces":
            return load_imported_pieces(directory)
        case _:
            raise _damaged(directory / VOCABULARY_FILE)


def _check_probe(probe: Any, sides: dict[str, Tokenizer], directory: Path) -> None:
    if (
        not isinstance(probe, dict)
        or probe.get("side") not in sides
        or not isinstance(probe.get("text"), str)
    ):
        raise _damaged(directory / PROBES_FILE)
    ids: Sequence[int] = sides[probe["side"]].encode(probe["text"])
    if ids != probe.get("ids"):
        raise CheckpointError(
            f"the {probe['side']} tokenizer gives other ids than when it was saved for the probe "
            f"{probe['text'][:60]!r}; the tokenizer is damaged or of another version: use another "
            "copy of the model",
            f"{probe['side']} 分词器对探测句 {probe['text'][:60]!r} 给出的编号与保存时不同；"
            "分词器已损坏或版本不同：请使用模型的其他副本",
            file=directory / PROBES_FILE,
        )


def _damaged(path: Path) -> CheckpointError:
    return CheckpointError(
        "is damaged (a required entry is missing); use another copy of the model",
        "已损坏（缺少必需的条目）；请使用模型的其他副本",
        file=path,
    )
