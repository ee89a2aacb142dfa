from pathlib import Path

import pytest
import sacrebleu

from headwise.errors import DataError, UsageError
from headwise.tasks.translation.evaluation import measure
from headwise.tasks.translation.evaluation_request import Measurement

REFERENCES = ["the cat sat on the mat", "a dog reads a book", "", "it rains today in the town"]
HYPOTHESES = ["the cat sat on a mat", "a dog reads a book", "", "it rains in the town"]


def write(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(name="files")
def _files(tmp_path: Path) -> dict[str, Path]:
    return {
        "reference": write(tmp_path / "reference", REFERENCES),
        "hypothesis": write(tmp_path / "hypothesis", HYPOTHESES),
    }


def test_ready_translations_score_as_sacrebleu_says(files: dict[str, Path]) -> None:
    result = measure(Measurement(files["reference"], hypothesis=files["hypothesis"]))
    assert result.as_dict()["bleu"] == pytest.approx(
        sacrebleu.corpus_bleu(HYPOTHESES, [REFERENCES]).score
    )
    assert result.as_dict()["chrf"] == pytest.approx(
        sacrebleu.corpus_chrf(HYPOTHESES, [REFERENCES]).score
    )
    assert result.as_dict()["exact_match"] == 0.5
    assert result.as_dict()["sentences"] == 4
    assert [row[0] for row in result.rows()][:3] == ["BLEU", "chrF2", "TER"]


def test_two_systems_are_compared(files: dict[str, Path], tmp_path: Path) -> None:
    worse = write(tmp_path / "worse", ["the", "a", "", "it"])
    result = measure(Measurement(files["reference"], hypothesis=files["hypothesis"], against=worse))
    assert [one.name for one in result.comparisons] == ["BLEU", "chrF2"]
    assert all(one.difference > 0 for one in result.comparisons)
    assert len(result.remarks()) == 2
    assert len(result.as_dict()["comparisons"]) == 2


def test_a_model_translates_the_source(tiny_run: Path, tmp_path: Path) -> None:
    source = write(tmp_path / "source", ["The cat sleeps.", ""])
    reference = write(tmp_path / "reference", ["Die Katze schläft.", ""])
    wanted = Measurement(
        reference,
        source=source,
        model=tiny_run,
        against=tiny_run / "model",
        output=tmp_path / "out",
        overrides=("kind=greedy",),
    )
    result = measure(wanted)
    lines = (tmp_path / "out").read_text(encoding="utf-8").split("\n")
    assert len(lines) == 3
    assert lines[1:] == ["", ""]
    assert result.comparisons[0].difference == 0.0


def test_what_is_wrong_is_said(files: dict[str, Path], tiny_run: Path, tmp_path: Path) -> None:
    reference, hypothesis = files["reference"], files["hypothesis"]
    with pytest.raises(UsageError, match=r"give either --model .with --source. or --hypothesis"):
        measure(Measurement(reference))
    with pytest.raises(UsageError, match="give either --model"):
        measure(Measurement(reference, model=tiny_run, hypothesis=hypothesis))
    with pytest.raises(UsageError, match="is a model, so --source is needed"):
        measure(Measurement(reference, model=tiny_run))
    with pytest.raises(UsageError, match="is a model, so --source is needed"):
        measure(Measurement(reference, hypothesis=hypothesis, against=tiny_run))
    with pytest.raises(
        DataError, match=r"reference: has 4 lines, but .*short gives 1 translations"
    ):
        measure(Measurement(reference, hypothesis=write(tmp_path / "short", ["x"])))
    with pytest.raises(DataError, match="empty: is empty; give the file of right translations"):
        measure(Measurement(write(tmp_path / "empty", []), hypothesis=hypothesis))
