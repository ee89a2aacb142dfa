"""`headwise rerank` from lists to texts, and what is refused."""

import json
from pathlib import Path

from tests.cli.conftest import Headwise


def test_lists_are_written_ranked_and_tuned(headwise: Headwise, tiny_run: Path) -> None:
    Path("in.en").write_text("The cat sleeps.\n\nThe dog is old.\n", encoding="utf-8")
    made = headwise("translate", "--model", tiny_run, "--n-best", 3, "--json", "in.en")
    Path("lists").write_text(made.out, encoding="utf-8")
    first = [json.loads(line)["text"] for line in made.out.splitlines()]
    Path("right.de").write_text("".join(f"{text}\n" for text in first), encoding="utf-8")
    asked = ("rerank", "lists", "--translator", tiny_run)
    plain = headwise(*asked, "--weight", "translator=0")
    assert (plain.status, plain.out.splitlines()) == (0, first), plain.err
    listed = headwise(*asked, "--weight", "translator=2", "--json")
    row = json.loads(listed.out.splitlines()[0])
    for one in row["n_best"]:
        assert abs(one["score"] - one["search"] - 2 * one["translator"]) < 1e-6
    tuned = headwise(*asked, "--reference", "right.de")
    assert (tuned.status, tuned.out.splitlines()) == (0, first)
    assert "with --weight translator=0 (7 combinations, 3 sentences)" in tuned.err


def test_mistakes_are_answered_at_once(headwise: Headwise, tiny_run: Path) -> None:
    Path("lists").write_text("no list\n", encoding="utf-8")
    for words, sentence in (
        ((), "no model was given; give --translator, --channel or --language-model"),
        (("--channel", tiny_run), "--channel has no weight; give --weight channel=0.5, or"),
        (
            ("--channel", tiny_run, "--weight", "translator=1"),
            "--weight translator was given without --translator",
        ),
        (("--channel", tiny_run, "--weight", "channel=x"), "'channel=x' is no weight; give"),
        (
            ("--channel", tiny_run, "--weight", "channel=1", "--length-penalty", "11"),
            "--length-penalty is 11; give a number from 0 to 10",
        ),
    ):
        answer = headwise("rerank", "lists", *words)
        assert (answer.status, sentence in answer.err) == (2, True), answer.err
    answer = headwise("rerank", "lists", "--channel", tiny_run, "--weight", "channel=1")
    assert (answer.status, "lists: line 1 is no list of candidates" in answer.err) == (3, True)
