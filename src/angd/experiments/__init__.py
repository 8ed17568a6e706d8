"""Experiments: what can be run by name, and how its results are shown."""
