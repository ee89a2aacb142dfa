"""The losses of non-autoregressive translators, whose decoder writes all tokens at once."""
