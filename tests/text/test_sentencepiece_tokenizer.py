import functools
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headwise.errors import CheckpointError, DataError, SettingsError, UsageError
from headwise.text.sentencepiece_tokenizer import PieceTokenizer, learn_pieces, load_pieces
from headwise.text.tokenizer import NUM_SPECIAL, SPECIAL_PIECES

from .corpus import chinese, english

CLEAN = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=60)
TRICKY = (
    "",
    " ",
    "  two  spaces ",
    "▁ \uf8fe \uf8fe0 \uf8fe1▁",
    "<unk></s><pad><0x41>",
    "full-width Ａ１　ideographic space",
    "e\u0301 ﬁ ½ \u00a0 \u200b \u2028",
    "𝔘𝔫𝔦 😀👩‍👩‍👧 龘䶮",
    "a\tb",
)


@functools.cache
def learn(
    algorithm: str = "bpe", normalization: str = "identity", size: int = 370
) -> PieceTokenizer:
    return learn_pieces(
        english() + chinese(),
        algorithm=algorithm,
        size=size,
        byte_fallback=True,
        coverage=1.0,
        normalization=normalization,
    )


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
class TestEveryTextComesBack:
    @given(text=CLEAN)
    @settings(max_examples=150, deadline=None)
    def test_generated(self, algorithm: str, text: str) -> None:
        tokenizer = learn(algorithm)
        assert tokenizer.decode(tokenizer.encode(text)) == text

    @pytest.mark.parametrize("text", TRICKY)
    def test_tricky(self, algorithm: str, text: str) -> None:
        tokenizer = learn(algorithm)
        assert tokenizer.reversible
        assert tokenizer.decode(tokenizer.encode(text)) == text


@pytest.mark.parametrize("algorithm", ["bpe", "unigram"])
@given(
    texts=st.lists(
        st.lists(
            st.sampled_from(["a", "th", "e", " ", "猫", "▁", "\t", "\u00a0", "😀"]), max_size=20
        ).map("".join)
    )
)
@settings(max_examples=150, deadline=None)
def test_words_one_by_one_give_the_ids_of_the_sentence(algorithm: str, texts: list[str]) -> None:
    tokenizer = learn(algorithm)
    lines = [*texts, *english()[:3], *chinese()[:3]]
    assert tokenizer._words_are_apart
    assert tokenizer.encode_batch(lines) == [tokenizer.encode(text) for text in lines]


def test_words_are_not_taken_apart_where_the_text_is_rewritten() -> None:
    assert not learn(normalization="nfkc")._words_are_apart


def test_the_same_lines_give_the_same_model() -> None:
    arguments = {"size": 320, "byte_fallback": True, "coverage": 1.0, "normalization": "identity"}
    for algorithm in ("bpe", "unigram"):
        models = [learn_pieces(english(), algorithm=algorithm, **arguments).model for _ in range(2)]
        assert models[0] == models[1]


def test_training_is_quiet(capfd: pytest.CaptureFixture[str]) -> None:
    learn_pieces(
        english(),
        algorithm="bpe",
        size=320,
        byte_fallback=True,
        coverage=1.0,
        normalization="identity",
    )
    assert capfd.readouterr() == ("", "")


def test_special_ids_and_batches() -> None:
    tokenizer = learn()
    assert tuple(tokenizer.pieces(range(NUM_SPECIAL))) == SPECIAL_PIECES
    assert tokenizer.encode_batch(list(TRICKY)) == [tokenizer.encode(text) for text in TRICKY]
    ids = tokenizer.encode("the cat")
    assert tokenizer.decode([1, *ids, 2, 0, 0]) == "the cat"
    assert min(ids) >= NUM_SPECIAL
    assert "".join(tokenizer.pieces(ids)) == "▁the▁cat"


def test_nfkc_is_not_called_reversible() -> None:
    tokenizer = learn(normalization="nfkc")
    assert not tokenizer.reversible
    assert tokenizer.decode(tokenizer.encode("Ａ１")) == "A1"


def test_a_vocabulary_too_large_names_the_largest() -> None:
    with pytest.raises(SettingsError, match=r"at most \d+; set text.size=\d+ or less") as caught:
        learn(size=90_000)
    largest = int(caught.value.en.split("text.size=")[1].split()[0])
    assert learn(size=largest).size == largest


def test_a_vocabulary_too_small_says_what_is_needed() -> None:
    with pytest.raises(SettingsError, match="already need 3"):
        learn(size=270)


def test_no_text() -> None:
    with pytest.raises(DataError, match="is empty; give a corpus"):
        learn_pieces(
            [],
            algorithm="bpe",
            size=300,
            byte_fallback=True,
            coverage=1.0,
            normalization="identity",
        )


def test_lone_surrogates_and_foreign_ids_are_refused() -> None:
    with pytest.raises(DataError, match="lone surrogate at character 2"):
        learn().encode("ab\ud800")
    with pytest.raises(DataError, match="lone surrogate"):
        learn().encode_batch(["ab\ud800"])
    for wrong in (-1, 370):
        with pytest.raises(UsageError, match=f"id {wrong} is not in the vocabulary of 370"):
            learn().decode([5, wrong])


def test_a_file_that_is_no_model(tmp_path) -> None:
    with pytest.raises(CheckpointError, match="not a sentencepiece model"):
        load_pieces(tmp_path, reversible=True)
    (tmp_path / "pieces.model").write_bytes(learn().model[:100])
    with pytest.raises(CheckpointError, match="not a sentencepiece model"):
        load_pieces(tmp_path, reversible=True)


@pytest.mark.parametrize("pattern", ["a", "[(", "e\u0301", "👩\u200d"])
def test_time_grows_with_length_alone(pattern: str) -> None:
    tokenizer = learn()

    def seconds(length: int) -> float:
        text = pattern * (length // len(pattern))
        best = float("inf")
        for _ in range(3):
            begin = time.thread_time()
            tokenizer.encode(text)
            best = min(best, time.thread_time() - begin)
        return best

    assert seconds(40_000) < 8 * seconds(10_000) + 0.02
