"""Known public corpora: where they come from, under which licence, and checksums of their files."""
