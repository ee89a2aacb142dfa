"""What bad input gets, end to end: exit status 2 or 3, what was given, required and to do, and
nothing half-written."""

import gzip
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Answer, Headwise
from tests.tasks.tiny import OVERRIDES

ENGLISH = [f"the cat number {number} sleeps on the mat" for number in range(60)]
GERMAN = [f"die Katze Nummer {number} schläft auf der Matte" for number in range(60)]


def encode(lines: list[str], encoding: str = "utf-8", end: str = "\n") -> bytes:
    return "".join(line + end for line in lines).encode(encoding)


def train(headwise: Headwise, *overrides: str, language: str = "en") -> Answer:
    settings = ("data.valid=null", "data.test=null", "text={size: 300}", "training.steps=1")
    command = ("--lang", language, "train", "pocket", "--run", "new/run")
    answer = headwise(*command, *OVERRIDES, *settings, *overrides)
    if answer.status:
        assert not Path("new").exists(), "nothing half-written"
        assert answer.out == ""
    return answer


def write_pair(source: bytes, target: bytes) -> None:
    Path("t.en").write_bytes(source)
    Path("t.de").write_bytes(target)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        (
            encode(ENGLISH),
            encode(GERMAN[:41]),
            "t.en:42: has 60 lines, t.de has 41; both must have the same number",
        ),
        (
            encode(ENGLISH),
            encode([*GERMAN[:10], "", *GERMAN[10:]]),
            "t.en:11: has 60 lines, t.de has 61",
        ),
        (b"", b"", "t.en: is empty; a corpus needs at least one line"),
        (encode(ENGLISH), b"", "t.en:1: has 60 lines, t.de has 0"),
        (
            encode(ENGLISH, "utf-16"),
            encode(GERMAN),
            "t.en:1: byte 0 (0xff) is not UTF-8; the file looks like UTF-16",
        ),
        (
            encode(ENGLISH),
            encode(["一只猫睡在垫子上"] * 60, "gb18030"),
            "t.de:1: byte 8 (0xd4) is not UTF-8; the file looks like GB18030",
        ),
        (
            encode(ENGLISH),
            encode(GERMAN, "latin-1"),
            "t.de:1: byte 23 (0xe4) is not UTF-8; the file looks like ISO-8859-1",
        ),
        (encode(ENGLISH), encode(ENGLISH), "no pair of data.train is left after filtering"),
    ],
)
def test_two_files_that_do_not_make_a_corpus(
    source: bytes, target: bytes, message: str, headwise: Headwise
) -> None:
    write_pair(source, target)
    answer = train(headwise, "data.train=t")
    assert answer.status == 3
    assert message in answer.err


@pytest.mark.parametrize(
    ("source", "dropped"),
    [
        (b"\xef\xbb\xbf" + encode(ENGLISH), ""),
        (encode(ENGLISH, end="\r\n"), ""),
        (encode([*ENGLISH[:-1], "a\0b"]), "1 dropped: control characters"),
        (encode([*ENGLISH[:-1], "x" * 1_000_000]), "1 dropped: line longer than 64 KiB"),
    ],
    ids=["bom", "crlf", "nul", "1 MB"],
)
def test_what_can_be_mended_or_left_out_is_and_the_rest_is_learnt(
    source: bytes, dropped: str, headwise: Headwise
) -> None:
    write_pair(source, encode(GERMAN))
    answer = train(headwise, "data.train=t")
    assert answer.status == 0
    assert f"read 60 pairs, kept {59 if dropped else 60}" in answer.err
    assert dropped in answer.err


