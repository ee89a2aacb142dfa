"""What the explorer shows, as plain values: traces, tables, curves, run logs. Nothing is drawn."""
