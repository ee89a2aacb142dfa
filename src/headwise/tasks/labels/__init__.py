"""Text classification and sequence tagging."""