def test_files_that_are_not_what_they_seem(headwise: Headwise) -> None:
    Path("one.tsv").write_bytes(encode(ENGLISH))
    Path("junk.tsv.gz").write_bytes(b"\x1f\x8b" + b"junk" * 9)
    packed = gzip.compress(encode([f"{a}\t{b}" for a, b in zip(ENGLISH, GERMAN, strict=True)]))
    Path("cut.tsv.gz").write_bytes(packed[:-20])
    Path("dir.en").mkdir()
    Path("dir.de").mkdir()
    Path("folder").mkdir()
    Path("text").write_bytes(encode(ENGLISH))
    for corpus, message in {
        "one.tsv": "one.tsv:1: the line has 1 column(s) separated by tabs, 2 are needed",
        "junk.tsv.gz": "junk.tsv.gz:1: the compressed file is damaged or cut short",
        "cut.tsv.gz": "the compressed file is damaged or cut short",
        "dir": "dir.en: is a directory, a text file is needed",
        "nowhere/t": (
            "data.train: nowhere/t.en: there is no t.en, t.en.gz or t.en.xz in "
            f"{Path.cwd()}/nowhere (a relative path starts in the working directory); check the "
            "path"
        ),
        f"{Path.cwd()}/t": f"there is no t.en, t.en.gz or t.en.xz in {Path.cwd()}; check the path",
        "dir.en": (
            "dir.en: is one of the two files of a corpus; give what both names begin with: dir "
            "(read are dir.en and dir.de)"
        ),
        "one.tsv.de.gz": (
            "give what both names begin with: one.tsv (read are one.tsv.en and one.tsv.de)"
        ),
        "text": "text: is one file, but a corpus named like this is two: text.en and text.de;",
        "folder": (
            "folder: is a directory; give what the names of the two files in it begin with, e.g. "
            "folder/train"
        ),
        "/": (
            "/: is a directory; give what the names of the two files in it begin with, e.g. "
            "/train for /train.en"
        ),
        "'.'": (
            ".: is a directory; give what the names of the two files in it begin with, e.g. "
            "train for train."
        ),
        "known:multi30k/raw/train": (
            "bring it with `headwise data fetch multi30k`, or set HEADWISE_DATA"
        ),
    }.items():
        answer = train(headwise, f"data.train={corpus}")
        assert (answer.status, message in answer.err) == (3, True), answer.err


def test_every_missing_file_is_named_with_its_key_before_anything_is_prepared(
    headwise: Headwise,
) -> None:
    write_pair(encode(ENGLISH), encode(GERMAN))
    answer = train(headwise, "data.train=t", "data.valid=v", "data.test=w.tsv")
    assert answer.status == 3
    assert answer.err.startswith(
        "headwise: error: 2 of the recipe's corpora cannot be read:\n  - data.valid: v.en: "
        "there is no v.en"
    )
    assert "\n  - data.test: w.tsv: there is no w.tsv" in answer.err
    assert answer.err.endswith("check the path, or leave it out with data.test=null\n")
    chinese = train(headwise, "data.train=t.en", "data.test=w.tsv", language="zh").err
    assert "配方中有 2 个语料无法读取" in chinese
    assert "data.train：t.en: 是语料两个文件之一；请给出两者共同的前缀：t" in chinese
    assert "（相对路径从当前工作目录算起）；请检查路径，或以 data.test=null 略去" in chinese


def test_names_of_columns_are_noted_or_left_out(headwise: Headwise) -> None:
    pairs = [f"{a}\t{b}" for a, b in zip(ENGLISH, GERMAN, strict=True)]
    Path("p.tsv").write_bytes(encode(["English\tde ", *pairs]))
    noted = train(headwise, "data.train=p.tsv")
    assert "read 61 pairs" in noted.err
    assert (
        "headwise: note: p.tsv:1: the line looks like names of columns, but is read as the first "
        "row; if it is not, write data.train='{path: p.tsv, header: true}'"
    ) in noted.err
    shutil.rmtree("new")
    said = train(headwise, "data.train={path: p.tsv, header: true}")
    assert "read 60 pairs" in said.err
    assert "names of columns" not in said.err


