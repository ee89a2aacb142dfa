"""How a model learns: loss, schedule, optimiser, the loop around them, and a run that survives
being killed.
"""
