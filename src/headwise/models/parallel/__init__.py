"""Non-autoregressive translators: all target positions at once (docs/decisions, number 33)."""
