"""The kernels a recipe may name under `attention: {kind: …}`, and the one place that builds them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from headwise.attention.fitting import check_relation
from headwise.attention.kernels.bigbird import BigBirdAttention
from headwise.attention.kernels.full import FullAttention
from headwise.attention.kernels.fused import FusedAttention
from headwise.attention.kernels.linear import LinearAttention
from headwise.attention.kernels.linformer import LinformerAttention, Sharing
from headwise.attention.kernels.longformer import LongformerAttention, LongformerMultiHead
from headwise.attention.kernels.performer import Estimate, PerformerAttention
from headwise.attention.kernels.reformer import HashedAttention, SharedQueryKeyAttention
from headwise.attention.kernels.scored import ScoredAttention
from headwise.attention.kernels.window import WindowAttention
from headwise.attention.multi_head import Kernel, MultiHeadAttention, Relation
from headwise.attention.roles import (
    Role,
    looks_back,
    needs_a_whole_sequence,
    needs_one_line,
    needs_whole_sentences,
)
from headwise.attention.score_choices import (
    LocalWindowSettings,
    ScaledDotSettings,
    ScoreSettings,
    SoftmaxSettings,
    WeightsSettings,
    build_local_window,
    build_normalizer,
    build_score,
)
from headwise.errors import SettingsError
from headwise.settings import Settings


class Full(Settings):
    """Written out, quadratic, the reference: for reading and for comparing with; its three steps can be exchanged."""

    kind: Literal["full"] = "full"
    score: ScoreSettings = ScaledDotSettings()
    """How a query and a key are compared."""
    weights: WeightsSettings = SoftmaxSettings()
    """How scores become weights."""
    window: LocalWindowSettings | None = None
    """The part of the source a target word looks at (cross-attention only); null: all of it."""


class Fused(Settings):
    """The same numbers from torch's fused kernel; the one to train with."""

    kind: Literal["fused"] = "fused"


class Window(Settings):
    """Neighbours only: cost grows with the length, not with its square."""

    kind: Literal["window"] = "window"
    left: int = Field(256, ge=0, le=1 << 30)
    right: int = Field(256, ge=0, le=1 << 30)
    """Tokens seen before and after one's own; a decoder sees none after, whatever stands here."""

    @model_validator(mode="after")
    def _sees_more_than_itself(self) -> "Window":
        if self.left + self.right == 0:
            raise SettingsError(
                "attention.left and attention.right are both 0, so a token would see only itself; "
                "a window needs at least one neighbour: set attention.left=1 or more",
                "attention.left 与 attention.right 均为 0，词元只能看到自己；窗口至少要有一个邻居：请设 attention.left=1 或更大",
            )
        return self


class Longformer(Settings):
    """A window, and global tokens at the head of every sentence that see and are seen by all; in a decoder without them."""

    kind: Literal["longformer"] = "longformer"
    width: int = Field(512, ge=2, le=1 << 30, multiple_of=2)
    """Two-sided: half of it before one's own token, half after."""
    num_global: int = Field(1, ge=0, le=1 << 30)
    dilation: int = Field(1, ge=1, le=1 << 30)
    """Look at every so-manieth token, that many times as far."""

    @model_validator(mode="after")
    def _dilates_without_global(self) -> "Longformer":
        if self.dilation > 1 and self.num_global > 0:
            raise SettingsError(
                f"attention.dilation={self.dilation} stands beside attention.num_global={self.num_global}, but a dilated window "
                "has no global tokens; set attention.num_global=0 or attention.dilation=1",
                f"attention.dilation={self.dilation} 与 attention.num_global={self.num_global} 同时出现，但空洞窗口没有全局词元；"
                "请设 attention.num_global=0 或 attention.dilation=1",
            )
        return self


