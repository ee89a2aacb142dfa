"""Reads and checks a directory with a Marian model in the format of transformers.

    config.json                shape of the network, special ids
    model.safetensors          weights
    source.spm, target.spm     a sentencepiece model for each language
    vocab.json                 piece → id; with separate vocabularies target_vocab.json too
    generation_config.json     the search (may be missing: older directories have it in config.json)
    tokenizer_config.json      the languages (may be missing)

Helsinki-NLP publishes the OPUS-MT models in this form (Tiedemann & Thottingal 2020). Weights that
are pickled (`pytorch_model.bin`) are not read, because a pickle can run any program; the error has
the lines that convert them. Tested: every file missing, damaged or of another model.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headwise.errors import CheckpointError
from headwise.storage import read_json

CONFIG, WEIGHTS, PICKLED = "config.json", "model.safetensors", "pytorch_model.bin"
SOURCE_PIECES, TARGET_PIECES = "source.spm", "target.spm"
SOURCE_LIST, TARGET_LIST = "vocab.json", "target_vocab.json"
GENERATION, TOKENIZER = "generation_config.json", "tokenizer_config.json"
MAX_LIST_BYTES, MAX_LIST_ENTRIES = 64 << 20, 1_000_000
END, UNKNOWN = "</s>", "<unk>"


@dataclass(frozen=True)
class MarianFiles:
    """What the text files of the directory say; weights and pieces are still in their files."""

    directory: Path
    config: Mapping[str, Any]
    generation: Mapping[str, Any]
    languages: tuple[str | None, str | None]
    """Of source and target, if the directory says."""
    lists: tuple[tuple[str, ...], tuple[str, ...]]
    """The pieces of source and target in the order of their ids."""

    @property
    def is_shared(self) -> bool:
        """Whether both languages have the same list, and so one embedding."""
        return bool(self.config.get("share_encoder_decoder_embeddings", True))

    def number(self, name: str) -> int:
        """A number of config.json that must be there."""
        value = self.config.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise CheckpointError(
                f"has no number {name!r}; use another copy of the model",
                f"缺少数值 {name!r}；请使用模型的其他副本",
                file=self.directory / CONFIG,
            )
        return value


def read_marian_files(directory: Path) -> MarianFiles:
    """The description of the model; an error if something is missing or is no Marian model."""
    _check_files(directory)
    config = _read_object(directory / CONFIG)
    if config.get("model_type") != "marian":
        raise CheckpointError(
            f"is a model of type {config.get('model_type')!r:.60}; only 'marian' can be imported, "
            "e.g. one of the OPUS-MT translators",
            f"是 {config.get('model_type')!r:.60} 类型的模型；只能导入 'marian'，例如 OPUS-MT "
            "翻译模型",
            file=directory / CONFIG,
        )
    is_shared = bool(config.get("share_encoder_decoder_embeddings", True))
    source = _read_list(directory / SOURCE_LIST)
    target = source if is_shared else _read_list(directory / TARGET_LIST)
    generation = directory / GENERATION
    tokenizer = _read_object(directory / TOKENIZER) if (directory / TOKENIZER).is_file() else {}
    return MarianFiles(
        directory,
        config,
        config | (_read_object(generation) if generation.is_file() else {}),
        (_language(tokenizer.get("source_lang")), _language(tokenizer.get("target_lang"))),
        (source, target),
    )


def _check_files(directory: Path) -> None:
    needed = (CONFIG, SOURCE_PIECES, TARGET_PIECES, SOURCE_LIST)
    missing = [name for name in needed if not (directory / name).is_file()]
    if missing:
        raise CheckpointError(
            f"is no Marian model in the format of transformers: {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing; copy the whole directory of the "
            f"model (with {', '.join((*needed, WEIGHTS))})",
            f"不是 transformers 格式的 Marian 模型：缺少 {'、'.join(missing)}；请复制模型的整个目录"
            f"（含 {'、'.join((*needed, WEIGHTS))}）",
            file=directory,
        )
    if (directory / WEIGHTS).is_file():
        return
    if (directory / PICKLED).is_file():
        convert = (
            'python -c "from transformers import MarianMTModel as M; '
            f'M.from_pretrained({str(directory)!r}).save_pretrained({str(directory)!r})"'
        )
        raise CheckpointError(
            f"holds its weights only as {PICKLED}, a pickle, which could run any program when it "
            f"is read; if you trust its source, convert it with transformers: `{convert}`, and "
            "import again",
            f"其权重只有 {PICKLED}，这是 pickle 文件，读取时可能执行任意程序；如果信任其来源，"
            f"请用 transformers 转换：`{convert}`，然后重新导入",
            file=directory,
        )
    raise CheckpointError(
        f"has no weights: {WEIGHTS} is missing; copy the whole directory of the model",
        f"没有权重：缺少 {WEIGHTS}；请复制模型的整个目录",
        file=directory,
    )


def _read_object(path: Path) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise CheckpointError(
            "is no JSON object; use another copy of the model",
            "不是 JSON 对象；请使用模型的其他副本",
            file=path,
        )
    return value


def _read_list(path: Path) -> tuple[str, ...]:
    """Pieces in the order of their ids, which must be 0, 1, 2 …"""
    value = read_json(path, max_bytes=MAX_LIST_BYTES, max_items=MAX_LIST_ENTRIES * 5 // 4)
    is_list = isinstance(value, dict) and all(type(number) is int for number in value.values())
    if not is_list or sorted(value.values()) != list(range(len(value))):
        raise CheckpointError(
            "is no list of pieces with the ids 0, 1, 2 …; use another copy of the model",
            "不是编号为 0、1、2…… 的词元表；请使用模型的其他副本",
            file=path,
        )
    for needed in (END, UNKNOWN):
        if needed not in value:
            raise CheckpointError(
                f"does not list {needed}; use another copy of the model",
                f"没有列出 {needed}；请使用模型的其他副本",
                file=path,
            )
    return tuple(sorted(value, key=value.__getitem__))


def _language(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
