"""Shared code of the kernels in linear time: feature maps and products under a mask."""