class BigBird(Settings):
    """Neighbouring blocks, random ones, and global ones at both ends of a sentence. Encoder only."""

    kind: Literal["bigbird"] = "bigbird"
    block: int = Field(64, ge=1, le=1 << 30)
    num_window_blocks: Literal[1, 3, 5, 7, 9] = 3
    num_global_blocks: int = Field(2, ge=0, le=1 << 30)
    """Half of them at the beginning of a sentence, half at its end."""
    num_random_blocks: int = Field(3, ge=0, le=1 << 30)


class Linear(Settings):
    """Products of features instead of a softmax: linear time, and a decoder that remembers one matrix."""

    kind: Literal["linear"] = "linear"


class Performer(Settings):
    """The softmax estimated by random features: linear time, as a decoder too."""

    kind: Literal["performer"] = "performer"
    num_features: int = Field(default=256, ge=1, le=65536)
    """More are closer to the softmax, with the square root where queries and keys are short."""
    estimate: Estimate = "unbiased"
    """`unbiased`, the published one, is right in the mean over draws and far off where queries and keys are long; `bounded` shortens them to what the features resolve."""
    redraw_every: int = Field(default=0, ge=0, le=1 << 30)
    """Updates after which other features are drawn while training; 0 keeps the first, which is the one that serves afterwards."""


class Reformer(Settings):
    """Tokens look at those that fall into the same bucket; queries and keys are one."""

    kind: Literal["reformer"] = "reformer"
    num_buckets: int = Field(default=16, ge=2, le=65536, multiple_of=2)
    """Buckets of each hash; about as many as make a bucket as large as `bucket_size`."""
    num_rounds: int = Field(default=4, ge=1, le=64)
    """Hashes; twice as many come about twice as near to full attention."""
    bucket_size: int = Field(default=64, ge=1, le=65536)
    """Tokens of one's own bucket that are looked at to either side."""


class Linformer(Settings):
    """A sentence summed up in `rank` learned mixtures of its tokens; not for words that are written one by one."""

    kind: Literal["linformer"] = "linformer"
    rank: int = Field(default=64, ge=1, le=65536)
    """Keys and values that are left of a sentence; where it is not given, no more than `max_length`."""
    max_length: int = Field(default=512, ge=1, le=1 << 20)
    """Longer rows are refused."""
    sharing: Sharing = "heads"
    """One pair of mixtures for all heads of a layer; one for keys and values; one for all layers."""

    @model_validator(mode="before")
    @classmethod
    def _follow_the_length(cls, data: Any) -> Any:
        """Who asks for short rows alone gets a summary that is no longer than they are."""
        length = data.get("max_length") if isinstance(data, Mapping) else None
        default = cls.model_fields["rank"].default
        if type(length) is not int or not 1 <= length < default or "rank" in data:
            return data
        return {**data, "rank": length}

    @model_validator(mode="after")
    def _sums_up(self) -> "Linformer":
        if self.rank > self.max_length:
            raise SettingsError(
                f"attention.rank={self.rank} is over attention.max_length={self.max_length}, but a summary cannot hold more than the "
                f"sentence has tokens; set attention.rank={self.max_length} or less, or a larger attention.max_length",
                f"attention.rank={self.rank} 大于 attention.max_length={self.max_length}，而摘要不会比句子的词元更多；"
                f"请设 attention.rank={self.max_length} 或更小，或增大 attention.max_length",
            )
        return self


AttentionSettings = Annotated[
    Full | Fused | Window | Longformer | BigBird | Linear | Performer | Linformer | Reformer,
    Field(discriminator="kind"),
]


def build_attention(
    settings: AttentionSettings,
    *,
    dim: int,
    num_heads: int,
    dropout_rate: float,
    role: Role,
    relation: Relation | None = None,
) -> MultiHeadAttention:
    """One layer's attention; what cannot stand in this role is refused here, with what can."""
    attention = _build(
        settings,
        dim=dim,
        num_heads=num_heads,
        dropout_rate=dropout_rate,
        role=role,
        relation=relation,
    )
    if relation is not None:
        check_relation(settings.kind, attention.kernel, relation)
    return attention


