"""Rewards: what a translation is worth, for training on whole translations (training/sequence/)."""
