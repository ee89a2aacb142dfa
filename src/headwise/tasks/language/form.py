"""What language models are called and consist of, and why other models give no probabilities; this
file does not load torch.
"""

from headwise.tasks.accepted_models import AcceptedModels
from headwise.tasks.bundle_form import BundleForm

FORM = BundleForm(("a language model", "语言模型"), "ptb-ngram")
WHY_NOT = {
    "masked_language": (
        "it guesses a masked token from both sides and gives no sentence a probability",
        "它从两侧预测被掩码的词元，不给句子概率",
    ),
    "bidirectional_language": (
        "it reads from both ends, and two half sentences do not make the probability of a whole "
        "one",
        "它从两端各读一半，两个半句合不成整句的概率",
    ),
    "word_vectors": ("vectors of single words have no probabilities", "单个词的向量没有概率"),
}
"""Why a model of another task cannot say how likely a text is."""
LANGUAGE_MODELS = AcceptedModels.of(FORM, WHY_NOT)
