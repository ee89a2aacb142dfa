"""From text to token ids and back: sentencepiece, words, characters; boundaries, cleaning,
detection.
"""