def _build(
    settings: AttentionSettings,
    *,
    dim: int,
    num_heads: int,
    dropout_rate: float,
    role: Role,
    relation: Relation | None,
) -> MultiHeadAttention:
    match settings:
        case Full():
            full = _build_full(
                settings, head_dim=dim // num_heads, dropout_rate=dropout_rate, role=role
            )
            return MultiHeadAttention(dim, num_heads, full, relation=relation)
        case Fused():
            return MultiHeadAttention(
                dim, num_heads, FusedAttention(dropout_rate), relation=relation
            )
        case Window(left=left, right=right):
            needs_one_line(settings.kind, role)
            looks_back(left, role)
            return MultiHeadAttention(
                dim, num_heads, WindowAttention(left, right, dropout_rate), relation=relation
            )
        case Longformer():
            if settings.num_global > 0:
                needs_a_whole_sequence(
                    settings.kind,
                    role,
                    ", or attention.num_global=0",
                    "，或设 attention.num_global=0",
                )
            needs_one_line(settings.kind, role)
            near = LongformerAttention(
                settings.width, settings.num_global, settings.dilation, dropout_rate
            )
            if settings.num_global == 0:
                return MultiHeadAttention(dim, num_heads, near, relation=relation)
            return LongformerMultiHead(dim, num_heads, near, relation=relation)
        case BigBird():
            needs_a_whole_sequence(settings.kind, role)
            blocks = BigBirdAttention(
                settings.block,
                settings.num_window_blocks,
                settings.num_global_blocks,
                settings.num_random_blocks,
                dropout_rate,
            )
            return MultiHeadAttention(dim, num_heads, blocks, relation=relation)
        case Linear():
            return MultiHeadAttention(
                dim, num_heads, LinearAttention(dropout_rate), relation=relation
            )
        case Performer(num_features=num_features, estimate=estimate, redraw_every=every):
            features = PerformerAttention(
                dim // num_heads,
                num_features,
                estimate=estimate,
                redraw_every=every,
                dropout_rate=dropout_rate,
            )
            return MultiHeadAttention(dim, num_heads, features, relation=relation)
        case Reformer(num_buckets=buckets, num_rounds=rounds, bucket_size=width):
            needs_one_line(settings.kind, role)
            hashed = HashedAttention(
                dim // num_heads,
                num_buckets=buckets,
                num_rounds=rounds,
                window=width,
                dropout_rate=dropout_rate,
            )
            return SharedQueryKeyAttention(dim, num_heads, hashed, relation=relation)
        case Linformer(rank=rank, max_length=max_length, sharing=sharing):
            needs_whole_sentences(role)
            summaries = LinformerAttention(
                rank, max_length, sharing=sharing, dropout_rate=dropout_rate
            )
            return MultiHeadAttention(dim, num_heads, summaries, relation=relation)


def share_between_layers(layers: Sequence[MultiHeadAttention]) -> None:
    """Kernels that all layers of a stack have in common become one."""
    for layer in layers[1:]:
        if isinstance(layer.kernel, LinformerAttention) and layer.kernel.sharing == "layers":
            layer.kernel = layers[0].kernel


def _build_full(settings: Full, *, head_dim: int, dropout_rate: float, role: Role) -> Kernel:
    if settings == Full():
        return FullAttention(dropout_rate)
    if settings.window is not None and role != "cross":
        raise SettingsError(
            f"attention.window.kind={settings.window.kind} was given to the {role}'s self-attention, but follows a target through its "
            "source; set it under model.decoder.cross_attention, or take attention.kind=window for the neighbourhood of each token",
            f"attention.window.kind={settings.window.kind} 用在了 {role} 的自注意力上，而它只用于目标对源的注意力；"
            "请写在 model.decoder.cross_attention 下，或用 attention.kind=window 让每个词元看其邻近",
        )
    return ScoredAttention(
        build_score(settings.score, query_dim=head_dim, key_dim=head_dim),
        build_normalizer(settings.weights),
        window=None
        if settings.window is None
        else build_local_window(settings.window, head_dim=head_dim),
        dropout_rate=dropout_rate,
    )
