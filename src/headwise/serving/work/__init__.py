"""The computing side of the server: loaded models, jobs, queues, batches, worker threads and
worker processes.
"""
