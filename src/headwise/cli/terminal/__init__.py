"""Output of the commands for people: wrapped lines, tables, progress, reports."""
