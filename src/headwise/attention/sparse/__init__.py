"""Shared code of the sparse kernels: gathered blocks, hash buckets, and a fused form."""
