"""The kinds of sentences of the pocket corpus: a module for each theme, and a table of them all."""
