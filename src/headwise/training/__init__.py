"""Training: losses, schedules, optimiser, the training loop, and run directories that can be
resumed.
"""
