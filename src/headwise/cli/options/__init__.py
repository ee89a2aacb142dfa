"""The options of commands: the parser, and files that are checked before a command runs."""
