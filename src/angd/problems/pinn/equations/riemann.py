"""The exact solution of Riemann's problem for an ideal gas, from two states that meet at x = 0 (Toro 2009, chapter 4).

Between a left and a right wave, each a shock or a rarefaction, pressure p* and velocity u* are constant; p* is the root
of f_L(p) + f_R(p) + u_R − u_L, an increasing and concave function of p.
"""

import numpy as np

GAMMA = 1.4
State = tuple[float, float, float]  # ρ, u, p


def middle(left: State, right: State) -> tuple[float, float]:
    """p* and u* between the waves.

    **Arguments:**

    - `left`: (ρ, u, p).
    - `right`: (ρ, u, p).
    """
    p = 1e-8 * min(left[2], right[2])  # from below, where Newton's method on a concave function is monotone
    for _ in range(100):
        (f, df), (g, dg) = _wave(p, left), _wave(p, right)
        change = (f + g + right[1] - left[1]) / (df + dg)
        p -= change
        if abs(change) < 1e-15 * p:
            break
    f, g = _wave(p, left)[0], _wave(p, right)[0]
    return p, 0.5 * (left[1] + right[1] + g - f)


def solution(left: State, right: State, speed: np.ndarray) -> np.ndarray:
    """(ρ, u, p) at speeds x/t, shape (n, 3).

    **Arguments:**

    - `left`: (ρ, u, p).
    - `right`: (ρ, u, p).
    - `speed`: x/t, shape (n,).
    """
    p, u = middle(left, right)
    rho, velocity, pressure = right
    mirrored = _left_half((rho, -velocity, pressure), p, -u, -speed)
    return np.where((speed < u)[:, None], _left_half(left, p, u, speed), mirrored * np.array([[1, -1, 1]]))


def _wave(p: float, state: State) -> tuple[float, float]:
    """The change of velocity through one wave, and its slope in p."""
    rho, _, before = state
    if p > before:  # a shock
        a, b = 2 / ((GAMMA + 1) * rho), (GAMMA - 1) / (GAMMA + 1) * before
        root = (a / (p + b)) ** 0.5
        return (p - before) * root, root * (1 - (p - before) / (2 * (p + b)))
    sound, power = (GAMMA * before / rho) ** 0.5, (GAMMA - 1) / (2 * GAMMA)
    change = 2 * sound / (GAMMA - 1) * ((p / before) ** power - 1)
    return change, (p / before) ** (-(GAMMA + 1) / (2 * GAMMA)) / (rho * sound)


def _left_half(state: State, p: float, u: float, speed: np.ndarray) -> np.ndarray:
    """Left of the contact: undisturbed, then a shock or a fan, then the middle state."""
    rho, velocity, before = state
    sound, ratio = (GAMMA * before / rho) ** 0.5, (GAMMA - 1) / (GAMMA + 1)
    s = speed[:, None]
    if p > before:
        front = velocity - sound * ((GAMMA + 1) / (2 * GAMMA) * p / before + (GAMMA - 1) / (2 * GAMMA)) ** 0.5
        density = rho * (p / before + ratio) / (ratio * p / before + 1)
        return np.where(s < front, np.array([state]), np.array([[density, u, p]]))
    density, tail = rho * (p / before) ** (1 / GAMMA), u - sound * (p / before) ** ((GAMMA - 1) / (2 * GAMMA))
    fan = 2 / (GAMMA + 1) + ratio / sound * (velocity - np.clip(speed, velocity - sound, tail))
    inside = np.stack(
        [
            rho * fan ** (2 / (GAMMA - 1)),
            2 / (GAMMA + 1) * (sound + (GAMMA - 1) / 2 * velocity + speed),
            before * fan ** (2 * GAMMA / (GAMMA - 1)),
        ],
        axis=1,
    )
    outside = np.where(s < velocity - sound, np.array([state]), inside)
    return np.where(s > tail, np.array([[density, u, p]]), outside)
