"""What translators are called and consist of; this file does not load torch."""

from headwise.tasks.accepted_models import AcceptedModels
from headwise.tasks.bundle_form import BundleForm

FORM = BundleForm(("a translator", "翻译模型"), "pocket", is_demo=True)
TRANSLATORS = AcceptedModels.of(FORM)
