"""Parallel beside autoregressive translators: what is counted, what is timed, what is refused."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from headwise.comparing import parallel_timing
from headwise.comparing.parallel import compare_parallel
from headwise.comparing.parallel_decodings import decodings_of, trained_on
from headwise.comparing.parallel_request import ParallelRequest
from headwise.comparing.parallel_table import ParallelComparison, ParallelRow, as_markdown, crossing
from headwise.comparing.parallel_timing import texts_for, time_in_turns
from headwise.data.pairs.preparation import read_part
from headwise.errors import DataError, SettingsError, UsageError
from headwise.evaluation.repetition import length_error, repetition_rate
from headwise.evaluation.translation import Score, TranslationScores
from headwise.explorer.pictures.parallel_plots import draw_parallel_comparison, make_figure
from headwise.tasks.events import Silence
from headwise.tasks.translation.bundle import TranslatorBundle
from headwise.tasks.translation.translator import Translator
from tests.tasks.tiny import tiny_recipe, train_tiny

PARALLEL = (
    "model.kind=parallel",
    "decoding=null",
    "decoding.kind=one_pass",
    "training.steps=3",
    "training.objective={kind: cross_entropy, label_smoothing: 0}",
    "model.length.kind=upsampled",
    "model.structure.kind=ctc",
)


@pytest.fixture(name="runs", scope="module")
def _runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An autoregressive run `teacher` and a parallel one `student`."""
    folder = tmp_path_factory.mktemp("runs")
    train_tiny(folder / "teacher")
    train_tiny(folder / "student", PARALLEL)
    return folder


@pytest.fixture(name="result", scope="module")
def _result(runs: Path) -> ParallelComparison:
    models = (runs / "student", runs / "teacher" / "model")
    request = ParallelRequest(
        models, batches=(5,), rounds=1, device="cpu", decodings=("ctc_beam size=3",)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parallel_timing, "MIN_TIMED", 3)  # the table is tested, not the numbers
        return compare_parallel(request)


def test_every_model_has_the_decodings_that_fit_it(result: ParallelComparison) -> None:
    assert [(row.model, row.decoding, row.is_parallel) for row in result.rows] == [
        ("student", "one_pass", True),
        ("student", "ctc_beam size=3", True),
        ("teacher", "greedy", False),
        ("teacher", "beam 5", False),
    ]
    assert result.baseline == "teacher"
    assert result.baseline_greedy is result.rows[2]
    assert result.num_sentences == 13
    assert {row.trained_on for row in result.rows} == {"raw"}


def test_faults_are_those_of_the_translations(result: ParallelComparison, runs: Path) -> None:
    """Counted again, from translations of one sentence at a time, with a loop over words."""
    words_of = Tokenizer13a()
    pairs = list(read_part(tiny_recipe().data, "test"))
    for row, name, words in (
        (result.rows[0], "student", ["kind=one_pass"]),
        (result.rows[2], "teacher", ["kind=greedy"]),
    ):
        translator = Translator.load(runs / name, device="cpu")
        repeated = total = 0
        errors = []
        for pair in pairs:
            text = translator([pair.source], translator.settings(words))[0].text
            tokens, reference = words_of(text).split(), words_of(pair.target).split()
            total += len(tokens)
            for place in range(1, len(tokens)):
                repeated += tokens[place] == tokens[place - 1]
            errors.append(abs(len(tokens) - len(reference)) / len(reference))
        assert row.repetition_rate == pytest.approx(repeated / max(1, total))
        assert row.length_error == pytest.approx(sum(errors) / len(errors))


def test_rates_by_hand() -> None:
    sentences = [["der", "der", "Hund", "."], [], ["a", "a", "a"], ["b"]]
    assert repetition_rate(sentences) == pytest.approx(3 / 8)
    assert repetition_rate([]) == 0
    references = [["der", "Hund"], ["x"], ["a", "a", "a"], []]
    assert length_error(sentences, references) == pytest.approx((1 + 1 + 0 + 1) / 4)


@pytest.mark.parametrize(
    ("baseline", "other", "expected"),
    [
        ({1: 10, 8: 80, 64: 300}, {1: 40, 8: 90, 64: 200}, 64),
        ({1: 10, 8: 95, 64: 300}, {1: 40, 8: 90, 64: 200}, 8),
        ({1: 40, 8: 90, 64: 200}, {1: 40, 8: 90, 64: 200}, 1),
        ({1: 10, 8: 80, 64: 100}, {1: 40, 8: 90, 64: 200}, None),
        ({1: 10, 8: 95, 64: 100}, {1: 40, 8: 90, 64: 200}, None),
        ({1: 10, 64: 300}, {8: 1, 64: 200}, 64),
    ],
)
def test_the_crossing_of_a_table_made_by_hand(
    baseline: dict[int, float], other: dict[int, float], expected: int | None
) -> None:
    assert crossing(baseline, other) == expected


