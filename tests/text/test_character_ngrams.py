from headwise.text.character_ngrams import NUM_RUNS, run_ids, runs


def test_the_runs_written_out() -> None:
    assert runs("Where") == (
        *("<wh", "whe", "her", "ere", "re>"),
        *("<whe", "wher", "here", "ere>"),
        *("<wher", "where", "here>"),
        *("<where", "where>"),
    )
    assert runs("a") == ()
    assert runs("an") == ("<an", "an>")
    assert len(runs("incomprehensible")) == NUM_RUNS


def test_rows_are_in_range_and_shared_by_words_with_the_same_runs() -> None:
    one, other = run_ids("watchable", 9973), run_ids("unwatchable", 9973)
    assert len(one) == NUM_RUNS
    assert all(1 <= row <= 9973 for row in one)
    assert len(set(one) & set(other)) > 8
    assert run_ids("a", 97) == (0,) * NUM_RUNS
