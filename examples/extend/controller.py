"""A controller of your own: damping that falls threefold after a step which lowers the loss, and grows tenfold if not.

    angd run heat energy --controller examples/extend/controller.py:Threefold --steps 20

`init` gives what it carries from step to step, `damping` the λ to solve with, and `adjust` decides about the step.
"""

import equinox as eqx
import jax.numpy as jnp

import angd


class Threefold(angd.AbstractController):
    """λ / 3 after success; 10 λ, and no step, otherwise."""

    @property
    def compares_losses(self):
        return True

    def init(self, damping):
        return damping

    def damping(self, state, damping):
        return state

    def adjust(self, proposal, trial, state):
        lower = proposal.loss(proposal.step(trial)) < proposal.present()
        trial = eqx.tree_at(lambda t: t.accepted, trial, trial.accepted & lower)
        return trial, jnp.where(lower, state / 3, state * 10)
