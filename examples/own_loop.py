"""Parts by themselves, in a loop of your own: a small encoder-decoder learns to turn sequences
round."""

import torch

from headwise.models.choices import (
    DecoderSettings,
    EncoderDecoderSettings,
    StackSettings,
    build_model,
)

settings = EncoderDecoderSettings(
    dim=32, encoder=StackSettings(layers=1, heads=4), decoder=DecoderSettings(layers=1, heads=4)
)
generator = torch.Generator().manual_seed(1)
model = build_model(settings, source_size=12, target_size=12, generator=generator)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for step in range(201):
    source = torch.randint(3, 12, (64, 5), generator=generator)
    target = source.flip(1)
    # 1 begins a sentence.
    begun = torch.cat([torch.ones(64, 1, dtype=torch.long), target[:, :-1]], dim=1)
    ones, places = torch.ones_like(source), torch.arange(5).expand(64, 5)
    where = {
        "source_segment": ones,
        "target_segment": ones,
        "source_position": places,
        "target_position": places,
    }
    logits = model.logits(model(source, begun, **where))
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten())
    optimizer.zero_grad(), loss.backward(), optimizer.step()
    if step % 100 == 0:
        print(
            f"step {step}: loss {loss:.3f}, right "
            f"{(logits.argmax(-1) == target).float().mean():.1%}"
        )
