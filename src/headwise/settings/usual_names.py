"""Recognises names that other toolkits use for our settings, such as `--lr 3` or
`training.learning_rate=3`.

If a user gives one, the error names our key, if the recipe's task has it. Tested against: the
settings of all tasks; each key must be one of some task.
"""

from typing import NamedTuple


class UsualName(NamedTuple):
    """Several names of one setting, and where it is in recipes that have it."""

    words: tuple[str, ...]
    paths: tuple[str, ...]
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
    UsualName(("epoch", "num_epochs", "max_epoch"), ("training.epochs",)),
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
    UsualName(("seed", "random_seed"), ("training.seed",)),
    UsualName(
        ("layers", "num_layers", "n_layers"),
        ("model.encoder.layers", "model.decoder.layers"),
    ),
    UsualName(
        ("layers", "num_layers", "n_layers"),
        ("model.layers",),
    ),
    UsualName(
        ("heads", "num_heads", "n_heads"),
        ("model.encoder.heads", "model.decoder.heads"),
    ),
    UsualName(("heads", "num_heads", "n_heads"), ("model.heads",)),
    UsualName(
        ("dim", "d_model", "hidden_size", "embed_dim", "emb_size"),
        ("model.dim",),
    ),
    UsualName(
        ("d_ff", "dim_feedforward", "ffn_dim", "ffn_embed_dim"),
        ("model.feed_forward.hidden",),
    ),
    UsualName(("dropout",), ("model.dropout.residual",)),
    UsualName(("attention_dropout",), ("model.dropout.attention",)),
    UsualName(("vocab_size", "vocabulary_size", "vocab"), ("text.size",)),
    UsualName(("beam", "beam_size", "num_beams"), ("decoding.size",)),
    UsualName(
        ("max_len", "max_length", "max_seq_len", "seq_len"),
        ("data.row_tokens",),
    ),
    UsualName(
        ("max_len", "max_length", "max_seq_len", "seq_len"),
        ("reading.row_tokens",),
    ),
)


def find_usual(word: str) -> list[UsualName]:
    """What a name may mean, ignoring case, dashes and underscores."""
    name = word.replace("-", "_").lower()
    return [one for one in USUAL_NAMES if name in one.words]
