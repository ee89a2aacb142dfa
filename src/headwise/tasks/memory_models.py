"""Which models can have a memory (memory_building.py reads with them); this file does not load
torch.
"""

from headwise.tasks.accepted_models import AcceptedModels
from headwise.tasks.language.form import FORM as LANGUAGE_FORM
from headwise.tasks.translation.form import FORM as TRANSLATION_FORM

MEMORY_MODELS = AcceptedModels(
    (TRANSLATION_FORM, LANGUAGE_FORM),
    ("a translator or a language model", "翻译模型或语言模型"),
    "ptb-lstm",
    why_others=(
        "a memory is asked for one token after the other",
        "记忆按词元逐个查询",
    ),
)
