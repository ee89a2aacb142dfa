"""Text to numbers and back: pieces of words, words, characters."""
