"""What pre-trained encoders are called and consist of, and which models they stand beside: models
with vectors of words, encoders that others start from, models that predict a word. This file does
not load torch.
"""

from dataclasses import replace

from headwise.tasks.accepted_models import AcceptedModels
from headwise.tasks.bundle_form import BundleForm
from headwise.tasks.labels.form import FORM as LABEL_FORM
from headwise.tasks.language.form import LANGUAGE_MODELS
from headwise.tasks.word_vectors.form import FORM as VECTOR_FORM

MASKED_FORM = BundleForm(
    ("a masked language model", "掩码语言模型"), "english-masked", starts_others=True
)
ELMO_FORM = BundleForm(("an ELMo model", "ELMo 模型"), "english-elmo", starts_others=True)

ENCODERS = AcceptedModels(
    (MASKED_FORM, ELMO_FORM, LABEL_FORM),
    ("a pre-trained encoder", "预训练的编码器"),
    "english-masked",
)
WORD_READERS = AcceptedModels(
    (VECTOR_FORM, *ENCODERS.forms),
    ("a model with vectors of words", "带词向量的模型"),
    "english-elmo",
)
PREDICTORS = replace(LANGUAGE_MODELS, forms=(*LANGUAGE_MODELS.forms, MASKED_FORM))
