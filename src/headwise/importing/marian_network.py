"""Converts a Marian network to one of ours: the same weights under other names, the same numbers.

    Marian (transformers)                      Headwise
    q_proj;  k_proj above v_proj               query;  key_value
    self_attn_layer_norm, fc1, fc2 …           attention_residual.norm, widen, narrow …
    final_logits_bias                          output.bias
    rows of tables in the order of vocab.json  rows in the order <pad>, <s>, </s>, <unk>, the others

Marian's decoder starts with its padding token, which it never writes. Our <s> has that row, and the
bias NEVER, so that its probability is 0; our padding has the row and the bias of Marian's padding.
Logits of all other tokens are the same numbers, and so are their log-probabilities. Where
transformers excludes padding from the softmax (`renormalize_logits`), its bias is NEVER too.

Tested against: logits of transformers' MarianMTModel (1e-5).
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from headwise.errors import CheckpointError
from headwise.importing.marian_files import CONFIG, END, UNKNOWN, WEIGHTS, MarianFiles
from headwise.models.choices import EncoderDecoderSettings, build_model
from headwise.positions.sinusoidal import sinusoidal_table
from headwise.settings import check_settings
from headwise.weights import Weights, put_weights, read_tensors, weights_of

NEVER = -1e4
"""A logit whose probability is 0 in every number format."""
FEED_FORWARDS = {"relu": "relu", "gelu": "gelu", "swish": "silu", "silu": "silu"}
"""`activation_function` of transformers, and our word for it."""
BIAS = "final_logits_bias"
TABLES = (
    "model.shared.weight",
    "model.encoder.embed_tokens.weight",
    "model.decoder.embed_tokens.weight",
    "lm_head.weight",
)
SOURCE_TABLE, TARGET_TABLE, OUTPUT_TABLE = TABLES[:2], TABLES[2:3], TABLES[3:]
POSITIONS = ("model.encoder.embed_positions.weight", "model.decoder.embed_positions.weight")


def network_settings(files: MarianFiles) -> EncoderDecoderSettings:
    """The `model:` section that describes the network."""
    config, number = files.config, files.number
    hidden = number("encoder_ffn_dim")
    if number("decoder_ffn_dim") != hidden:
        raise _unknown(files, "decoder_ffn_dim", f"encoder_ffn_dim ({hidden})")
    rate = config.get("dropout", 0.1)
    ties = "output" if config.get("tie_word_embeddings", True) else "none"
    data = {
        "dim": number("d_model"),
        "encoder": {
            "layers": number("encoder_layers"),
            "heads": number("encoder_attention_heads"),
        },
        "decoder": {
            "layers": number("decoder_layers"),
            "heads": number("decoder_attention_heads"),
        },
        "position": {"kind": "sinusoidal", "layout": "halves"},
        "norm": {"kind": "layer", "place": "after"},
        "feed_forward": {"kind": _feed_forward(files), "hidden": hidden},
        "embedding": {
            "tied": "all" if files.is_shared and ties == "output" else ties,
            "scaled": bool(config.get("scale_embedding", False)),
        },
        "dropout": {
            "residual": rate,
            "embedding": rate,
            "attention": config.get("attention_dropout", 0.0),
            "hidden": config.get("activation_dropout", 0.0),
        },
        "output_bias": True,
    }
    return check_settings(EncoderDecoderSettings, data, file=files.directory / CONFIG)


def _feed_forward(files: MarianFiles) -> str:
    kind = FEED_FORWARDS.get(str(files.config.get("activation_function")))
    if kind is None:
        raise _unknown(files, "activation_function", ", ".join(FEED_FORWARDS))
    return kind


def _unknown(files: MarianFiles, name: str, known: str) -> CheckpointError:
    value = repr(files.config.get(name))[:60]
    return CheckpointError(
        f"{name} is {value}, but only {known} can be imported; import another model",
        f"{name} 为 {value}，而只能导入 {known}；请导入其他模型",
        file=files.directory / CONFIG,
    )


def row_order(files: MarianFiles, pieces: Sequence[str]) -> list[int]:
    """Marian's number of each entry of our vocabulary: padding, <s>, </s>, <unk>, then the others
    in Marian's order.
    """
    special = [
        files.number("pad_token_id"),
        files.number("decoder_start_token_id"),
        pieces.index(END),
        pieces.index(UNKNOWN),
    ]
    if not all(0 <= number < len(pieces) for number in special):
        raise _unknown(files, "decoder_start_token_id", f"numbers below {len(pieces):,}")
    if files.number("eos_token_id") != special[2]:
        raise _unknown(files, "eos_token_id", f"{special[2]}, the number of {END}")
    return special + [number for number in range(len(pieces)) if number not in special]


def read_network(files: MarianFiles, settings: EncoderDecoderSettings) -> Weights:
    """The weights of our network; all of Marian's are used, or it is an error."""
    file = files.directory / WEIGHTS
    found = {name: tensor.float() for name, tensor in read_tensors(file).items()}
    _check_positions(found, settings.dim, files)
    orders = [torch.tensor(row_order(files, pieces)) for pieces in files.lists]
    given = _Given(found, files)
    wanted = _tables(given, settings, orders) | _bias(given, files, orders[1])
    for number in range(settings.encoder.layers):
        wanted |= _layer(given, "encoder", number)
    for number in range(settings.decoder.layers):
        wanted |= _layer(given, "decoder", number)
    given.check_all_used()
    source, target = (len(order) for order in orders)
    network = build_model(settings, source_size=source, target_size=target, generator=None)
    own = weights_of(network)
    put_weights(own, {name: wanted[name] for name in wanted if name in own}, file=file)
    return own


