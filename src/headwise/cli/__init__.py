"""The command line: a command parses its options, calls one function of the library and prints."""
