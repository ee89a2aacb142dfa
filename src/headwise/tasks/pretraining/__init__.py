"""Trains encoders on plain text (BERT, ELMo), and starts classifiers and taggers from them."""
