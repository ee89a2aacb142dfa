"""Generation that computes all positions of a target at once."""
