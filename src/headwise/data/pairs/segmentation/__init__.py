"""Sub-word regularisation: sentences that are cut into other pieces each time they are seen."""
