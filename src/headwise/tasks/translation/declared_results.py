"""What translation reports: its metrics and the sizes of its data (tasks/declared_results.py)."""

from headwise.tasks.declared_results import Result, Results, mean_loss, perplexity

_GREEDY = (
    "Of the first sentences of the validation set, translated greedily while training; the score "
    "at the end is measured on the whole of it, as the recipe decodes.",
    "训练中以贪心翻译验证集开头若干句所得；最终分数在整个验证集上按配方的解码方式计算。",
)

METRICS: Results = {
    "loss": mean_loss(),
    "perplexity": perplexity(),
    "bleu": Result(("BLEU", "BLEU"), "score", "higher", help=_GREEDY),
    "chrf": Result(("chrF", "chrF"), "score", "higher", help=_GREEDY),
    "ter": Result(("TER", "TER"), "score", "lower", is_validated=False),
}
RESULTS: Results = {"pairs": Result(("sentence pairs", "句对"))}
