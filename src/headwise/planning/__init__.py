"""Predicts what a training needs before it starts: memory, time, disk, scaling over devices."""