@pytest.mark.parametrize(
    ("override", "message"),
    [
        (
            "text.size=90000",
            "text.size is 90,000, but this text has room for a vocabulary of at most",
        ),
        ("text.size=20", "text.size is 20, but the single characters of this text already need"),
        (
            "model.encoder.heads=3",
            "model: encoder.heads=3 does not divide dim=16; choose a divisor such as 2",
        ),
        ("model.decoder.layers=0", "model.decoder.layers: must be at least 1, not 0"),
        ("text.coverage=0.95", "text.coverage: must be at least 0.98, not 0.95"),
        (
            "data.source=a/b",
            "data.source: 'a/b' is no language code; a code has letters, digits, '-', '_' and '.'",
        ),
        ("data.target='..'", "data.target: '..' is no language code"),
        ("training.device=cuda", "the device cuda was asked for, but PyTorch sees no GPU"),
        ("training.steps", "'training.steps' is not an override; write key.path=value"),
        ("trainin.steps=3", "trainin: unknown key; did you mean 'training'?"),
        ("steps=3", "steps: unknown key; did you mean training.steps?"),
        ("training.stepz=3", "training.stepz: unknown key; did you mean 'steps'?"),
        ("training=5", "training: must be `key: value` parts, not 5"),
        (
            "decoding.kind=bem",
            "no kind 'bem'; choose one of 'greedy', 'beam', 'sampling', 'drafted', 'one_pass', ",
        ),
        (
            "data.train=known:multi30/x",
            (
                "no known corpus is called 'multi30/x'; did you mean 'multi30k'? choose one of "
                "multi30k"
            ),
        ),
        (
            "data.train=pocket:trian",
            "data.train.0.split: must be 'train', 'valid', 'test' or 'unseen', not 'trian'",
        ),
    ],
)
def test_a_recipe_that_cannot_be(override: str, message: str, headwise: Headwise) -> None:
    write_pair(encode(ENGLISH), encode(GERMAN))
    answer = train(headwise, "data.train=t", override)
    assert (answer.status, message in answer.err) == (2, True), answer.err


def test_all_problems_are_listed_at_once_in_both_languages(headwise: Headwise) -> None:
    wrong = [
        "model.dimm=3",
        "training.steps=ten",
        "training.seed=-1",
        "data.row_tokens=100",
        "training.precision=fp16",
    ]
    answer = train(headwise, *wrong)
    assert answer.status == 2
    assert "headwise: error: overrides (key.path=value): 5 problems in the settings:" in answer.err
    assert answer.err.count("\n  - ") == 5
    chinese = train(headwise, *wrong, language="zh").err
    assert "覆盖项（key.path=value）: 设置有 5 处问题" in chinese
    assert "training.steps：必须是整数，而不是 'ten'" in chinese
    assert "Input should" not in answer.err + chinese


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"\x00\x01\xff\xfe", "is not UTF-8 text"),
        (b"a: 1\n" * 300_000, "the recipe has 1,500,000 bytes; at most 1,048,576 are read"),
        (
            b"a: &a [x]\nb: [*a, *a]\n",
            "my.yaml:2: not readable as YAML: aliases (*name) are not allowed",
        ),
        (
            b"a: !!python/object/apply:os.system ['touch hacked']\n",
            (
                "my.yaml:1: not readable as YAML: tags "
                "(tag:yaml.org,2002:python/object/apply:os.system) are not allowed"
            ),
        ),
        (b"", "my.yaml: is empty; a recipe starts with"),
        (b"task: translation\n", "data: is required, but not there"),
        (
            b"task: translation\ntask: x\n",
            "my.yaml:2: not readable as YAML: the key 'task' stands here twice",
        ),
    ],
)
def test_a_file_that_is_no_recipe(content: bytes, message: str, headwise: Headwise) -> None:
    Path("my.yaml").write_bytes(content)
    answer = headwise("train", "my.yaml", "--run", "new")
    assert (answer.status, message in answer.err) == (2, True), answer.err
    assert [path.name for path in Path().iterdir()] == ["my.yaml"]


def test_places_that_cannot_be_used(headwise: Headwise, tiny_run: Path) -> None:
    Path("file").write_text("x", encoding="utf-8")
    for words, message in {
        ("train", "pocket"): "--run DIR is missing",
        ("train", ".", "--run", "new"): ".: is a directory; a recipe is a YAML file",
        ("train", "pocket", "--run", "file"): "file: a file stands where a directory is needed",
        (
            "train",
            "pocket",
            "--run",
            "file/run",
        ): "file/run: a file stands where a directory is needed",
        (
            "train",
            "pocket",
            "--run",
            ".",
        ): ". holds files that are not a run; choose a new or empty directory",
        ("train", "pocket", "--run", "/"): "/ holds files that are not a run; choose a new or",
        (
            "train",
            "pocket",
            "--run",
            tiny_run,
        ): "holds a run already; add --resume to go on with it",
        (
            "train",
            "pocket",
            "--run",
            tiny_run,
            "--resume",
        ): "the recipe differs from the one this run began with",
        ("demo", "--pair", "en-en"): "--pair 'en-en' is not a pair of the pocket corpus",
        ("demo", "--pair", "de"): "--pair 'de' is not a pair of the pocket corpus",
    }.items():
        answer = headwise(*words)
        assert (answer.status, message in answer.err) == (2, True), answer.err
        assert [path.name for path in Path().iterdir()] == ["file"]


