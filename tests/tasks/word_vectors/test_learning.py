"""Word vectors from recipe to neighbours, on a made-up language whose two classes of words never
meet."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from headwise.cli.main import main
from headwise.data.known import corpora as known
from headwise.errors import CheckpointError, DataError, SettingsError, UsageError
from headwise.models.vector_space import VectorSpace
from headwise.settings import Settings, check_settings, read_yaml
from headwise.storage import publish_directory
from headwise.tasks import bundle as bundle_writing
from headwise.tasks.labels.bundle import load_label_bundle
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.recipe import load_recipe
from headwise.tasks.run import train
from headwise.tasks.translation.bundle import load_translator_bundle
from headwise.tasks.word_vectors import task as word_vector_task
from headwise.tasks.word_vectors.bundle import load_word_vectors
from headwise.tasks.word_vectors.files import export_word_vectors
from headwise.tasks.word_vectors.learning import (
    batch_words,
    learn_word_vectors,
    num_negative_samples,
    piece_words,
    read_text,
)
from headwise.tasks.word_vectors.recipe import (
    NegativeSampling,
    WordVectorModel,
    WordVectorRecipe,
)

ANIMALS, TOOLS = (
    [f"animal{number}" for number in range(7)],
    [f"tool{number}" for number in range(7)],
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 sentences of five words, each of one class only."""
    rng = np.random.default_rng(1)
    path = tmp_path_factory.mktemp("text") / "two.txt"
    lines = [" ".join(rng.choice(kind, 5)) for kind in (ANIMALS, TOOLS) for _ in range(1500)]
    rng.shuffle(lines)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def recipe(
    corpus: Path, model: dict[str, object] | None = None, **training: object
) -> WordVectorRecipe:
    data = {
        "task": "word_vectors",
        "data": {"train": str(corpus)},
        "model": {"dim": 13, "window": 3, **(model or {})},
        "training": {"threads": 1, "subsample": 0, "rate": 0.05, "epochs": 3, **training},
    }
    return check_settings(WordVectorRecipe, data)


TREE = {"kind": "hierarchical_softmax"}


@pytest.mark.parametrize("kind", ["skip_gram", "cbow"])
@pytest.mark.parametrize("output", [{"kind": "negative_sampling"}, TREE])
@pytest.mark.parametrize("threads", [1, 2])
def test_the_classes_separate(
    corpus: Path, kind: str, output: dict[str, str], threads: int
) -> None:
    settings = recipe(corpus, {"kind": kind, "output": output}, threads=threads)
    stream = read_text(settings)
    space = VectorSpace(stream.words, learn_word_vectors(stream, settings).inputs.numpy())
    for word in ANIMALS + TOOLS:
        assert {one.word[:4] for one in space.nearest(word, num_words=6)} == {word[:4]}


def test_one_thread_repeats_to_the_last_bit_and_the_seed_matters(corpus: Path) -> None:
    stream = read_text(recipe(corpus))
    first, again = (learn_word_vectors(stream, recipe(corpus, epochs=1)).inputs for _ in range(2))
    other = learn_word_vectors(stream, recipe(corpus, epochs=1, seed=2)).inputs
    assert first.equal(again)
    assert not first.equal(other)


