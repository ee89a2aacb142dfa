"""One file for each attention kernel: a function of queries, keys, values and a mask."""
