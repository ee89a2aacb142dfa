"""What a training will take, said before it starts: memory, time, disk, and how it spreads over
machines.
"""
