"""Training of models that write all words at once: losses, and the experts that they imitate."""
