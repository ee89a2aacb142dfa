"""The attention kernels, one file each. A kernel is one way to compute attention, a function of
queries, keys, values and a mask.
"""
