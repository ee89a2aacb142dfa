"""Trains word vectors (word2vec), scores them, and reads and writes their files."""
