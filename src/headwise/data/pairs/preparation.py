"""Prepares parallel text for training: reads, filters, learns tokenizers, plans rows, writes token
ids.

Data are streamed in blocks, so that memory does not grow with the corpus (apart from 8 bytes a pair
for finding duplicates), and each store is published completely or not at all. Data prepared from
the same settings and files are reused. The corpora are read twice: for a sample, and for encoding,
which uses all cores.

    corpora -> sample -> tokenizers, row lengths
    corpora -> blocks -> BlockEncoder (filters, held-out sentences, token ids)
                      -> Gate (duplicates) -> store

Tested against: the same steps written as plain list comprehensions over small corpora.
"""

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

from headwise.data.batching import plan_rows
from headwise.data.pairs.alignment.learned import LearnedAlignment
from headwise.data.pairs.choices import DataSettings, corpus_name, files_of, read_pairs
from headwise.data.pairs.encoding import BlockEncoder, Gate
from headwise.data.pairs.encoding_workers import encode_blocks
from headwise.data.pairs.filtering import (
    KEEP_ALL,
    FilterReport,
    FilterSettings,
    LengthLimits,
    check_text,
)
from headwise.data.pairs.held_out import HeldOut
from headwise.data.pairs.parallel_files import Pair
from headwise.data.pairs.sampling import Progress, Survey, cut_blocks, survey_corpora
from headwise.data.pairs.segmentation.prepared import PreparedSegmentation
from headwise.data.shards import StoreWriter, TokenStore
from headwise.data.splits import Part
from headwise.errors import CheckpointError, DataError
from headwise.language import say
from headwise.storage import (
    manifest_digest,
    publish_directory,
    read_sealed_json,
    verify_directory,
    write_sealed_json,
)
from headwise.text.chinese_words import read_words
from headwise.text.choices import SentencePieceSettings, TextSettings, learn_tokenizers
from headwise.text.known_words import FILE as KNOWN_WORDS
from headwise.text.known_words import KnownWords
from headwise.text.reversed_tokenizer import in_order
from headwise.text.sentencepiece_training import Watch
from headwise.text.tokenizer import Tokenizer
from headwise.text.tokenizer_pair import TokenizerPair, load_tokenizers

logger = logging.getLogger(__name__)

TOKENIZERS_KIND = "tokenizers"
DESCRIPTION = "prepared.json"
PREPARE_AGAIN = ("prepare the data again", "请重新准备数据")
SEED = 1
"""Of the samples that are drawn from large corpora. It is not the seed of training, so that runs
with different seeds learn from the same data."""


@dataclass(frozen=True)
class PreparedRecord:
    """`prepared.json`, written last: a hash of the inputs (`describe_inputs`) and the row
    lengths.
    """

    inputs: str
    source_row: int
    target_row: int
    valid: bool
    """Whether there is a validation part."""

    @property
    def parts(self) -> tuple[str, ...]:
        """The directories next to it."""
        return ("tokenizers", "train", "valid") if self.valid else ("tokenizers", "train")


@dataclass(frozen=True)
class PreparedData:
    """Tokenizers, stores and row lengths for training; `valid` is None without validation
    corpora.
    """

    tokenizers: TokenizerPair
    train: TokenStore
    valid: TokenStore | None
    source_row: int
    target_row: int
    vocabulary: str
    """The SHA-256 of the manifest of both tokenizers."""
    alignment: LearnedAlignment | None = None
    """The word aligner of the training pairs, for models that learn from its links."""
    segmentation: PreparedSegmentation | None = None
    """What the training pairs can be cut into, for runs that cut them anew in each epoch."""

    @property
    def fingerprint(self) -> str:
        """Changes when anything changes that a resumed run depends on.

        It consists of named parts, so that a message can say which one changed.
        """
        valid = "none" if self.valid is None else self.valid.fingerprint[:16]
        rows = f"{self.source_row}x{self.target_row}"
        train, vocabulary = self.train.fingerprint[:16], self.vocabulary[:16]
        words = "" if self.alignment is None else f" alignment:{self.alignment.fingerprint[:16]}"
        cut = self.segmentation
        cuts = "" if cut is None else f" segmentation:{cut.fingerprint[:16]}"
        return f"train:{train} valid:{valid} vocabulary:{vocabulary} rows:{rows}{words}{cuts}"


@dataclass(frozen=True)
class GivenTokenizers:
    """Tokenizers that are not learnt from the data: those of the model a training begins with."""

    pair: TokenizerPair
    fingerprint: str
    """Changes with their files."""


