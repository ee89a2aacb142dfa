"""How a search runs over a stepper: plainly, recorded in static buffers, or continuously."""
