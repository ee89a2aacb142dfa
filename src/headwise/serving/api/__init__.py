"""The routes of the server, one file a subject; each has a `router`, and `app.py` lists them."""
