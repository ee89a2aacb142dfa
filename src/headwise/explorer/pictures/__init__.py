"""Pictures of what `explorer/data` computed: PNG and SVG by matplotlib, and one HTML page."""
