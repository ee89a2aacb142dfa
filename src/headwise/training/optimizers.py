"""The optimiser: AdamW, gradient clipping, a guard against NaN, and which weights decay.

    m ← β₁ m + (1 - β₁) g      v ← β₂ v + (1 - β₂) g²
    w ← w - rate · (m̂ / (√v̂ + ε) + decay · w)

w is a weight, g its gradient; m̂ and v̂ are m and v corrected for their start at 0.

| parameter                                         | decays | why                             |
|---------------------------------------------------|--------|---------------------------------|
| matrices of linear maps, kernels of convolutions  | yes    | the norms undo their scale      |
| biases, gains of norms, any vector or scalar      | no     | a smaller gain loses the signal |
| embeddings (tied ones too) and positions          | no     | rows of rare words would vanish |

The gradient of the *mean* loss is clipped to a norm (Pascanu et al. 2013). An update whose loss or
gradient is not finite is skipped inside the fused kernel through `found_inf`, the switch that loss
scaling uses, so that the host never waits for a GPU. Papers: Kingma & Ba 2015; Loshchilov & Hutter
2019. Tested against the formula written out, and for every row of the table.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn

from headwise.training.choices import AdamWOptimizer
from headwise.training.freezing import rate_scales
from headwise.weights import local_part


def decays(name: str, parameter: Tensor, *, module: nn.Module | None = None) -> bool:
    """The table above; `module` is the one that owns the parameter."""
    embeds = isinstance(module, nn.Embedding | nn.EmbeddingBag) or any(
        "embedding" in part or part in ("position", "positions") for part in name.lower().split(".")
    )
    return parameter.ndim >= 2 and not embeds


def decaying_names(module: nn.Module) -> set[str]:
    """Names of the parameters that decay; a tied weight decays only if all its names do."""
    spared: set[int] = set()
    for owner_name, owner in module.named_modules():
        for name, parameter in owner.named_parameters(recurse=False):
            if not decays(f"{owner_name}.{name}", parameter, module=owner):
                spared.add(id(parameter))
    return {name for name, parameter in module.named_parameters() if id(parameter) not in spared}


def build_optimizer(
    settings: AdamWOptimizer, module: nn.Module, *, layer_decay: float = 1.0
) -> torch.optim.AdamW:
    """AdamW over the trainable parameters, in two groups for each learning rate.

    It is always fused, because the NaN guard needs that kernel.
    """
    decaying = decaying_names(module)
    learning = [
        (name, parameter)
        for name, parameter in module.named_parameters()
        if parameter.requires_grad
    ]
    scales = rate_scales(module, layer_decay)
    groups: list[dict[str, Any]] = []
    for scale in sorted({scales[name] for name, _ in learning}, reverse=True):
        here = [(name, parameter) for name, parameter in learning if scales[name] == scale]
        for decays_here, decay in ((True, settings.weight_decay), (False, 0.0)):
            chosen = [parameter for name, parameter in here if (name in decaying) is decays_here]
            groups += [{"params": chosen, "weight_decay": decay, "scale": scale}] if chosen else []
    # On a GPU the rate is a number in its memory, so that an update can be recorded once and
    # replayed at any rate.
    device = learning[0][1].device
    on_gpu = device.type == "cuda"
    for group in groups:
        group["lr"] = torch.zeros((), device=device) if on_gpu else 0.0
    return torch.optim.AdamW(
        groups,
        lr=0.0 if not on_gpu else torch.zeros((), device=device),
        betas=settings.betas,
        eps=settings.eps,
        fused=True,
        capturable=on_gpu,
    )


def set_learning_rate(optimizer: torch.optim.AdamW, learning_rate: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], Tensor):
            group["lr"].fill_(learning_rate * group["scale"])
        else:
            group["lr"] = learning_rate * group["scale"]


def measure_gradients(
    parameters: Iterable[Tensor],
    *,
    divisor: Tensor,
    clip: float | None,
    add_up_norm: Callable[[Tensor], Tensor] | None = None,
) -> tuple[Tensor, Tensor]:
    """The norm of the gradient of the mean loss, and the divisor that turns gradients of the *sum*
    into clipped gradients of the mean.

    Both stay on the device, and no gradient is written: the optimiser's kernel divides as it reads.
    Where processes hold parts of the gradients, `add_up_norm` computes the norm of the whole from
    the norm of the part.
    """
    gradients = [
        local_part(parameter.grad) for parameter in parameters if parameter.grad is not None
    ]
    norm = torch.nn.utils.get_total_norm(gradients)
    norm = (norm if add_up_norm is None else add_up_norm(norm)) / divisor
    if clip is None:
        return norm, divisor
    return norm, divisor * ((norm + 1e-6) / clip).clamp(min=1.0)


def step_unless(optimizer: torch.optim.AdamW, *, skip: Tensor, divisor: Tensor) -> None:
    """One update; nothing changes (moments and step count included) if `skip` is true."""
    # The two switches that loss scaling uses; `fused` kernels know them.
    optimizer.grad_scale = divisor.to(torch.float32).reshape(())  # type: ignore[attr-defined]
    optimizer.found_inf = skip.to(torch.float32).reshape(())  # type: ignore[attr-defined]
    optimizer.step()
