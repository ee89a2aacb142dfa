"""Faster forms of trained layers, for inference only: int8, fp16, prepacked, fused."""
