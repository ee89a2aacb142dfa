"""Forms of trained layers that are used for inference only: int8, fp16, prepacked, fused."""
