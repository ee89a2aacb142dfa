"""Word alignment learned from sentence pairs: which source token a target token translates."""
