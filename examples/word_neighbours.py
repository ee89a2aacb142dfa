"""Word vectors in twenty lines: two classes of words that never meet, told apart by the company
they keep.

python examples/word_neighbours.py
"""

import random

from headwise.data.text.word_stream import read_words
from headwise.models.vector_space import VectorSpace
from headwise.tasks.word_vectors.learning import learn_word_vectors
from headwise.tasks.word_vectors.recipe import WordVectorRecipe

draw = random.Random(1)
kinds = (["dog", "cat", "horse", "cow"], ["saw", "axe", "drill", "plane"])
sentences = [draw.choices(draw.choice(kinds), k=6) for _ in range(2000)]
recipe = WordVectorRecipe(
    task="word_vectors",
    data={"train": "unused"},
    model={"dim": 10, "window": 3},
    training={"subsample": 0, "threads": 1, "epochs": 3, "rate": 0.05},
)
stream = read_words(sentences, min_count=1)
space = VectorSpace(stream.words, learn_word_vectors(stream, recipe).inputs.numpy())
for word in ("dog", "saw"):
    print(
        word,
        "is near",
        *(f"{near.word} {near.cosine:.2f}" for near in space.nearest(word, num_words=4)),
    )
