"""Finds out what is in a run, a saved model or a machine, for `headwise describe` and
`headwise doctor`.
"""
