"""What the kernels that read some of the keys share: gathered blocks, hash buckets, fused forms."""
