"""Parallel text for translation: reading, filtering, learning tokenizers, storing token ids."""
