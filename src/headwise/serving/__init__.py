"""Serves models over HTTP: translates, inspects and measures, for many clients at once.

    http/     connections and their limits, checks of a request before its route, keys, errors
    schemas/  the bodies of requests and replies
    api/      the routes, one file a subject
    work/     loaded models, queues, batches, worker threads and worker processes

`uvicorn_server.py` runs the process, `app.py` puts the application together, `server.py` holds what
all requests share, and `state.py` is what a route sees of it. The guide follows one request through
these files: docs/guide/en/29-how-a-request-is-answered.md.
"""