def test_paths_the_system_refuses(headwise: Headwise) -> None:
    Path("loop").symlink_to("loop")
    answer = headwise("train", "pocket", "--run", "a" * 300)
    assert answer.status == 2
    assert "a path of 300 characters is too long for this system; give a shorter one" in answer.err
    answer = headwise("train", "pocket", "--run", "loop/run")
    assert (answer.status, "its symbolic links lead in a circle" in answer.err) == (2, True), (
        answer.err
    )
    for command in ("explore", "serve"):
        assert headwise(command, "loop/x").status == 3
    for words in (
        ["doctor", "a" * 300],
        ["translate", "--model", "a" * 300],
        ["train", "a" * 5000, "--run", "run"],
    ):
        assert headwise(*words).status in (2, 3)


def test_a_read_only_file_system(headwise: Headwise, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: Path, *arguments: object, **options: object) -> None:
        raise OSError(30, "Read-only file system", str(self))

    monkeypatch.setattr(Path, "mkdir", refuse)
    answer = headwise("train", "pocket", "--run", "run")
    assert (
        answer.status,
        "run: the file system is read-only; use a place you may write to" in answer.err,
    ) == (2, True)


def test_a_damaged_recipe_in_a_run_is_damage(headwise: Headwise, tiny_run: Path) -> None:
    run = Path(shutil.copytree(tiny_run, "run"))
    text = (run / "recipe.yaml").read_text(encoding="utf-8")
    for damaged in (text.replace("seed: 1", "seed: 3"), text.replace("seed:", "seed"), "\0"):
        (run / "recipe.yaml").write_text(damaged, encoding="utf-8")
        for recipe in ("pocket", "run/recipe.yaml"):
            answer = headwise("train", recipe, "--run", "run", "--resume")
            assert (answer.status, "run/recipe.yaml: is " in answer.err) == (3, True), answer.err
            assert "to mend it: cp run/checkpoints/step-6/recipe.yaml run/recipe.yaml" in answer.err
    (run / "recipe.yaml").write_bytes((run / "checkpoints/step-6/recipe.yaml").read_bytes())
    assert headwise("train", "run/recipe.yaml", "--run", "run", "--resume").status == 0


def test_no_permission(headwise: Headwise, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tests may run as root, for whom everything is permitted: the system's refusal is
    imitated."""
    write_pair(encode(ENGLISH), encode(GERMAN))
    opened = Path.open

    def refuse(self: Path, *arguments: object, **options: object) -> object:
        if self.name == "t.de":
            raise PermissionError(13, "Permission denied", str(self))
        return opened(self, *arguments, **options)  # type: ignore[call-overload]

    monkeypatch.setattr(Path, "open", refuse)
    answer = train(headwise, "data.train=t")
    assert answer.status == 3
    assert (
        "t.de: cannot be read (Permission denied); check its permissions or give another file"
        in answer.err
    )
    monkeypatch.undo()

    def no_directory(self: Path, *arguments: object, **options: object) -> None:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "mkdir", no_directory)
    answer = headwise("train", "pocket", "--run", "/nowhere/run")
    assert answer.status == 2
    assert "/nowhere/run: no permission; use a place you may read and write" in answer.err
    assert "没有权限" in headwise("--lang", "zh", "train", "pocket", "--run", "/nowhere/run").err


def test_a_full_disk_is_not_the_users_mistake(
    headwise: Headwise, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Path, *arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device", str(self))

    monkeypatch.setattr(Path, "mkdir", full)
    answer = headwise("train", "pocket", "--run", "run")
    assert answer.status == 1
    assert "run: No space left on device; nothing more was written" in answer.err
