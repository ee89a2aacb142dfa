"""How a model learns: losses, schedules, optimiser, the training loop, and runs that can be
resumed.
"""
