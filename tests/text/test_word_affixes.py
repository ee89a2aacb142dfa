from headwise.text.word_affixes import NUM_AFFIXES, affix_ids, affixes, shape


def test_the_features_written_out() -> None:
    assert affixes("Walking") == ("-g", "-ng", "-ing", "-king", "w-", "wa-", "wal-", "*Xx")
    assert affixes("I") == ("-i", "", "", "", "i-", "", "", "*X")
    assert [shape(word) for word in ("U.S.", "B-52s", "北京", "3.14")] == [
        "X.X.",
        "X-0x",
        "c",
        "0.0",
    ]


def test_rows_are_in_range_and_the_same_for_the_same_ending() -> None:
    one, other = affix_ids("talking", 97), affix_ids("walking", 97)
    assert len(one) == NUM_AFFIXES
    assert one[:3] == other[:3]
    assert all(1 <= row <= 97 for row in one)
    assert affix_ids("I", 97)[1:4] == (0, 0, 0)
