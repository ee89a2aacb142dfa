"""Parses the options of commands, and checks the files that they name before a command runs."""
