"""Re-ranking: scores against tokens read one by one, weights of zero, the grid by sacreBLEU."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from headwise.errors import DataError, UsageError
from headwise.pocket import sentences
from headwise.tasks.run import train
from headwise.tasks.translation.nbest_lists import CandidateList, read_nbest
from headwise.tasks.translation.reranking import (
    GRID,
    JudgedList,
    choose_weights,
    judge_lists,
    load_judges,
)
from headwise.tasks.translation.translator import Translator
from tests.tasks.tiny import train_tiny

PAIRS = [(one.text("en"), one.text("de")) for one in sentences("test", 9)]
BEAM = ["kind=beam", "size=4", "num_best=4"]


@pytest.fixture(name="judges", scope="module")
def _judges(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("judges")
    train_tiny(folder / "reversed", ["data.target_order=reversed"])
    train_tiny(folder / "channel", ["data.source=de", "data.target=en"])
    text = "data={language: de, train: {kind: pocket, count: 60}, valid: null, test: null}"
    train("ptb-ngram", run=folder / "language", overrides=[text])
    return {
        "translator": folder / "reversed",
        "channel": folder / "channel",
        "language_model": folder / "language",
    }


@pytest.fixture(name="lists", scope="module")
def _lists(tiny_run: Path) -> list[CandidateList]:
    translator = Translator.load(tiny_run)
    made = translator([source for source, _ in PAIRS], translator.settings(BEAM))
    return [
        CandidateList(
            one.source, tuple(c.text for c in one.n_best), tuple(c.score for c in one.n_best)
        )
        for one in made
    ]


def read_one_by_one(model: Translator, source: str, target: str) -> float:
    """The mean over what a search says of each token and of the end."""
    ids = model.tokenizers.target.encode(target)
    rows = model.generator(model.settings(["kind=greedy"])).read([model.encode(source)], ids)
    return float(
        np.mean([float(row[0, token]) for row, token in zip(rows, [*ids, 2], strict=True)])
    )


def test_scores_are_those_of_reading_the_tokens(
    judges: dict[str, Path], lists: list[CandidateList]
) -> None:
    other, channel = Translator.load(judges["translator"]), Translator.load(judges["channel"])
    for one in judge_lists(lists[:3], load_judges(judges)):
        for place, text in enumerate(one.given.texts):
            expected = read_one_by_one(other, one.given.source, text)
            assert one.judged["translator"][place] == pytest.approx(expected, rel=1e-4)
            expected = read_one_by_one(channel, text, one.given.source)
            assert one.judged["channel"][place] == pytest.approx(expected, rel=1e-4)
    sums = judge_lists(lists[:3], load_judges({"channel": judges["channel"]}), alpha=0)
    length = len(channel.tokenizers.target.encode(lists[0].source)) + 1
    total = next(sums).judged["channel"][0]
    assert total == pytest.approx(
        read_one_by_one(channel, lists[0].texts[0], lists[0].source) * length
    )


def test_a_reversed_model_writes_text_in_its_normal_order(judges: dict[str, Path]) -> None:
    model = Translator.load(judges["translator"])
    for search in (["kind=greedy"], BEAM, ["kind=sampling"]):
        found = model([PAIRS[0][0]], model.settings(search))[0]
        target = model.tokenizers.target
        tokens = target.encode(found.text)
        assert target.decode(tokens) == found.text
        assert tokens[::-1] == target.inside.encode(found.text)  # type: ignore[attr-defined]


def test_weights_of_zero_change_nothing(
    judges: dict[str, Path], lists: list[CandidateList]
) -> None:
    for one in judge_lists(lists, load_judges(judges)):
        for weights in ({}, dict.fromkeys(judges, 0.0)):
            ranked = one.rank(weights)
            assert ranked.order == tuple(range(len(one.given.texts)))
            assert ranked.scores == one.given.scores
        assert [each["text"] for each in ranked.as_dict()["n_best"]] == list(one.given.texts)


def test_an_impossible_candidate_comes_last() -> None:
    one = JudgedList(
        CandidateList("a", ("x", "y", "z"), (-1.0, -2.0, -3.0)),
        {"language_model": (-np.inf, -1.0, -0.5)},
    )
    assert one.rank({"language_model": 0.0}).order == (0, 1, 2)
    ranked = one.rank({"language_model": 4.0})
    assert ranked.order == (2, 1, 0)
    assert json.loads(json.dumps(ranked.as_dict()))["n_best"][2]["score"] is None


def test_the_grid_finds_the_best_combination() -> None:
    generator = np.random.default_rng(3)
    references = [f"w{i} a b c d e" for i in range(12)]
    words = list("abcdefgh")
    lists = []
    for reference in references:
        tokens = reference.split()
        texts = []
        for _ in range(5):
            noisy = [t if generator.random() < 0.7 else generator.choice(words) for t in tokens]
            texts.append(" ".join(noisy))
        scores = tuple(generator.normal(size=5).tolist())
        judged = {name: tuple(generator.normal(size=5).tolist()) for name in ("channel", "x")}
        lists.append(JudgedList(CandidateList("s", tuple(texts), scores), judged))
    chosen = choose_weights(lists, references, fixed={})

    def bleu(weights: dict[str, float]) -> float:
        return (
            BLEU(force=True)
            .corpus_score([one.rank(weights).text for one in lists], [references])
            .score
        )

    every = {(a, b): bleu({"channel": a, "x": b}) for a, b in itertools.product(GRID, repeat=2)}
    assert chosen.after == pytest.approx(max(every.values()))
    assert every[chosen.weights["channel"], chosen.weights["x"]] == pytest.approx(chosen.after)
    assert chosen.before == pytest.approx(bleu({}))
    assert (chosen.tried, chosen.sentences) == (len(GRID) ** 2, 12)
    held = choose_weights(lists, references, fixed={"x": 0.3})
    assert (held.weights["x"], held.tried) == (0.3, len(GRID))
    with pytest.raises(UsageError, match="12 lists of candidates and 11 references"):
        choose_weights(lists, references[1:], fixed={})


def test_what_cannot_judge_is_refused(judges: dict[str, Path], tiny_run: Path) -> None:
    with pytest.raises(UsageError, match="give a --channel of the opposite direction"):
        load_judges({"translator": tiny_run, "channel": judges["translator"]})
    with pytest.raises(UsageError, match="give a --channel of the opposite direction"):
        load_judges({"translator": tiny_run, "channel": tiny_run})
    judge = load_judges({"channel": judges["channel"]})["channel"]
    with pytest.raises(DataError, match=r"a sentence of [\d,]+ tokens is to be scored"):
        judge.score(["Hund"], ["Hund " * 3000])


@pytest.mark.parametrize(("wrong", "right"), [("channel", "translator"), ("translator", "channel")])
def test_a_model_of_the_other_direction_is_told(
    wrong: str,
    right: str,
    judges: dict[str, Path],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Lists name no languages, and any translator gives scores to any text."""
    pairs = [CandidateList(source, (target,), (0.0,)) for source, target in PAIRS]
    for used_as, path, is_told in ((right, judges[right], False), (wrong, judges[right], True)):
        caplog.clear()
        assert len(list(judge_lists(pairs, load_judges({used_as: path})))) == len(pairs)
        assert ("look like another language" in caplog.text) == is_told


@pytest.mark.parametrize(
    "line",
    ["", "[]", "{}", '{"source": "a", "n_best": []}', '{"source": 1, "n_best": [{}]}',
     '{"source": "a", "n_best": [{"text": "b"}]}', '{"source": "a", "n_best": [{"text": 1}]}',
     '{"source": "a", "n_best": [{"text": "b", "score": NaN}]}',
     '{"source": "a", "n_best": [{"text": "b", "score": true}]}', "[" * 5000],
)  # fmt: skip
def test_a_line_that_is_no_list_is_named(tmp_path: Path, line: str) -> None:
    good = '{"source": "a", "n_best": [{"text": "b", "score": -1}]}'
    (tmp_path / "lists").write_text(f"{good}\n{line}\n", "utf-8")
    with pytest.raises(DataError, match="line 2 is no list of candidates"):
        list(read_nbest(tmp_path / "lists"))
    (tmp_path / "empty").write_text("", "utf-8")
    with pytest.raises(DataError, match="is empty; write lists"):
        list(read_nbest(tmp_path / "empty"))
