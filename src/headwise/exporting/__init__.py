"""Exports trained models to the formats of other programs: CTranslate2 and ARPA files."""
