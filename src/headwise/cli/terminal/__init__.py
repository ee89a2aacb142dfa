"""What commands write for people: wrapped lines, tables, progress, reports."""
