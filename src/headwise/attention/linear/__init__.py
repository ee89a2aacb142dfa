"""What the kernels in linear time share: feature maps and products under a mask."""
