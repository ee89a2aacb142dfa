"""A distilled corpus: the teacher's own translations, the same bytes however often it was
interrupted and whoever helped, and refusals before anything is written.
"""

import json
import logging
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from headwise.data.pairs.choices import DataSettings, read_corpus
from headwise.errors import CheckpointError, DataError, UsageError
from headwise.pocket import texts
from headwise.storage import read_sealed_json, write_sealed_json
from headwise.tasks.translation import distillation_search
from headwise.tasks.translation.distillation import distil, teacher_fingerprint
from headwise.tasks.translation.distillation_request import DistillationRequest, DistilledCorpus
from headwise.tasks.translation.distillation_search import Distilled, Distiller
from headwise.tasks.translation.distillation_shards import WorkDirectory, part_of_output
from headwise.tasks.translation.translator import Translator
from tests.processes import run_python

ROOT = Path(__file__).resolve().parents[3]
COUNT, SHARD = 37, 7
SEARCH = ("size=2", "at_limit=end")
"""The tiny teacher has not learnt to end its sentences."""
JOB_KEYS = (
    *("format", "languages", "mode", "keep", "shard", "precision", "filter", "row_tokens"),
    *("teacher", "decoding", "corpora", "source", "drop_worst", "noise"),
)
ANY_RATIO = ("data.filter.max_ratio=null",)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "source.en", tmp_path / "source.de"
    pairs = list(texts("test", COUNT, ("en", "de")))
    for path, lines in zip(paths, zip(*pairs, strict=True), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return paths


def request_of(
    teacher: Path, output: Path, files: tuple[Path, ...], **changes: Any
) -> DistillationRequest:
    settings: dict[str, Any] = {
        "sources": files[:1],
        "references": files[1:],
        "decoding": SEARCH,
        "overrides": ANY_RATIO,
        "shard": SHARD,
        "device": "cpu",
        **changes,
    }
    return DistillationRequest(teacher, output, **settings)


def lines_of(corpus: DistilledCorpus) -> list[tuple[str, str]]:
    texts = [
        Path(f"{corpus.prefix}.{code}").read_bytes().decode().split("\n")[:-1]
        for code in ("en", "de")
    ]
    return list(zip(*texts, strict=True))


def bytes_of(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(directory.iterdir())}


def test_the_corpus_is_what_the_teacher_writes(tiny_run, translator, tmp_path, files) -> None:
    corpus = distil(request_of(tiny_run, tmp_path / "out", files))
    sources = files[0].read_text(encoding="utf-8").splitlines()
    settings = distillation_search.choose_search(translator.recipe, "best", 1, SEARCH)
    assert settings.num_hypotheses == 2
    assert settings.max_length == translator.recipe.decoding.max_length, "as the teacher decodes"
    expected = [
        (one.source, one.text)
        for one in translator.stream(sources, settings)
        if one.text and one.text != one.source
    ]
    assert lines_of(corpus) == expected
    found = corpus.description
    assert found["pairs"] == len(expected) == COUNT - sum(found["dropped"].values())
    assert found["source"]["sentences"] == COUNT
    assert found["teacher"] == teacher_fingerprint(tiny_run / "model")
    assert found["ambiguity"]["raw"]["pairs"] == len(expected)
    assert not part_of_output(tmp_path / "out").exists()


def test_a_recipe_and_files_of_its_text_give_the_same(tiny_run, tmp_path, files) -> None:
    data = f"data.train={{kind: pocket, split: test, count: {COUNT}}}"
    one = distil(request_of(tiny_run, tmp_path / "files", files))
    other = distil(request_of(tiny_run, tmp_path / "recipe", (), overrides=(data, *ANY_RATIO)))
    named = distil(
        request_of(tiny_run, tmp_path / "named", (), recipe="pocket", overrides=(data, *ANY_RATIO))
    )
    assert lines_of(one) == lines_of(other) == lines_of(named)
    assert one.description["source"] == other.description["source"]


def test_it_is_read_as_data(tiny_run, tmp_path, files) -> None:
    corpus = distil(request_of(tiny_run, tmp_path / "out", files))
    data = DataSettings.model_validate(
        {"source": "en", "target": "de", "train": str(corpus.prefix)}
    )
    pairs = read_corpus(data.train[0], source="en", target="de")
    assert [(pair.source, pair.target) for pair in pairs] == lines_of(corpus)


def test_no_more_is_done_twice(tiny_run, tmp_path, files, monkeypatch) -> None:
    request = request_of(tiny_run, tmp_path / "out", files)
    before = distil(request)
    part_of_output(request.output).mkdir()  # a kill after the corpus was published
    monkeypatch.delattr(Distiller, "translate")
    assert distil(request) == before
    assert not part_of_output(request.output).exists()


def test_what_is_not_the_rest_of_the_distillation_stays(tiny_run, tmp_path, files, caplog) -> None:
    request = request_of(tiny_run, tmp_path / "out", files[:1], shard=COUNT)
    description = distil(request).description
    part = part_of_output(request.output)
    part.mkdir()
    (part / "diary.txt").write_text("mine", encoding="utf-8")
    distil(request)
    assert (part / "diary.txt").read_text(encoding="utf-8") == "mine"
    assert "it stays as it is" in caplog.text
    job = {key: description[key] for key in JOB_KEYS}
    write_sealed_json(part / "job.json", {**job, "keep": 2})
    before = sorted(part.iterdir())
    distil(request)
    assert sorted(part.iterdir()) == before, "it is other work"
    write_sealed_json(part / "job.json", job)
    with WorkDirectory(request.output) as work:
        work.begin(job, 1)
        work.write(0, [Distilled("a", "b", None)], {})
        distil(request)
        assert (part / "00000").is_dir(), "another process holds it"
    distil(request)
    assert [child.name for child in part.iterdir()] == ["diary.txt"]


def test_a_file_of_the_users_own_is_not_taken_for_a_leftover(tiny_run, tmp_path, files) -> None:
    notes = tmp_path / "out.part" / "notes.incomplete"
    notes.mkdir(parents=True)
    with pytest.raises(UsageError, match=r"out.part exists already and holds no unfinished"):
        distil(request_of(tiny_run, tmp_path / "out", files))
    assert notes.is_dir()


class Stop(Exception):
    """Stands for the end of the process."""


def interrupt(request: DistillationRequest, monkeypatch: pytest.MonkeyPatch, after: int) -> None:
    whole, calls = Distiller.translate, []

    def translate(self, lines, *, shard):
        if len(calls) == after:
            raise Stop
        calls.append(shard)
        return whole(self, lines, shard=shard)

    with monkeypatch.context() as patch:
        patch.setattr(Distiller, "translate", translate)
        with pytest.raises(Stop):
            distil(request)
    assert not request.output.exists(), "nothing half-written"


def test_interrupted_and_resumed_it_has_equal_bytes(tiny_run, tmp_path, files, monkeypatch) -> None:
    for mode, keep in (("best", 1), ("sampled", 2)):
        changes = {"mode": mode, "keep": keep}
        if mode == "sampled":
            changes["decoding"] = ("at_limit=end",)
        whole = distil(request_of(tiny_run, tmp_path / f"whole-{mode}", files, **changes))
        request = request_of(tiny_run, tmp_path / f"resumed-{mode}", files, **changes)
        for after in (0, 1, 3):
            interrupt(request, monkeypatch, after)
        assert len(list(part_of_output(request.output).glob("0*"))) == 4
        resumed = distil(request)
        assert bytes_of(resumed.directory) == bytes_of(whole.directory)


def test_a_damaged_shard_is_noticed_and_translated_again(
    tiny_run, tmp_path, files, monkeypatch, caplog
) -> None:
    whole = distil(request_of(tiny_run, tmp_path / "whole", files))
    request = request_of(tiny_run, tmp_path / "out", files)
    interrupt(request, monkeypatch, 3)
    damaged = part_of_output(request.output) / "00001" / "target.txt"
    damaged.write_bytes(b"x" + damaged.read_bytes()[1:])
    (part_of_output(request.output) / "00002" / "source.txt").unlink()
    with caplog.at_level(logging.WARNING):
        corpus = distil(request)
    told = [record.getMessage() for record in caplog.records]
    assert sum("the shard is translated again" in one for one in told) == 2
    assert any("00001/target.txt: is damaged" in one for one in told)
    assert bytes_of(corpus.directory) == bytes_of(whole.directory)


def test_other_work_is_not_continued(tiny_run, tmp_path, files, monkeypatch) -> None:
    request = request_of(tiny_run, tmp_path / "out", files)
    interrupt(request, monkeypatch, 2)
    for changes, told in (
        ({"keep": 2}, r"keep: 1 → 2, decoding.num_best: 1 → 2"),
        ({"overrides": ()}, r"filter.max_ratio: None → 4.0"),
        ({"shard": 5}, r"shard: 7 → 5"),
        ({"references": ()}, r"other sentences"),
    ):
        with pytest.raises(UsageError, match=rf"unfinished distillation of other work \({told}"):
            distil(request_of(tiny_run, tmp_path / "out", files, **changes))
    job = part_of_output(request.output) / "job.json"
    job.write_text(job.read_text(encoding="utf-8").replace("best", "pest"), encoding="utf-8")
    with pytest.raises(CheckpointError, match=r"job.json: is damaged .* to start again"):
        distil(request)


def test_a_source_that_changed_is_noticed(tiny_run, tmp_path, files, monkeypatch) -> None:
    request = request_of(tiny_run, tmp_path / "out", files)
    interrupt(request, monkeypatch, 2)
    files[0].write_text(files[0].read_text().replace("the", "a", 1), encoding="utf-8")
    with pytest.raises(UsageError, match="other sentences"):
        distil(request)


def test_outputs_that_hold_something_else_are_refused(tiny_run, tmp_path, files) -> None:
    held = tmp_path / "held"
    held.mkdir()
    request = request_of(tiny_run, held, files)
    distil(request)  # an empty directory is welcome
    with pytest.raises(UsageError, match=r"holds another distilled corpus \(keep: 1 → 2"):
        distil(request_of(tiny_run, held, files, keep=2))
    (held / "train.de").write_text("changed\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"has 1 lines, .* were distilled"):
        distil(request)
    other = tmp_path / "other"
    other.mkdir()
    (other / "notes.txt").touch()
    with pytest.raises(UsageError, match="exists already and is not a distilled corpus"):
        distil(request_of(tiny_run, other, files))
    (tmp_path / "new.part").mkdir()
    (tmp_path / "new.part" / "notes.txt").touch()
    with pytest.raises(UsageError, match=r"new.part exists already and holds no unfinished"):
        distil(request_of(tiny_run, tmp_path / "new", files))
    with pytest.raises(UsageError, match="whose files are sealed by checksums"):
        distil(request_of(tiny_run, tiny_run / "model" / "distilled", files))
    assert not (tiny_run / "model" / "distilled.part").exists()


def test_two_at_once_are_refused(tiny_run, tmp_path, files, monkeypatch) -> None:
    request = request_of(tiny_run, tmp_path / "out", files)

    def translate(self, lines, *, shard):
        distil(request)

    monkeypatch.setattr(Distiller, "translate", translate)
    with pytest.raises(UsageError, match="another process is distilling into"):
        distil(request)


def test_teachers_and_data_that_do_not_fit_are_refused(tiny_run, tmp_path, files) -> None:
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        (
            {"overrides": ("data.source=zh",)},
            UsageError,
            r"translates en → de, and the data is zh → de; give a teacher",
        ),
        (
            {"recipe": "ptb-ngram", "sources": (), "references": (), "overrides": ()},
            UsageError,
            "is a recipe of task language_modeling",
        ),
        ({"recipe": "pocket"}, UsageError, "--data and --source were both given"),
        ({"references": files[:1] * 3}, UsageError, r"--reference names 3 file\(s\), --source 1"),
        (
            {"mode": "closest", "references": ()},
            UsageError,
            "keeps what is closest to a reference, and there is none",
        ),
        (
            {"keep": 2, "decoding": ("kind=greedy",)},
            UsageError,
            "decoding with kind=greedy gives one translation of a sentence",
        ),
        (
            {"decoding": ("max_length=1", "at_limit=cut")},
            DataError,
            "no translation of 37 sentences is left after filtering",
        ),
    ]
    for changes, error, told in cases:
        with pytest.raises(error, match=told):
            distil(request_of(tiny_run, tmp_path / "out", files, **changes))
        assert not list(tmp_path.glob("out*")), "nothing half-written"


def test_sentences_that_cannot_be_translated(tiny_run, tmp_path, files) -> None:
    empty = tmp_path / "empty.en"
    empty.write_text("\n \n\0\n", encoding="utf-8")
    with pytest.raises(DataError, match="none of 3 lines can be translated"):
        distil(request_of(tiny_run, tmp_path / "out", (empty,)))
    mixed = tmp_path / "mixed.en"
    mixed.write_text("The dog is old.\n\nThe cat sleeps.\n" + "x" * 70_000, encoding="utf-8")
    corpus = distil(request_of(tiny_run, tmp_path / "out", (mixed,)))
    assert (corpus.description["source"]["sentences"], corpus.description["pairs"]) == (2, 2)
    assert corpus.description["source"]["unusable"] == 2
    assert corpus.description["ambiguity"]["raw"] is None


def test_the_fingerprint_is_that_of_the_model_and_not_of_its_place(tiny_run, tmp_path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tiny_run / "model", copy)
    assert teacher_fingerprint(copy) == teacher_fingerprint(tiny_run / "model")
    Translator.load(copy, device="cpu")
    manifest = json.loads((copy / "MANIFEST.json").read_text(encoding="utf-8"))
    manifest["files"]["weights.safetensors"]["sha256"] = "0" * 64
    (copy / "MANIFEST.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(CheckpointError, match="is damaged"):
        teacher_fingerprint(copy)


def run_scenarios(directory: Path, model: Path, *names: str) -> dict[str, Any]:
    done = run_python(
        [sys.executable, "-m", "tests.tasks.translation.distilling", directory, model, *names],
        cwd=ROOT,
        env={
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "PATH": "/usr/bin:/bin",
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return json.loads(done.stdout)


def assert_same_corpus(one: Path, other: Path) -> None:
    assert bytes_of(one) == bytes_of(other)
    assert read_sealed_json(one / "distilled.json", ("pairs",))["pairs"] > 0


def test_two_processes_make_the_corpus_of_one(tiny_run, tmp_path, files) -> None:
    report = run_scenarios(tmp_path, tiny_run, "whole", "group", "stop")
    assert report["whole"] == 0
    assert report["group"] == [0, 0]
    assert (report["stop"]["status"], report["stop"]["end"]) == (143, 0)
    assert_same_corpus(tmp_path / "group-2", tmp_path / "whole")
    assert_same_corpus(tmp_path / "stopped", tmp_path / "whole")


@pytest.mark.prove
def test_killed_again_and_again_it_has_equal_bytes(tiny_run, tmp_path, files) -> None:
    many = [line for (line,) in texts("test", 211, ("en",))]
    files[0].write_text("".join(f"{line}\n" for line in many), encoding="utf-8")
    report = run_scenarios(tmp_path, tiny_run, "whole", "kill", "group-3", "resume")
    assert report["group-3"] == [0, 0, 0]
    assert report["resume"] == [0, 0]
    assert report["kill"]["kills"] >= 3
    assert (report["kill"]["status"], report["kill"]["part"]) == (0, False)
    for name in ("killed", "group-3", "resumed-by-2"):
        assert_same_corpus(tmp_path / name, tmp_path / "whole")