def prepare_data(
    data: DataSettings,
    text: TextSettings,
    directory: Path,
    *,
    seed: int = SEED,
    earlier_seed: int | None = None,
    given: GivenTokenizers | None = None,
    progress: Progress | None = None,
    vocabulary_progress: Watch | None = None,
) -> PreparedData:
    """Make tokenizers and stores in `directory`, or open what was made from the same inputs.

    `given`: tokenizers to be used instead of learning them. `earlier_seed`: older runs sampled with
    the seed of training; data made so are reused too.
    """
    wanted = describe_inputs(data, text, seed, given=given)
    usable = {wanted}
    if earlier_seed is not None:
        usable.add(describe_inputs(data, text, earlier_seed, given=given))
    if (directory / DESCRIPTION).exists():
        try:
            if read_description(directory).inputs in usable:
                return open_prepared(directory)
        except CheckpointError as error:
            logger.warning(
                "%s",
                say(f"{error}; it is made again from the corpora", f"{error}；将由语料重新生成"),
            )
    require_pairs(data)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / DESCRIPTION).unlink(missing_ok=True)
    survey = survey_corpora(data, text, seed=seed, progress=progress)
    if given is None:
        pair = learn_from_corpora(data, text, survey, seed=seed, watch=vocabulary_progress)
    else:
        pair = given.pair
    target = in_order(pair.target, data.target_order)
    words = KnownWords.of(survey.planned)
    if data.directions:
        words = words.without_read_words()
    tokenizers = replace(pair, target=target, known_words=words)
    with publish_directory(
        directory / "tokenizers", kind=TOKENIZERS_KIND, replace=True
    ) as temporary:
        tokenizers.save(temporary)
    source_row, target_row = plan_from_sample(data, tokenizers, survey.planned)
    del survey  # up to some hundred megabytes that are not needed again
    longest = data.filter.max_tokens or max(source_row, target_row)
    limits = LengthLimits(min(longest, source_row - 1), min(longest, target_row - 1))
    write_part(data, "train", directory, limits=limits, progress=progress)
    if data.valid:
        write_part(data, "valid", directory, limits=limits, progress=progress)
    description = PreparedRecord(wanted, source_row, target_row, valid=bool(data.valid))
    write_sealed_json(directory / DESCRIPTION, asdict(description))
    return open_prepared(directory)


def open_prepared(directory: Path) -> PreparedData:
    """Open what `prepare_data` made; every checksum is verified."""
    description = read_description(directory)
    verify_directory(directory / "tokenizers", kind=TOKENIZERS_KIND)
    valid = TokenStore(directory / "valid") if description.valid else None
    # Word counts only warn of foreign input; runs that were prepared without them can continue.
    vocabulary = manifest_digest(directory / "tokenizers", without=[KNOWN_WORDS])
    tokenizers = load_tokenizers(directory / "tokenizers")
    rows = description.source_row, description.target_row
    return PreparedData(tokenizers, TokenStore(directory / "train"), valid, *rows, vocabulary)


def read_description(directory: Path) -> PreparedRecord:
    """Read `prepared.json` and verify its checksum."""
    path = directory / DESCRIPTION
    found = read_sealed_json(path, PreparedRecord.__annotations__, remedy=PREPARE_AGAIN)
    try:
        return PreparedRecord(
            str(found["inputs"]),
            int(found["source_row"]),
            int(found["target_row"]),
            bool(found["valid"]),
        )
    except (TypeError, ValueError) as error:
        raise CheckpointError(
            f"is damaged (an entry is not a number); {PREPARE_AGAIN[0]}",
            f"已损坏（有的条目不是数字）；{PREPARE_AGAIN[1]}",
            file=path,
        ) from error


def describe_inputs(
    data: DataSettings,
    text: TextSettings,
    seed: int = SEED,
    *,
    given: GivenTokenizers | None = None,
) -> str:
    """A hash of everything the result depends on: settings, and size and time of the files."""
    files = []
    # The test set affects training pairs only if leaked pairs are dropped.
    parts: tuple[Part, ...] = (
        ("train", "valid", "test") if data.filter.drop_leaked else ("train", "valid")
    )
    for part in parts:
        for corpus in data.corpora(part):
            for path in files_of(data, corpus, part):
                status = path.stat()
                files.append([str(path), status.st_size, status.st_mtime_ns])
    if isinstance(text, SentencePieceSettings) and text.words is not None:
        files.append(
            [
                text.words,
                hashlib.sha256(
                    "\n".join(sorted(read_words(Path(text.words)))).encode()
                ).hexdigest(),
            ]
        )
    if given is not None:
        files.append(["tokenizers", given.fingerprint])
    settings = [
        _describe_settings(data, {"test"} - set(parts)),
        text.model_dump(mode="json", exclude_none=True),
    ]
    return hashlib.sha256(json.dumps([settings, files, seed], sort_keys=True).encode()).hexdigest()