class _Given:
    """Marian's weights, which are taken one by one."""

    def __init__(self, weights: dict[str, Tensor], files: MarianFiles) -> None:
        self.weights, self.files = weights, files
        self.used = {*POSITIONS, BIAS}

    def take(self, *names: str) -> Tensor:
        """The first that is there: a table may be stored under any of the names it is shared by."""
        self.used |= set(names)
        for name in names:
            if name in self.weights:
                return self.weights[name]
        raise self._explain(f"{names[0]} is missing", f"缺少 {names[0]}")

    def check_all_used(self) -> None:
        if unknown := sorted(self.weights.keys() - self.used):
            listed = ", ".join(unknown[:5]) + (" …" if len(unknown) > 5 else "")
            raise self._explain(
                f"it holds weights that {CONFIG} does not speak of: {listed}",
                f"其中有 {CONFIG} 未提到的权重：{listed}",
            )

    def _explain(self, en: str, zh: str) -> CheckpointError:
        return CheckpointError(
            f"{en}; use the {WEIGHTS} and the {CONFIG} of one model",
            f"{zh}；请使用同一个模型的 {WEIGHTS} 与 {CONFIG}",
            file=self.files.directory / WEIGHTS,
        )


def _tables(
    given: _Given, settings: EncoderDecoderSettings, orders: Sequence[Tensor]
) -> dict[str, Tensor]:
    files, tied = given.files, settings.embedding.tied
    if files.is_shared:
        source = target = given.take(*(TABLES if tied == "all" else TABLES[:3]))
    else:
        own = (*TARGET_TABLE, *(OUTPUT_TABLE if tied == "output" else ()))
        source, target = given.take(*SOURCE_TABLE), given.take(*own)
    output = target if tied != "none" else given.take(*OUTPUT_TABLE)
    for table, pieces in zip((source, target), files.lists, strict=True):
        if len(table) != len(pieces):
            raise CheckpointError(
                f"has a table of {len(table):,} rows for a list of {len(pieces):,} pieces; use "
                "the files of one model",
                f"嵌入表有 {len(table):,} 行，而词元表有 {len(pieces):,} 个词元；"
                "请使用同一个模型的文件",
                file=files.directory / WEIGHTS,
            )
    return {
        "source_embedding.table.weight": source[orders[0]],
        "target_embedding.table.weight": target[orders[1]],
        "output.weight": output[orders[1]],
    }


def _bias(given: _Given, files: MarianFiles, order: Tensor) -> dict[str, Tensor]:
    found = given.weights.get(BIAS)
    if found is not None and found.numel() != len(files.lists[1]):
        raise CheckpointError(
            f"has a bias of {found.numel():,} numbers for a list of {len(files.lists[1]):,} "
            "pieces; use the files of one model",
            f"输出偏置有 {found.numel():,} 个数，而词元表有 {len(files.lists[1]):,} 个词元；"
            "请使用同一个模型的文件",
            file=files.directory / WEIGHTS,
        )
    bias = torch.zeros(len(order)) if found is None else found.flatten()[order].clone()
    bias[1] = NEVER
    if files.generation.get("renormalize_logits"):
        bias[0] = NEVER
    return {"output.bias": bias}


def _layer(given: _Given, stack: str, number: int) -> dict[str, Tensor]:
    """The weights of one block of the encoder or the decoder."""
    theirs, ours = f"model.{stack}.layers.{number}", f"{stack}.{number}"
    attentions = [("self_attn", "self_attention", "attention_residual")]
    if stack == "decoder":
        attentions.append(("encoder_attn", "cross_attention", "cross_residual"))
    found: dict[str, Tensor] = {}
    for part in ("weight", "bias"):
        norm = "gain" if part == "weight" else "shift"
        for their, our, residual in attentions:
            key, value = (given.take(f"{theirs}.{their}.{name}_proj.{part}") for name in "kv")
            found[f"{ours}.{our}.key_value.{part}"] = torch.cat([key, value])
            found[f"{ours}.{our}.query.{part}"] = given.take(f"{theirs}.{their}.q_proj.{part}")
            found[f"{ours}.{our}.output.{part}"] = given.take(f"{theirs}.{their}.out_proj.{part}")
            found[f"{ours}.{residual}.norm.{norm}"] = given.take(
                f"{theirs}.{their}_layer_norm.{part}"
            )
        found[f"{ours}.feed_forward.widen.{part}"] = given.take(f"{theirs}.fc1.{part}")
        found[f"{ours}.feed_forward.narrow.{part}"] = given.take(f"{theirs}.fc2.{part}")
        found[f"{ours}.feed_forward_residual.norm.{norm}"] = given.take(
            f"{theirs}.final_layer_norm.{part}"
        )
    return found


def _check_positions(found: dict[str, Any], dim: int, files: MarianFiles) -> None:
    """A stored table of positions must be the sinusoids that we compute."""
    for name in POSITIONS:
        if name not in found:
            continue
        table = found[name]
        if table.shape[1:] != (dim,) or not torch.allclose(
            table, sinusoidal_table(len(table), dim, layout="halves"), atol=1e-3
        ):
            raise CheckpointError(
                f"{name} is not the table of sinusoids that Marian computes with; import another "
                "model",
                f"{name} 不是 Marian 所用的正弦表；请导入其他模型",
                file=files.directory / WEIGHTS,
            )
