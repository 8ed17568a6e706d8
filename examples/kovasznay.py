"""Flow behind a grid: Navier–Stokes at Reynolds number 40, Kovasznay's solution.

Three unknowns are three outputs of one network; the equation returns three.
Run it: `angd run examples/kovasznay.py --seconds 60`.
"""

import jax.numpy as jnp

import angd
from angd.problems.pinn import Box, Condition, Faces, Network, Problem, d

RE = 40.0
RATE = RE / 2 - (RE**2 / 4 + 4 * jnp.pi**2) ** 0.5
box = Box((-0.5, 1.0), (-0.5, 0.5))  # x, y


def exact(z):
    decay, angle = jnp.exp(RATE * z[0]), 2 * jnp.pi * z[1]
    along, across = (
        1 - decay * jnp.cos(angle),
        RATE / (2 * jnp.pi) * decay * jnp.sin(angle),
    )
    return jnp.stack([along, across, (1 - decay**2) / 2])


def equation(f, z):
    (u, v, _), (u_x, v_x, p_x), (u_y, v_y, p_y) = f(z), d(f, 0)(z), d(f, 1)(z)
    bend = d(f, 0, 0)(z) + d(f, 1, 1)(z)
    momentum_x = u * u_x + v * u_y + p_x - bend[0] / RE
    momentum_y = u * v_x + v * v_y + p_y - bend[1] / RE
    return jnp.stack([momentum_x, momentum_y, u_x + v_y])


faces = Faces(
    tuple(box.face(axis, side) for axis in (0, 1) for side in ("lower", "upper"))
)
edge = Condition(faces, lambda f, z: f(z) - exact(z), weight=10.0)
problem = Problem(Network((16, 16), outputs=3), box, equation, {"edge": edge})
known = {"exact": exact, "fields": ("u", "v", "p"), "coordinates": ("x", "y")}
task = angd.Task(problem, name="kovasznay", **known)
