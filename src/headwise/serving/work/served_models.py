"""Which models can be served (loaded_models.py loads them); this file does not load torch."""

from headwise.tasks.accepted_models import AcceptedModels
from headwise.tasks.labels.form import FORM as LABEL_FORM
from headwise.tasks.language.form import FORM as LANGUAGE_FORM
from headwise.tasks.translation.form import FORM as TRANSLATION_FORM
from headwise.tasks.word_vectors.form import FORM as VECTOR_FORM

SERVED_MODELS = AcceptedModels(
    (TRANSLATION_FORM, LANGUAGE_FORM, VECTOR_FORM, LABEL_FORM),
    ("a model that can be served", "可用于 serve 的模型"),
    "pocket",
    is_demo=True,
)