def _row(model: str, *, speeds: dict[int, float], parallel: bool) -> ParallelRow:
    score = Score("BLEU", 31.25, "signature")
    scores = TranslationScores(score, score, score, 0.0, 7)
    trained = "distilled" if parallel else "raw"
    return ParallelRow(model, "any", parallel, trained, 1234, scores, 0.0123, 0.045, 0.0067, speeds)


def _by_hand(num_students: int = 1) -> ParallelComparison:
    rows = [_row("AT", speeds={1: 11.0, 8: 77.0, 64: 512.0}, parallel=False)]
    rows += [
        _row(f"NAT {number}", speeds={1: 55.0, 8: 78.0, 64: 256.0}, parallel=True)
        for number in range(num_students)
    ]
    counts = {1: 32, 8: 32, 64: 128}
    return ParallelComparison(
        {"device": "cpu"}, "fp32", 3, "en", "de", "pocket:test", 7, counts, "AT", tuple(rows)
    )


def test_the_table_and_json_of_a_comparison_made_by_hand() -> None:
    result = _by_hand()
    assert result.cells()[1] == (
        *("NAT 0", "any", "distilled", "1,234", "31.2", "31.2", "1.23 %", "4.5 %", "6.7"),
        *("55", "78", "256", "64"),
    )
    assert result.cells()[0][-1] == "–", "the baseline does not overtake itself"
    assert all(len(cells) == len(result.headings()) for cells in result.cells())
    saved = json.loads(json.dumps(result.as_dict()))
    assert [row["overtaken_at"] for row in saved["rows"]] == [None, 64]
    assert saved["rows"][1]["sentences_per_second"] == {"1": 55.0, "8": 78.0, "64": 256.0}
    assert saved["rows"][1]["trained_on"] == "distilled"
    assert saved["batches"] == [1, 8, 64]
    lines = as_markdown(result).splitlines()
    assert len({line.count("|") for line in lines[:4]}) == 1


