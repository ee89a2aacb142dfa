"""The limits of the fields of a request. The OpenAPI description states them too.

Limits that the operator can change are in `http/server_settings.py`. Tested: each limit at, below
and far above its value.
"""

MAX_TEXTS = 32
"""Texts in a request."""
MAX_CHARACTERS = 2_000
"""Characters in a text."""
MAX_TOKENS = 512
"""Tokens in a sentence."""
MAX_SENTENCES = 512
"""Sentences in a request, after splitting."""
MAX_PHRASES = 8
"""Forbidden phrases in a request, and required ones."""
MAX_PHRASE_CHARACTERS = 50
MAX_PHRASE_BYTES = 256
"""Bytes of UTF-8 of all phrases of a request. Compiling their rules takes up to 0.2 s (decision
31), during which other requests wait."""
MAX_BEAM = 8
MAX_BEST = 8
MAX_TOP = 10
"""Alternatives shown for each step of a trace."""
MAX_REPEATS = 20
"""Measurements of the time of one sentence."""
MAX_WORDINGS = 32
"""Sentences with two right translations in a request."""
MAX_EXAMPLES = 12
"""Stored examples that are told for each token of a translation."""
MAX_EXAMPLE_CHARACTERS = 300
"""Of a stored sentence, on each side of the word that is shown."""
MAX_LIKELY = 12
"""Likely first tokens that are offered as wrong beginnings."""
MAX_BEGINNING_CHARACTERS = 60
"""Of a wrong beginning that is typed."""
MAX_BEGINNING_TOKENS = 8
MAX_TRACE_VALUES = 4_000_000
"""Attention weights in one reply: layers × heads × source × target."""
