"""Prints the output of commands for people: wrapped lines, tables, progress, reports."""
