"""What may be written next: token constraints, phrases, prefixes and lengths."""
