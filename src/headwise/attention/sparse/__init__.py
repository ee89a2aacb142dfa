"""Code that the sparse attention kernels share: fetching only the keys that a query needs, hash
buckets, and a fused form for CUDA.
"""
