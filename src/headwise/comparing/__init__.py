"""Compares recipes, attention kernels, language models and finished translators, for
`headwise compare`.
"""
