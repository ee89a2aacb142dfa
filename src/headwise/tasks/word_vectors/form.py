"""What bundles of word vectors are called and consist of; this file does not load torch."""

from headwise.tasks.accepted_models import AcceptedModels
from headwise.tasks.bundle_form import WORD_VECTORS, BundleForm

FORM = BundleForm(
    ("a bundle of word vectors", "词向量模型"),
    "word-vectors",
    kind=WORD_VECTORS,
    weights_file="vectors.safetensors",
    parts=("words.json",),
)
VECTOR_BUNDLES = AcceptedModels.of(FORM)
