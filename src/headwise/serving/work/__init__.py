"""What computes: loaded models, jobs, queues, batches, worker threads and worker processes."""
