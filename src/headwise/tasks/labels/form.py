"""What classifiers and taggers are called and consist of; this file does not load torch."""

from headwise.tasks.accepted_models import AcceptedModels
from headwise.tasks.bundle_form import TOKENIZER, BundleForm

FORM = BundleForm(
    ("a classifier or tagger", "分类或标注模型"), "sst2", parts=(TOKENIZER, "labels.json")
)
LABELLERS = AcceptedModels.of(FORM)
