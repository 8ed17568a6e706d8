"""Several processes on one run: who takes part, what they agree on, and how one notices that another is gone."""
