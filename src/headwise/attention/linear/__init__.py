"""Code that the attention kernels of linear cost share (linear attention, Performer, Linformer):
feature maps, and products of matrices under a mask.
"""
