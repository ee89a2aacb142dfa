"""Small made-up text in two languages, drawn at random: enough words to learn a vocabulary from."""

from headwise.randomness import numpy_generator

ENGLISH = [
    "the",
    "a",
    "small",
    "big",
    "red",
    "old",
    "house",
    "tree",
    "river",
    "cat",
    "dog",
    "bird",
    "sees",
    "likes",
    "finds",
    "near",
    "behind",
    "under",
    "and",
    "never",
]
SYLLABLES = ["ka", "lo", "mi", "ten", "dra", "shu", "po", "ver", "nis", "gol"]
ENGLISH += [a + b + c for a in SYLLABLES for b in SYLLABLES[::2] for c in SYLLABLES[1::3]]
CHINESE = [
    "小",
    "大",
    "红",
    "旧",
    "房子",
    "树",
    "河",
    "猫",
    "狗",
    "鸟",
    "看见",
    "喜欢",
    "找到",
    "附近",
    "后面",
    "下面",
    "和",
    "从不",
    "的",
    "了",
]


def draw_lines(
    words: list[str], count: int, *, key: str, separator: str = " ", longest: int = 13
) -> list[str]:
    generator = numpy_generator("lines", key)
    lengths = generator.integers(2, longest + 1, count)
    return [
        separator.join(words[i] for i in generator.integers(0, len(words), n)) + "."
        for n in lengths
    ]


def english(count: int = 400) -> list[str]:
    return draw_lines(ENGLISH, count, key="en")


def chinese(count: int = 400) -> list[str]:
    return draw_lines(CHINESE, count, key="zh", separator="")
