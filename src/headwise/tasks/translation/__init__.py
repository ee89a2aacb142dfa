"""Translation: its recipe, its training, and the translator that a user holds."""
