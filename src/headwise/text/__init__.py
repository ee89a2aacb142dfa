"""From text to token ids and back: tokenizers, sentence splitting, cleaning, language detection."""
