"""Rules about the next token: constraints, forbidden and required phrases, prefixes and lengths."""
