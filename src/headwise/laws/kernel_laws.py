"""The laws of attention: properties that every kernel must have, for example that a hidden key has
no effect. Each law is a function of a case, a kernel with its masks and inputs.

A law raises AssertionError if a kernel does not have the property. tests/laws runs all laws over
all kernels, and checks that each law finds a kernel with a known fault.
"""

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from headwise.attention.cache import KeyValueCache
from headwise.attention.choices import BUILT_IN
from headwise.attention.masks import Mask, causal
from headwise.attention.multi_head import Kernel, Stepping
from headwise.errors import MaskError, UsageError
from headwise.laws.case import HEAD_DIM, LawCase
from headwise.laws.packing_laws import packed_is_one_by_one, padded_is_one_by_one
from headwise.laws.random_inputs import BATCH, HEADS, PARTS, Scene, cases, make_scene, scene_for
from headwise.laws.result_checks import (
    assert_derivatives,
    assert_same,
    find_gradients,
    honoured,
    refused,
    stand_at,
)

HUGE = 1e9


def run(kernel: Kernel, scene: Scene, name: str, bias: Tensor | None) -> Tensor:
    return kernel(scene.q, scene.k, scene.v, scene.mask(name), bias=bias)


def hidden_keys_cannot_leak(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """The output of a query does not change if a masked key becomes very large, and the gradient of
    masked keys and values is zero."""
    kernel = row.build(0.0)
    for name, scene, bias in cases(row, "leak", dtype):
        before, visible = run(kernel, scene, name, bias), scene.dense(name)
        # One copy of the scene for each key that is made large, all in one batch.
        many, k, v = _copies(scene, scene.num_keys)
        for key in range(scene.num_keys):
            k[key, :, :, key], v[key, :, :, key] = HUGE, -HUGE
        k, v = k.flatten(0, 1), v.flatten(0, 1)
        given = replace(many, q=k if row.shared else many.q, k=k, v=v)
        outputs = run(kernel, given, name, None if bias is None else many.bias)
        for key, after in enumerate(outputs.unflatten(0, (scene.num_keys, BATCH))):
            blind = ~visible[:, :, :, key]
            blind[:, :, key if row.shared else slice(0)] = (
                False  # the token's own query is changed with it
            )
            assert_same(after[blind], before[blind], f"{name}, key {key}")
        # One copy for each query whose gradients are taken.
        many, k, v = _copies(scene, scene.num_queries)
        leaves = [value.flatten(0, 1).requires_grad_() for value in (k, v)]
        given = replace(many, k=leaves[0], v=leaves[1])
        outputs = run(kernel, given, name, None if bias is None else many.bias)
        asked = [
            output[:, :, query].square().sum()
            for query, output in enumerate(outputs.unflatten(0, (scene.num_queries, BATCH)))
        ]
        for gradient in find_gradients(torch.stack(asked).sum(), leaves):
            for query, one in enumerate(gradient.unflatten(0, (scene.num_queries, BATCH))):
                assert one[~visible[:, :, query]].eq(0).all(), (
                    f"{name}: a gradient reaches a hidden key"
                )


def _copies(scene: Scene, count: int) -> tuple[Scene, Tensor, Tensor]:
    """The scene `count` times in one batch; and its keys and values, with an axis of copies, to be
    changed."""
    many = scene.times(count)
    k, v = (value.clone().unflatten(0, (count, BATCH)) for value in (many.k, many.v))
    return many, k, v


def empty_row_gives_zeros(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """A query without visible keys gives zeros and a zero gradient, never NaN."""
    scene = scene_for(row, "empty", dtype=dtype)
    scene.table[1, :, 2] = False
    scene.real[0] = False
    scene.query_segment[1, 3:] = 0
    for name in honoured(row, "explicit", "padding", "segments", "explicit&padding"):
        for bias in (None, scene.bias) if row.takes_bias else (None,):
            leaves = [value.clone().requires_grad_() for value in (scene.q, scene.k, scene.v)]
            q, k, v = leaves
            output = row.build(0.0)(q, k, v, scene.mask(name), bias=bias)
            empty = ~scene.dense(name).any(-1)
            assert empty.any(), name
            assert output[empty].eq(0).all(), name
            gradients = find_gradients(output.square().sum() + output.sum(), leaves)
            assert all(gradient.isfinite().all() for gradient in gradients), name
            assert gradients[0][empty].eq(0).all(), name
            seen_by_nobody = ~scene.dense(name).any(-2)
            assert all(gradient[seen_by_nobody].eq(0).all() for gradient in gradients[1:]), name


def minus_infinity_hides(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """A bias of minus infinity acts as a mask; queries without visible keys give zeros."""
    if not row.takes_bias:
        return
    scene = make_scene("minus infinity", square=row.square_only, dtype=dtype)
    scene.table[1, :, 2] = False
    hiding = torch.zeros_like(scene.dense("explicit"), dtype=scene.q.dtype).masked_fill(
        ~scene.dense("explicit"), -torch.inf
    )
    leaves = [value.clone().requires_grad_() for value in (scene.q, scene.k, scene.v)]
    q, k, v = leaves
    output = row.build(0.0)(q, k, v, Mask(), bias=hiding)
    assert_same(output, row.build(0.0)(q, k, v, scene.mask("explicit")))
    gradients = find_gradients(output.square().sum(), leaves)
    assert all(gradient.isfinite().all() for gradient in gradients)


def batched_is_one_by_one(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """The output of an element of a batch does not depend on the other elements."""
    kernel = row.build(0.0)
    for name, scene, bias in cases(row, "batch", dtype):
        whole = run(kernel, scene, name, bias)
        for batch in range(BATCH):
            alone = run(
                kernel, scene.only(batch), name, None if bias is None else bias[batch : batch + 1]
            )
            assert_same(alone[0], whole[batch], name)


def gradients_hold(row: LawCase) -> None:
    """Derivatives equal finite differences in double precision, of the bias too."""
    if not row.continuous:
        return
    kernel = row.build(0.0)
    for name in honoured(row, *PARTS, "causal&segments"):
        scene = scene_for(row, "gradients", num_queries=2, num_keys=3, value_dim=2).only(0)
        scene = replace(scene, table=scene.table[:, :1], bias=scene.bias[:, :1])
        leaves = [value[:, :1] for value in (scene.q, scene.k, scene.v)]

        def call(
            q: Tensor, k: Tensor, v: Tensor, *bias: Tensor, scene: Scene = scene, name: str = name
        ) -> Tensor:
            given = replace(scene.times(len(q)), q=q, k=k, v=v)
            return run(kernel, given, name, bias[0] if bias else None)

        assert_derivatives(call, leaves, name)
        if row.takes_bias:
            assert_derivatives(call, [*leaves, scene.bias], f"{name}, bias")


def stepping_is_the_whole(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """Causal attention token by token with a cache equals that of the whole sequence; a prefix may
    be processed at once."""
    if "causal" in row.refuses:
        return
    scene = scene_for(row, "steps", square=True, value_dim=HEAD_DIM, dtype=dtype)
    kernel = row.build(0.0)
    whole = kernel(scene.q, scene.k, scene.v, causal())
    if isinstance(kernel, Stepping):
        assert_same(_step_through(kernel, scene), whole, "its own memory")
    for prefix in (1, 3) if not isinstance(kernel, Stepping) else ():
        cache = KeyValueCache.empty(
            max_length=scene.num_keys,
            num_rows=BATCH,
            num_heads=HEADS,
            head_dim=HEAD_DIM,
            like=scene.k,
        )
        keys, values = cache.append(scene.k[:, :, :prefix], scene.v[:, :, :prefix])
        outputs = [kernel(scene.q[:, :, :prefix], keys, values, causal())]
        for time in range(prefix, scene.num_keys):
            keys, values = cache.append(
                scene.k[:, :, time : time + 1], scene.v[:, :, time : time + 1]
            )
            outputs.append(
                stand_at(kernel, time, 1)(scene.q[:, :, time : time + 1], keys, values, Mask())
            )
        assert_same(torch.cat(outputs, dim=2), whole)
    if "causal_offset" not in row.refuses:
        later = stand_at(kernel, 3, scene.num_queries - 3)(
            scene.q[:, :, 3:], scene.k, scene.v, causal(3)
        )
        assert_same(later, whole[:, :, 3:], "a chunk after a prefix")


def _step_through(kernel: Stepping, scene: Scene) -> Tensor:
    """Token by token with the kernel's own cache, whose rows are reordered on the way."""
    cache = kernel.make_cache(
        max_length=scene.num_keys, num_rows=BATCH, num_heads=HEADS, head_dim=HEAD_DIM, like=scene.k
    )
    order, outputs = torch.arange(BATCH), []
    for time in range(scene.num_keys):
        assert cache.length == time
        q, k, v = (value[order, :, time : time + 1] for value in (scene.q, scene.k, scene.v))
        outputs.append(kernel.step(q, k, v, cache)[order.argsort()])
        cache.reorder(torch.tensor([1, 0]))
        order = order[torch.tensor([1, 0])]
    return torch.cat(outputs, dim=2)


def degenerate_case_is_exact(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """With settings that approximate nothing, outputs and gradients equal those of full attention
    (or of the kernel's own reference)."""
    if row.exact is None:
        return
    for name, scene, bias in cases(row, "exact", dtype):
        results, precise = [], scene.to(torch.float64)
        for kernel, given in ((row.exact(scene.num_keys), scene), (row.reference(), precise)):
            leaves = [value.clone().requires_grad_() for value in (given.q, given.k, given.v)]
            q, k, v = leaves
            added = None if bias is None else given.bias
            output = kernel(q, k, v, given.mask(name), bias=added)
            push = (
                torch.linspace(-1, 1, output.numel(), dtype=dtype).view_as(output).to(output.dtype)
            )
            results.append((output, *torch.autograd.grad(output, leaves, push)))
        for value, expected in zip(*results, strict=True):
            assert value.dtype == dtype, name
            assert_same(value, expected, name, more_terms=row.more_terms)


def order_of_keys_is_free(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """Attention is a set operation: permuting keys, values, and with them mask and bias, changes
    nothing."""
    if not row.order_free:
        return
    scene = make_scene("order", square=row.square_only, dtype=dtype)
    order = torch.tensor([3, 0, 6, 2, 5, 1, 4])
    moved = Scene(
        scene.q,
        scene.k[:, :, order],
        scene.v[:, :, order],
        scene.bias[..., order],
        scene.query_segment,
        scene.key_segment[:, order],
        scene.real[:, order],
        scene.table[..., order],
    )
    kernel = row.build(0.0)
    for name in honoured(row, "everything", "explicit", "padding", "segments", "explicit&segments"):
        assert_same(run(kernel, moved, name, None), run(kernel, scene, name, None), name)
        if row.takes_bias:
            assert_same(
                run(kernel, moved, name, moved.bias), run(kernel, scene, name, scene.bias), name
            )


def prepared_masks_say_the_same(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """Preparing a mask once for a stack of layers changes nothing, and a prepared mask can still be
    combined with others."""
    kernel = row.build(0.0)
    for name, scene, bias in cases(row, "prepare", dtype):
        prepared = kernel.prepare(
            scene.mask(name), scene.num_queries, scene.num_keys, scene.q.device
        )
        assert_same(
            kernel(scene.q, scene.k, scene.v, prepared, bias=bias),
            run(kernel, scene, name, bias),
            name,
        )
        if "padding" not in row.refuses:
            joined = kernel(scene.q, scene.k, scene.v, prepared & scene.mask("padding"), bias=bias)
            assert_same(
                joined, run(kernel, scene, f"{name}&padding", bias), f"prepared {name} & padding"
            )


def bias_may_be_shared(row: LawCase, dtype: torch.dtype = torch.float64) -> None:
    """A bias with one row or one head is broadcast to all of them."""
    if not row.takes_bias:
        return
    scene, kernel = make_scene("bias", square=row.square_only, dtype=dtype), row.build(0.0)
    for bias in (scene.bias[:1], scene.bias[:, :1], scene.bias[:, :, :1], scene.bias[:1, :1, :1]):
        for name in ("everything", "causal", "padding"):
            if name not in row.refuses:
                shared = run(kernel, scene, name, bias)
                assert_same(
                    shared, run(kernel, scene, name, bias.expand_as(scene.bias).clone()), name
                )


def dropout_keeps_the_mean(row: LawCase) -> None:
    """Dropout is applied in training only, and on average changes nothing."""
    scene = scene_for(row, "dropout").to(torch.float32)
    copies = 4096 // BATCH
    q, k, v = (value[:1].expand(copies, -1, -1, -1) for value in (scene.q, scene.k, scene.v))
    kernel = row.build(0.5)
    calm = kernel(q, k, v, Mask())
    noisy = kernel(q, k, v, Mask(), training=True)
    assert_same(calm, row.build(0.0)(q, k, v, Mask()))
    assert (noisy - calm).abs().mean() > 0.1
    error = noisy.std(0) / copies**0.5
    assert ((noisy.mean(0) - calm[0]).abs() < 6 * error + 1e-6).all()


def refusals_name_a_way_out(row: LawCase) -> None:
    """A mask or bias that is not supported raises an error that names one which supports it."""
    scene = make_scene("refusal", square=row.square_only)
    if not row.takes_bias:
        able = [kind.word() for kind in BUILT_IN if "distances" in kind.model_validate({}).takes]
        with refused(UsageError, able):
            run(row.build(0.0), scene, "everything", scene.bias)
    for name in row.refuses:
        able = [kind.word() for kind in BUILT_IN if name in kind.masks]
        with refused(MaskError, able):
            run(row.build(0.0), scene, name, None)


LAWS: tuple[Callable[[LawCase], None], ...] = (
    hidden_keys_cannot_leak,
    empty_row_gives_zeros,
    minus_infinity_hides,
    batched_is_one_by_one,
    gradients_hold,
    stepping_is_the_whole,
    degenerate_case_is_exact,
    order_of_keys_is_free,
    prepared_masks_say_the_same,
    packed_is_one_by_one,
    padded_is_one_by_one,
    bias_may_be_shared,
    dropout_keeps_the_mean,
    refusals_name_a_way_out,
)

LAWS_OF_EVERY_TYPE: tuple[Callable[[LawCase, torch.dtype], None], ...] = (
    hidden_keys_cannot_leak,
    empty_row_gives_zeros,
    minus_infinity_hides,
    batched_is_one_by_one,
    stepping_is_the_whole,
    degenerate_case_is_exact,
    order_of_keys_is_free,
    prepared_masks_say_the_same,
    packed_is_one_by_one,
    padded_is_one_by_one,
    bias_may_be_shared,
)
"""The laws that are also checked in float32 and bfloat16. The others need double precision (finite
differences), choose the type themselves, or do not depend on it."""
