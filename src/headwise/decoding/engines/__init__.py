"""The engines, which run a search on a model step by step: plain, recorded (the step is a CUDA
graph), and continuous (sentences enter at any time).
"""
