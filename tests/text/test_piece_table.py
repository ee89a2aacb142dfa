import sentencepiece

from headwise.text.piece_table import PieceTable
from headwise.text.sentencepiece_tokenizer import Cuts, learn_pieces

from .cut_words import small_tokenizer


def test_pieces_are_those_of_sentencepiece() -> None:
    for algorithm in ("bpe", "unigram"):
        model = small_tokenizer(algorithm).model
        table = PieceTable.of(model)
        theirs = sentencepiece.SentencePieceProcessor(model_proto=model)
        assert len(table.texts) == theirs.get_piece_size()
        for number, text in enumerate(table.texts):
            special = number < 4 or theirs.is_byte(number)
            assert text == ("" if special else theirs.id_to_piece(number))
            assert abs(table.scores[number] - theirs.get_score(number)) < 1e-6
        ends = table.lengths.cumsum()
        letters = {number: letter for letter, number in table.alphabet.items()}
        for end, length, text in zip(ends, table.lengths, table.texts, strict=True):
            found = table.characters[end - length : end].tolist()
            assert "".join(letters[number] for number in found) == text
        for letter, number in table.alphabet.items():
            assert table.texts[table.single[number]] == letter


def test_words_that_are_never_cut_are_no_text() -> None:
    tokenizer = learn_pieces(
        ["<2de> the house", "<2de> a tree"] * 3,
        algorithm="bpe",
        size=285,
        byte_fallback=True,
        coverage=1.0,
        normalization="identity",
        cuts=Cuts(tags=("<2de>",)),
    )
    number = tokenizer.pieces(range(tokenizer.size)).index("▁<2de>")
    assert PieceTable.of(tokenizer.model).texts[number] == ""