def test_from_a_recipe_to_the_commands(
    corpus: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "recipe.yaml"
    file.write_text(
        f"task: word_vectors\ndata: {{train: {corpus}}}\nmodel: {{dim: 13}}\n", encoding="utf-8"
    )
    settings = load_recipe(
        file, ["training.threads=1", "training.subsample=0", "training.rate=0.05"]
    )
    assert isinstance(settings, WordVectorRecipe)
    made = train(settings, run=tmp_path / "run")
    assert made.results["text_words"] == 15_000
    loaded = load_word_vectors(tmp_path / "run")
    assert len(loaded.space.words) == made.results["words"]
    assert loaded.recipe == settings
    assert loaded.counts is not None
    for load, reason in (
        (LanguageModel.load, "have no probabilities.*a language model"),
        (load_translator_bundle, "a translator"),
        (load_label_bundle, "a classifier or tagger"),
    ):
        with pytest.raises(
            CheckpointError, match=f"{reason} is needed; use `headwise nearest` with this one"
        ):
            load(tmp_path / "run")
    with pytest.raises(UsageError, match="holds a run already"):
        train(settings, run=tmp_path / "run")

    model = str(tmp_path / "run")
    assert (
        main(
            [
                "nearest",
                "tool3",
                "--model",
                model,
                "--json",
                "--count",
                "3",
                "--plot",
                str(tmp_path / "m.png"),
            ]
        )
        == 0
    )
    said = capsys.readouterr()
    assert f"map: {tmp_path / 'm.png'}" in said.err
    (answer,) = json.loads(said.out)
    assert [one["word"][:4] for one in answer["nearest"]] == ["tool"] * 3
    assert (tmp_path / "m.png").stat().st_size > 1000
    assert main(["nearest", "tool3 - tool1 + animal2", "--model", model, "--one-hot"]) == 0
    said = capsys.readouterr()
    assert "0.000" in said.out
    assert (
        "learnt from 15,000 words of text, too few for sums such as king - man + woman" in said.err
    )
    assert main(["nearest", "tool3", "--model", model]) == 0
    assert "words of text" not in capsys.readouterr().err, "a word alone needs less"
    assert (
        main(["nearest", "tool3", "--model", str(tmp_path / "nowhere"), "--plot", "map.html"]) == 2
    )
    assert "does not end in .png or .svg" in capsys.readouterr().err
    assert main(["nearest", "tol3", "--model", model]) == 2
    assert "did you mean tool3" in capsys.readouterr().err

    pairs = tmp_path / "pairs.txt"
    pairs.write_text(
        "tool1 tool2 9\nanimal1 animal2 9\ntool1 animal3 1\ntool5 animal6 1\nx y 3\n",
        encoding="utf-8",
    )
    questions = tmp_path / "questions.txt"
    questions.write_text(": made up\ntool1 tool2 tool3 tool4\n", encoding="utf-8")
    assert main(["vectors", "score", "--model", model, "--json", str(pairs), str(questions)]) == 0
    similarity, _, analogies = json.loads(capsys.readouterr().out)
    assert (similarity["used"], similarity["total"], analogies["used"]) == (4, 5, 1)
    assert similarity["value"] > 80
    assert main(["vectors", "score", "--model", model, str(pairs)]) == 0
    assert "4\t5" in capsys.readouterr().out
    for flag in ([], ["--binary"]):
        exported, copy = tmp_path / f"vectors{len(flag)}", tmp_path / f"copy{len(flag)}"
        assert main(["vectors", "export", "--model", model, str(exported), *flag]) == 0
        assert main(["vectors", "import", str(exported), "--to", str(copy)]) == 0
        assert np.array_equal(load_word_vectors(copy).space.vectors, loaded.space.vectors)
    capsys.readouterr()
    for taken in (exported, tmp_path):
        before = exported.read_bytes()
        assert main(["vectors", "export", "--model", model, str(taken)]) == 2
        assert "exists already; choose another name" in capsys.readouterr().err
        assert exported.read_bytes() == before
    monkeypatch.chdir(tmp_path)
    assert main(["vectors", "export", "--model", model, "."]) == 2


def test_the_train_command(
    corpus: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = [f"data.train={corpus}", "model.dim=5", "training.epochs=1"]
    assert main(["train", "word-vectors", "--check", "--json", *changes]) == 0
    checked = json.loads(capsys.readouterr().out)
    assert (checked["parameters"], checked["expected_memory_mib"]) == (14 * 5, 1)
    assert checked["expected_seconds"] >= 0
    assert main(["train", "word-vectors", "--run", str(tmp_path / "run"), "--json", *changes]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out[said.out.index("{") :])["text_words"] == 15_000
    assert "15,000 words of text, 14 different" in said.err
    assert (
        main(["train", "word-vectors", "--run", str(tmp_path / "run"), "--resume", *changes]) == 2
    )
    assert "has no checkpoint to go on from" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is empty; a corpus needs at least one line"),
        ("word\n", "0 of 1 words"),
        ("a b\n" * 5 + "x" * 70_000 + "\n", r"two.txt:6: is longer than 65,536 bytes"),
    ],
)
def test_text_that_cannot_be_learnt_from(tmp_path: Path, content: str, reason: str) -> None:
    (tmp_path / "two.txt").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=reason):
        train(recipe(tmp_path / "two.txt"), run=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_what_cbow_takes_at_once(corpus: Path) -> None:
    """Fewer negative samples than skip-gram unless the recipe says how many; batches twice as large
    in a text of many words, never in one of few."""
    cbow, skip_gram = recipe(corpus, {"kind": "cbow"}), recipe(corpus, {"kind": "skip_gram"})
    own = recipe(corpus, {"kind": "cbow", "output": {"kind": "negative_sampling", "pool": 7}})
    assert [num_negative_samples(one, one.model.output) for one in (cbow, skip_gram, own)] == [
        20,
        24,
        7,
    ]
    assert batch_words(cbow, 0.1) == int(3.0 / 0.05 / (1.5 * 0.1))
    assert batch_words(cbow, 0.6) == int(3.0 / 0.05 / (3 * 0.6))
    assert batch_words(cbow, 1e-9) == 512


def test_long_texts_are_cut_into_longer_pieces() -> None:
    assert [piece_words(number) for number in (15_000, 512_000, 640_000, 1_024_000, 10**9)] == [
        8000,
        8000,
        10_000,
        16_000,
        16_000,
    ]


def test_a_rate_that_diverges_is_said(corpus: Path) -> None:
    settings = recipe(corpus, {"kind": "cbow"}, rate=10.0, epochs=9)
    stream = read_text(settings)
    with pytest.raises(SettingsError, match=r"training.rate=10.0; use a smaller rate"):
        learn_word_vectors(stream, settings)


def test_a_place_that_cannot_be_written_to_is_found_before_the_training(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        word_vector_task, "read_text", lambda recipe: pytest.fail("the text was read")
    )
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(NotADirectoryError):
        train(recipe(corpus), run=tmp_path / "file" / "run")


def test_a_full_disk_while_saving_is_no_obstacle_to_the_next_run(
    corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = recipe(corpus, epochs=1)

    def fill(path: Path, tensors: object) -> None:
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patched:
        patched.setattr(bundle_writing, "write_tensors", fill)
        with pytest.raises(OSError, match="No space left"):
            train(settings, run=tmp_path / "run")
    assert not (tmp_path / "run" / "model").exists()
    train(settings, run=tmp_path / "run")
    assert (tmp_path / "run" / "model" / "MANIFEST.json").is_file()


def test_models_that_are_none(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match=r"is not a model: .*headwise train word-vectors"):
        load_word_vectors(tmp_path)
    with publish_directory(tmp_path / "other", kind="kettle"):
        pass
    with pytest.raises(CheckpointError, match="of kind 'kettle', one of kind 'bundle' is needed"):
        load_word_vectors(tmp_path / "other")


def test_words_with_spaces_cannot_be_exported_and_an_empty_list_scores_nothing(
    tmp_path: Path,
) -> None:
    space = VectorSpace(["new york", "x"], np.eye(2))
    with pytest.raises(DataError, match="the word 'new york' holds a space"):
        export_word_vectors(space, tmp_path / "out", binary=False)
    assert not (tmp_path / "out").exists()


def _leaves(kind: type[Settings], prefix: str = "") -> dict[str, object]:
    found: dict[str, object] = {}
    for name, field in kind.model_fields.items():
        if isinstance(field.default, WordVectorModel) or name in ("data", "text", "training"):
            found |= _leaves(field.annotation, f"{prefix}{name}.")  # type: ignore[arg-type]
        elif isinstance(field.default, NegativeSampling):
            found |= _leaves(NegativeSampling, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = ... if field.is_required() else field.default
    return found


@pytest.mark.parametrize(("language", "required"), [("en", "required"), ("zh", "必填")])
def test_the_guides_table_is_the_settings(language: str, required: str) -> None:
    text = (
        Path(__file__).parents[3] / "docs" / "guide" / language / "17-word-vectors.md"
    ).read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([a-z_.]+)` \| (.+?) \| .+ \|$", text, flags=re.MULTILINE))
    expected = _leaves(WordVectorRecipe)
    assert rows.keys() == expected.keys()
    for key, shown in rows.items():
        if expected[key] is ...:
            assert shown == required
        else:
            assert read_yaml(shown.strip("`")) == expected[key], key


def test_text_that_nobody_has_cut_into_words_is_remarked_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "zh.txt").write_text(
        "我们都是中国人\n今天下雨\n" * 9 + "我们 今天\n", encoding="utf-8"
    )
    for unit, is_told in (("words", True), ("characters", False)):
        changes = [
            f"data.train={tmp_path / 'zh.txt'}",
            f"text.unit={unit}",
            "model.dim=3",
            "training.epochs=1",
        ]
        assert main(["train", "word-vectors", "--run", str(tmp_path / unit), *changes]) == 0
        assert ("95 % of the lines are one word" in capsys.readouterr().err) == is_told


def test_words_of_a_segmented_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import gzip

    monkeypatch.setenv(known.VARIABLE, str(tmp_path))
    monkeypatch.setattr(known, "_check_files", lambda name, files: None)
    (tmp_path / "people-daily-199801").mkdir()
    (tmp_path / "people-daily-199801" / "train.txt.gz").write_bytes(
        gzip.compress("[中央/n 电台/n]nt 说/v\n".encode())
    )
    data = {"train": "known:people-daily-199801/train", "language": "zh"}
    for unit, words in (
        ("words", {"中央", "电台", "说"}),
        ("characters", {"中", "央", "电", "台", "说"}),
    ):
        settings = {"task": "word_vectors", "data": data, "text": {"min_count": 1, "unit": unit}}
        assert set(read_text(check_settings(WordVectorRecipe, settings)).words) == words


def test_known_corpora_and_the_grammar_are_texts_too() -> None:
    recipe = check_settings(
        WordVectorRecipe,
        {"task": "word_vectors", "data": {"train": {"kind": "pocket", "count": 300}}},
    )
    assert "the" in read_text(recipe).words
