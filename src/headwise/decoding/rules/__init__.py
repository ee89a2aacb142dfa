"""The rules about the output: forbidden and required phrases, prefixes, lengths. They say which
token may come next.
"""
