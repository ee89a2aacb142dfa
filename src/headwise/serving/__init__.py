"""A trained bundle behind HTTP: translate, look inside, measure. What the command line does, for
many at once.

    request → limits.py (how much) → keys.py (who) → schemas.py (what) → state.py (a place in the queue)
            → worker.py (one thread a model; equal searches share a batch), for translators in a process of its own (apart.py)
            → reply, or faults.py (why not)

One file a subject: `api/` holds the addresses, the rest what they stand on. `create_app` (app.py)
puts them together.
"""
