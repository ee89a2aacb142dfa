"""Bodies of requests and replies as pydantic models, with the limits of their fields."""
