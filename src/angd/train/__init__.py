"""Training: the loop, runs in folders, checkpoints, sweeps."""
