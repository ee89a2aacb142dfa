"""What is in a run, a bundle or a machine: `headwise describe` and `headwise doctor`."""
