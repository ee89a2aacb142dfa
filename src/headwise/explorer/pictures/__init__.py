"""Pictures of what `explorer/data` computes: PNG and SVG by matplotlib, and one HTML page."""
