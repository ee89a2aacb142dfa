"""The values that the explorer shows: traces, tables, curves, run logs. Nothing is drawn here."""