def read_part(
    data: DataSettings, part: Part, settings: FilterSettings | None = None
) -> Iterator[Pair]:
    """The usable pairs of a part as text, for learning tokenizers and for translating a test
    set.
    """
    for corpus in data.corpora(part):
        for pair in read_pairs(data, corpus):
            reason, cleaned = check_text(pair, settings or KEEP_ALL)
            if reason is None:
                yield cleaned


def _describe_settings(data: DataSettings, unread: set[str]) -> dict[str, Any]:
    """The settings as JSON. Those that came later are left out where they change nothing, so that
    older runs keep their data."""
    described = data.model_dump(mode="json", exclude=unread)
    if data.target_order == "written":
        del described["target_order"]
    for name in ("directions", "zero_shot"):
        if not described[name]:
            del described[name]
    for corpus in chain.from_iterable(
        described.get(part, ()) for part in ("train", "valid", "test")
    ):
        for name in ("tag", "directions"):
            if corpus[name] is None:
                del corpus[name]
    return described


def learn_from_corpora(
    data: DataSettings,
    text: TextSettings,
    survey: Survey,
    *,
    seed: int = 0,
    watch: Watch | None = None,
) -> TokenizerPair:
    """Learn tokenizers from the sample; word and character vocabularies read the corpora once a
    side.
    """
    if isinstance(text, SentencePieceSettings):
        return learn_tokenizers(
            text,
            (source for source, _ in survey.learnt),
            (target for _, target in survey.learnt),
            seed=seed,
            watch=watch,
            tags=data.tags,
        )
    return learn_tokenizers(
        text,
        (pair.source for pair in read_part(data, "train", data.filter)),
        (pair.target for pair in read_part(data, "train", data.filter)),
        seed=seed,
    )


def plan_from_sample(
    data: DataSettings, tokenizers: TokenizerPair, sample: Sequence[tuple[str, str]]
) -> tuple[int, int]:
    """Row lengths from a sample of pairs that fit a row, before any store exists."""
    sources = _lengths(tokenizers.source, [source for source, _ in sample])
    targets = _lengths(tokenizers.target, [target for _, target in sample])
    limit = min(data.row_tokens, data.filter.max_tokens or data.row_tokens)
    fitting = [
        (s, t) for s, t in zip(sources, targets, strict=True) if t <= limit and s <= 2 * limit
    ]
    if not fitting:
        return data.row_tokens, data.row_tokens
    return plan_rows(sum(s for s, _ in fitting), sum(t for _, t in fitting), data.row_tokens)


def _lengths(tokenizer: Tokenizer, texts: list[str]) -> list[int]:
    """Tokens of each text, with the end of sentence."""
    return [len(ids) + 1 for ids in tokenizer.encode_batch(texts)]


def write_part(
    data: DataSettings,
    part: Part,
    directory: Path,
    *,
    limits: LengthLimits,
    progress: Progress | None = None,
) -> None:
    """Filter and tokenise one part into a store; the report is kept in the details of the store."""
    settings = data.filter if part == "train" else KEEP_ALL
    tokenizers = load_tokenizers(directory / "tokenizers")
    held_out = HeldOut.of(
        chain(read_part(data, "valid"), read_part(data, "test")) if settings.drop_leaked else ()
    )
    encoder, gate = (
        BlockEncoder(tokenizers, settings, limits, held_out),
        Gate(settings.drop_duplicates),
    )
    sizes: dict[Any, int] = {"source": tokenizers.source.size, "target": tokenizers.target.size}
    with StoreWriter(directory / part, vocabulary_sizes=sizes, replace=True) as writer:
        for corpus in data.corpora(part):
            writer.start_corpus(corpus_name(corpus), weight=corpus.weight)
            blocks = cut_blocks(read_pairs(data, corpus))
            for block, encoded in encode_blocks(
                encoder, blocks, tokenizers=directory / "tokenizers"
            ):
                writer.add(*gate.admit(block, encoded))
                if progress is not None:
                    progress(part, gate.report.read)
        if writer.num_pairs == 0:
            raise _nothing_left(part, gate.report)
        writer.details["report"] = gate.report.to_json()


def _nothing_left(part: Part, report: FilterReport) -> DataError:
    return DataError(
        f"no pair of data.{part} is left after filtering; change data.filter, data.row_tokens or "
        "the corpora\n" + report.describe(),
        f"过滤后 data.{part} 没有剩下任何句对；请修改 data.filter、data.row_tokens 或语料\n"
        + report.describe(),
    )


def require_pairs(data: DataSettings) -> None:
    """Raise if the text filters leave no pair, with the report of all filters."""
    if next(read_part(data, "train", data.filter), None) is not None:
        return
    report = FilterReport()
    for corpus in data.train:
        for pair in read_pairs(data, corpus):
            reason, _ = check_text(pair, data.filter)
            assert reason is not None
            report.read += 1
            report.drop(reason, pair)
    raise _nothing_left("train", report)
