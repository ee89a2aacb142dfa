"""Three networks guess the next word, in a loop of your own: the neural n-gram, an LSTM and a GPT.

python examples/language_models.py
"""

import torch

from headwise.data.text.text_batches import pad_lines
from headwise.models import (
    DecoderOnlySettings,
    NeuralNgramSettings,
    RecurrentSettings,
    build_language_model,
)
from headwise.pocket import sentences
from headwise.tasks.language.language_model import LanguageModel
from headwise.tasks.language.neural_token_model import NeuralTokenModel
from headwise.text.word_tokenizer import learn_words

text = [sentence.text("en") for sentence in sentences("train", 960, seed=0)]
tokenizer = learn_words(text, size=3000, min_count=1, lowercase=True)
for settings in (
    NeuralNgramSettings(dim=32),
    RecurrentSettings(dim=64),
    DecoderOnlySettings(dim=64, layers=1),
):
    model = build_language_model(
        settings, size=tokenizer.size, generator=torch.Generator().manual_seed(1)
    )
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(60):
        # 1 begins a sentence.
        batch = pad_lines(tokenizer.encode_batch(text[step * 16 : step * 16 + 16]), first=1)
        read = model(batch.tokens)
        # An LSTM also gives the state it ends with.
        hidden = read[0] if isinstance(read, tuple) else read
        loss = torch.nn.functional.cross_entropy(
            model.output(hidden).mT, batch.targets, ignore_index=0
        )
        optimizer.zero_grad(), loss.backward(), optimizer.step()
    trained = LanguageModel(tokenizer, NeuralTokenModel(model.eval(), first=1, context=64))
    print(
        settings.kind,
        [
            f"{one.text} {one.log_probability:.1f}"
            for one in trained.predict("the dog ____", count=3)
        ],
    )
