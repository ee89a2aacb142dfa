"""Text with labels: one label a text, one tag a word, or one sense an occurrence."""
