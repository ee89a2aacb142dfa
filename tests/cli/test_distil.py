"""`headwise distil` as a user runs it, up to a student that learns from its corpus."""

import json
from pathlib import Path

from headwise.data.shards import TokenStore
from headwise.pocket import sentences
from headwise.text.tokenizer_pair import load_tokenizers
from tests.cli.conftest import Headwise
from tests.tasks.tiny import OVERRIDES

DATA = "data.train={kind: pocket, split: train, count: 211}"
COMMAND = ("--set", "at_limit=end", "--shard", "101", "--device", "cpu")
"""The tiny teacher has not learnt to end its sentences."""


def test_a_distilled_corpus_trains_a_student(headwise: Headwise, tiny_run: Path) -> None:
    answer = headwise("distil", tiny_run, "--output", "out", DATA, *COMMAND)
    assert answer.status == 0, answer.err
    assert "211 sentences in 3 shards\n" in answer.err
    assert "sentences translated: 211 / 211" in answer.err
    assert "sentences translated\t211" in answer.out
    assert "how ambiguous it is\traw\tdistilled" in answer.out
    assert "data.train=out/train" in answer.out
    found = json.loads(Path("out/distilled.json").read_text(encoding="utf-8"))
    again = headwise("distil", tiny_run, "--output", "out", DATA, *COMMAND, "--json")
    assert again.status == 0
    assert "out is complete already" in again.err
    assert json.loads(again.out)["pairs"] == found["pairs"]
    student = (
        "train",
        "pocket",
        *OVERRIDES,
        "data.train=out/train",
        "training.steps=2",
        "data.filter={drop_duplicates: false, max_ratio: null}",
    )
    trained = headwise(*student, "--run", "student", "--json")
    assert trained.status == 0, trained.err
    assert json.loads(trained.out)["pairs"] == found["pairs"]
    assert "still the recipe's own" not in trained.err, "it is the pocket corpus, distilled"
    text = Path("out/train.de")
    text.write_text("".join(text.read_text(encoding="utf-8").splitlines(True)[1:]), "utf-8")
    refused = headwise(*student, "--run", "other")
    assert refused.status == 3
    assert (
        f"data.train: out/train.de: has {found['pairs'] - 1} lines, {found['pairs']} were "
        "distilled; distil again into another directory"
    ) in refused.err
    assert not Path("other").exists()


def test_files_with_references_in_every_mode(headwise: Headwise, tiny_run: Path) -> None:
    Path("a.en").write_text("The dog is old.\nThe cat sleeps.\n", encoding="utf-8")
    Path("a.de").write_text("Der Hund ist alt.\nDie Katze schläft.\n", encoding="utf-8")
    files = ("--source", "a.en", "--reference", "a.de", "--set", "at_limit=end", "--device", "cpu")
    for mode in ("best", "closest", "sampled"):
        answer = headwise(
            "--lang", "zh", "distil", tiny_run, "--output", f"new/{mode}", *files, "--mode", mode
        )
        assert answer.status == 0, answer.err
        assert "句对" in answer.out
        assert (Path("new") / mode / "train.de").is_file()


def test_what_cannot_be_is_refused_in_one_sentence(headwise: Headwise, tiny_run: Path) -> None:
    Path("a.en").write_text("The dog is old.\n", encoding="utf-8")
    for words, status, told in (
        (("--source", "a.en", "--data", "pocket"), 2, "--data and --source were both given"),
        (("--source", "b.en"), 3, "there is no b.en"),
        (("--data", "pokcet"), 2, "did you mean 'pocket'?"),
        (("--data", "ptb-ngram"), 2, "is a recipe of task language_modeling"),
        (("--source", "a.en", "--mode", "closest"), 2, "there is none; give --reference FILE"),
        (("--source", "a.en", "--set", "size=x"), 2, "decoding"),
        (("--source", "a.en", "--keep", "0"), 2, "is not a whole number from 1 on"),
    ):
        answer = headwise("distil", tiny_run, "--output", "out", *words)
        assert (answer.status, told in answer.err) == (status, True), answer.err
        assert answer.out == ""
        assert not list(Path().glob("out*")), "nothing half-written"
    for output in ("/", ".", "..", "x/.."):
        answer = headwise("distil", tiny_run, "--output", output, "--source", "a.en")
        assert (answer.status, "give a directory by its name" in answer.err) == (2, True)
    inside = headwise(
        "distil", tiny_run, "--output", tiny_run / "model" / "out", "--source", "a.en"
    )
    assert (inside.status, "sealed by checksums" in inside.err) == (2, True)
    assert headwise("distil", "a.en", "--output", "out", "--source", "a.en").status == 3


def test_back_translated_text_is_learnt_with_a_tag(headwise: Headwise, tiny_run: Path) -> None:
    """The translations of an en → de teacher are the sources of a de → en student."""
    lines = [one.text("en") for one in sentences("train", 60)]
    Path("more.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    words = ("distil", tiny_run, "--source", "more.en", "--output", "back", "--mode", "sampled")
    made = headwise(
        *words, "--drop-worst", "0.5", "--noise", *COMMAND, "data.filter.max_ratio=null"
    )
    assert made.status == 0, made.err
    assert "left out: among the least probable (--drop-worst)\t" in made.out
    found = json.loads(Path("back/distilled.json").read_text(encoding="utf-8"))
    assert (found["drop_worst"], found["noise"]) == (0.5, True)
    other = headwise(*words, *COMMAND, "data.filter.max_ratio=null")
    assert (other.status, "holds another distilled corpus" in other.err) == (2, True)
    assert "drop_worst: 0.5 → 0.0, noise: True → False" in other.err
    data = (
        "data={source: de, target: en, train: [pocket:train:90, {path: back/train, tag: <bt>, "
        "weight: 0.5}], valid: null, test: null, filter: {max_ratio: null}}"
    )
    changes = [one for one in OVERRIDES if not one.startswith("data.")]
    trained = headwise("train", "pocket", *changes, data, "--run", "student", "--json")
    assert trained.status == 0, trained.err
    tokenizer = load_tokenizers(Path("student/model/tokenizer")).source
    assert tokenizer.pieces(tokenizer.encode("<bt> Hund"))[0] == "▁<bt>"
    store = TokenStore(Path("student/data/train"))
    tagged = [store.source(n)[0] == tokenizer.encode("<bt>")[0] for n in range(len(store))]
    assert (sum(tagged), len(tagged)) == (len(store) - 90, len(store))
    wrong = headwise(*words, "--drop-worst", "1", "--output", "x")
    assert (wrong.status, "give a share from 0 to below 1" in wrong.err) == (2, True)
