"""Handles HTTP: connections and their limits, checks of a request before its route, keys, error
replies.
"""
