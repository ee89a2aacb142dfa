"""The engines that run a search over a stepper: plain, recorded (as a CUDA graph), continuous."""