@pytest.mark.parametrize("num_students", [0, 1, 12])
def test_a_picture_names_every_row(tmp_path: Path, num_students: int) -> None:
    result = _by_hand(num_students)
    draw_parallel_comparison(result, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").read_bytes().startswith(b"\x89PNG")
    (legend,) = make_figure(result).legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == [f"{row.model} · {row.decoding}" for row in result.rows]


class _Clock:
    def __init__(self) -> None:
        self.now = 0.0
        self.calls: list[tuple[str, int, int]] = []

    def translator(
        self, name: str, seconds: Callable[[int, int], float]
    ) -> Callable[[Sequence[str], int], None]:
        def translate(texts: Sequence[str], size: int) -> None:
            self.calls.append((name, size, len(texts)))
            self.now += seconds(len(texts), size)

        return translate


def test_rows_take_turns_and_the_warm_up_does_not_count() -> None:
    """A clock moved by hand: a takes 2 s a batch, b 1 s a sentence, and the first calls more."""
    clock = _Clock()
    slow_first = {"left": 200}

    def fast(count: int, size: int) -> float:
        slow_first["left"] -= 1
        return 2.0 * -(-count // size) + (1000.0 if slow_first["left"] > 200 - 32 else 0)

    rows = [clock.translator("a", fast), clock.translator("b", lambda count, _: float(count))]
    speeds = time_in_turns(
        rows, ["x", "y", "z"], batches=(8,), rounds=3, events=Silence(), clock=lambda: clock.now
    )
    assert [speed.latency for speed in speeds] == [2.0, 1.0]
    assert speeds[0].sentences_per_second == {1: 0.5, 8: 4.0}
    assert speeds[1].sentences_per_second == {1: 1.0, 8: 1.0}
    assert [name for name, size, _ in clock.calls if size == 8] == list("abbaabba")


def test_at_least_two_batches_are_timed() -> None:
    assert texts_for(["x", "y", "z"], 1) == ["x", "y", "z"] * 10 + ["x", "y"]
    assert len(texts_for(["x"], 31)) == 62


def test_all_sizes_are_timed(result: ParallelComparison) -> None:
    assert result.batches == (1, 5)
    assert result.num_timed == {1: 3, 5: 10}
    assert all(speed > 0 for row in result.rows for speed in row.sentences_per_second.values())
    assert all(row.latency > 0 for row in result.rows)


def test_a_decoding_that_the_recipe_has_is_measured_once(runs: Path) -> None:
    translator = Translator.load(runs / "teacher", device="cpu")
    names = [name for name, _ in decodings_of(translator, ["greedy", "beam size=3"])]
    assert names == ["greedy", "beam 5", "beam size=3"]


def test_distilled_data_are_recognised(tmp_path: Path) -> None:
    def of(*corpora: str) -> str:
        return trained_on(tiny_recipe(f"data.train=[{', '.join(corpora)}]"))

    for folder in ("distilled", "raw"):
        (tmp_path / folder).mkdir()
        for side in ("en", "de"):
            (tmp_path / folder / f"train.{side}").write_text("a\n", encoding="utf-8")
    (tmp_path / "distilled" / "distilled.json").write_text("{}", encoding="utf-8")
    distilled, raw = f"{tmp_path}/distilled/train", f"{tmp_path}/raw/train"
    assert of(distilled) == "distilled"
    assert of(raw) == of("pocket:train") == "raw"
    assert of(raw, distilled) == "both"
    assert of(distilled, f"{tmp_path}/gone/train") == "unknown"


@pytest.mark.parametrize(
    ("names", "words", "message"),
    [
        ([], {}, r"given no model; name finished translators"),
        (["student"], {}, r"all the models given are parallel.* add one, such as the teacher"),
        (["teacher", "student/../teacher"], {}, r"was given twice; name each model once"),
        (["teacher"], {"batches": (0, 8)}, r"batch sizes \[0, 8\] are not usable; give whole"),
        (["teacher"], {"source": Path("a")}, r"--source was given without --reference; both"),
        (["teacher"], {"reference": Path("a")}, r"--reference was given without --source; both"),
        (["teacher"], {"decodings": ("",)}, r"--decoding '' names no decoding; write its kind"),
    ],
)
def test_what_cannot_be_compared(
    runs: Path, names: list[str], words: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        compare_parallel(
            ParallelRequest(tuple(runs / name for name in names), **words)  # type: ignore[arg-type]
        )


def test_a_decoding_that_fits_no_model(runs: Path) -> None:
    request = ParallelRequest((runs / "teacher",), decodings=("one_pass",), device="cpu")
    with pytest.raises(SettingsError, match=r"one_pass was given, but .* use decoding\.kind=gree"):
        compare_parallel(request)


def test_models_of_other_languages_and_without_a_test_set(runs: Path, tmp_path: Path) -> None:
    words = ["data.target=zh", "text.size=900", "data.test=null", "training.steps=1"]
    train_tiny(tmp_path / "chinese", words)
    models = (runs / "teacher", tmp_path / "chinese")
    with pytest.raises(UsageError, match=r"translates en → zh, but .* translates en → de; compare"):
        compare_parallel(ParallelRequest(models))
    with pytest.raises(UsageError, match=r"has no test set \(data\.test\); give one: --source tes"):
        compare_parallel(ParallelRequest(models[1:]))


def test_texts_that_do_not_match_or_cannot_be_timed(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "two").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "blank").write_text(" \n\n", encoding="utf-8")
    (tmp_path / "one").write_text("a\n", encoding="utf-8")

    def compare(source: str, reference: str) -> None:
        places = {"source": tmp_path / source, "reference": tmp_path / reference}
        compare_parallel(ParallelRequest((runs / "teacher",), **places, device="cpu"))  # type: ignore[arg-type]

    with pytest.raises(DataError, match=r"has 1 lines, but .*two has 2; source and reference must"):
        compare("two", "one")
    with pytest.raises(DataError, match=r"no test sentence can be timed: all are blank"):
        compare("blank", "two")


class Upper:
    """Another program, which writes its sources in capitals."""

    name = "Upper"

    def translate(self, texts: Sequence[str], size: int) -> list[str]:
        assert size > 0
        return [text.upper() for text in texts]


def test_another_program_is_a_row_after_those_of_its_model(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_timing, "MIN_TIMED", 3)
    request = ParallelRequest(
        (runs / "teacher", runs / "student"), batches=(1,), rounds=1, device="cpu"
    )
    asked = []

    def make_peer(bundle: TranslatorBundle, translator: Translator) -> Upper:
        asked.append(translator.recipe.model.kind)
        return Upper()

    result = compare_parallel(request, make_peer=make_peer)
    assert asked == ["encoder_decoder"]
    assert [row.decoding for row in result.rows if row.model == "teacher"][-1] == "Upper"
    assert result.left_out == ()
    row = next(row for row in result.rows if row.decoding == "Upper")
    assert not row.is_parallel
    assert row.latency > 0
    pairs = list(read_part(tiny_recipe().data, "test"))
    errors = length_error(
        [pair.source.split() for pair in pairs], [pair.target.split() for pair in pairs]
    )
    assert row.length_error == pytest.approx(errors, abs=0.3)


def test_a_program_that_cannot_run_is_left_out_and_named(
    runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parallel_timing, "MIN_TIMED", 3)

    def make_peer(bundle: TranslatorBundle, translator: Translator) -> Upper:
        raise UsageError("it is not installed", "尚未安装")

    request = ParallelRequest((runs / "teacher",), batches=(1,), rounds=1, device="cpu")
    result = compare_parallel(request, make_peer=make_peer)
    assert [row.decoding for row in result.rows] == ["greedy", "beam 5"]
    assert result.left_out == ("teacher: it is not installed",)
    assert "left out: teacher: it is not installed" in as_markdown(result)
    assert result.as_dict()["left_out"] == ["teacher: it is not installed"]
