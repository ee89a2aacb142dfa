"""Shows a progress bar while a vocabulary is learnt: the callback that tasks give to
`learn_tokenizer`.
"""

from collections.abc import Callable

from headwise.language import say
from headwise.tasks.events import Events


def watch_vocabulary(watcher: Events) -> Callable[[float], None]:
    """The callback: `learn_tokenizer` calls it with the share that is done."""
    return lambda share: watcher.share(say("learning the vocabulary", "正在学习词表"), share)
