"""Names that other toolkits use for our settings: `--lr 3` or `training.learning_rate=3`.

The message then names our key. Tested against: the settings of every task, which must have each
key.
"""

from typing import NamedTuple

_OTHERS = ("language_modeling", "classification", "tagging", "masked_language")
_BY_SENTENCE = ("classification", "tagging", "masked_language", "bidirectional_language")
_NEURAL = ("translation", *_OTHERS, "bidirectional_language")


class UsualName(NamedTuple):
    """Several names of one setting, and where it is in the recipes of some tasks."""

    words: tuple[str, ...]
    paths: tuple[str, ...]
    tasks: tuple[str, ...] = _NEURAL
    same_value: bool = True
    """Whether the given value is valid for our key too."""


USUAL_NAMES = (
    UsualName(("lr", "learning_rate", "max_lr", "peak_lr"), ("training.schedule.peak",)),
    UsualName(("warmup", "warmup_steps", "warmup_updates"), ("training.schedule.warmup",)),
    UsualName(("lr_scheduler", "scheduler"), ("training.schedule.kind",), same_value=False),
    UsualName(
        ("batch_size", "batch", "bsz", "max_tokens"), ("training.batch_tokens",), same_value=False
    ),
    UsualName(
        ("epochs", "epoch", "num_epochs", "max_epoch"), ("training.steps",), same_value=False
    ),
    UsualName(("epoch", "num_epochs", "max_epoch"), ("training.epochs",), ("word_vectors",)),
    UsualName(
        ("max_steps", "max_update", "max_updates", "iterations", "iters", "train_steps"),
        ("training.steps",),
    ),
    UsualName(
        ("accumulation", "update_freq", "accum", "grad_accum", "gradient_accumulation_steps"),
        ("training.accumulation",),
    ),
    UsualName(("clip", "clip_norm", "grad_clip", "max_grad_norm"), ("training.clip",)),
    UsualName(("weight_decay", "wd"), ("training.optimizer.weight_decay",)),
    UsualName(("optim",), ("training.optimizer.kind",), same_value=False),
    UsualName(("label_smoothing", "smoothing"), ("training.objective.label_smoothing",)),
    UsualName(("device",), ("training.device",)),
    UsualName(("gpu", "gpus", "cuda", "cpu"), ("training.device",), same_value=False),
    UsualName(("precision",), ("training.precision",)),
    UsualName(("fp16", "bf16", "amp", "dtype"), ("training.precision",), same_value=False),
    UsualName(("seed", "random_seed"), ("training.seed",), (*_NEURAL, "word_vectors")),
    UsualName(
        ("layers", "num_layers", "n_layers"),
        ("model.encoder.layers", "model.decoder.layers"),
        ("translation",),
    ),
    UsualName(
        ("layers", "num_layers", "n_layers"),
        ("model.layers",),
        (*_OTHERS, "bidirectional_language"),
    ),
    UsualName(
        ("heads", "num_heads", "n_heads"),
        ("model.encoder.heads", "model.decoder.heads"),
        ("translation",),
    ),
    UsualName(("heads", "num_heads", "n_heads"), ("model.heads",), _OTHERS),
    UsualName(
        ("dim", "d_model", "hidden_size", "embed_dim", "emb_size"),
        ("model.dim",),
        (*_NEURAL, "word_vectors"),
    ),
    UsualName(
        ("d_ff", "dim_feedforward", "ffn_dim", "ffn_embed_dim"),
        ("model.feed_forward.hidden",),
        ("translation", *_OTHERS),
    ),
    UsualName(("dropout",), ("model.dropout.residual",)),
    UsualName(("attention_dropout",), ("model.dropout.attention",)),
    UsualName(("vocab_size", "vocabulary_size", "vocab"), ("text.size",)),
    UsualName(("beam", "beam_size", "num_beams"), ("decoding.size",), ("translation",)),
    UsualName(
        ("max_len", "max_length", "max_seq_len", "seq_len"),
        ("data.row_tokens",),
        ("translation", *_BY_SENTENCE),
    ),
    UsualName(
        ("max_len", "max_length", "max_seq_len", "seq_len"),
        ("reading.row_tokens",),
        ("language_modeling",),
    ),
)


def find_usual(word: str) -> list[UsualName]:
    """What a name may mean, ignoring case, dashes and underscores."""
    name = word.replace("-", "_").lower()
    return [one for one in USUAL_NAMES if name in one.words]
