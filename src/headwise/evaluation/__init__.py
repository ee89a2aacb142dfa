"""Evaluation: how good outputs are (`translation.py`), how sure we can be (`significance.py`),
where attention lies (`alignment.py`).
"""
