"""Independent judges: the flows of the acceptance tests as plain numpy ODEs, integrated by scipy's DOP853."""

import numpy as np
from scipy.integrate import solve_ivp


def integrate(field, y0, t0, t1, times=None, rtol=1e-11):
    """The solution of y' = field(t, y) at `times` (default: at t1 only)."""
    times = [t1] if times is None else times
    return solve_ivp(field, (t0, t1), y0, "DOP853", t_eval=times, rtol=rtol, atol=rtol / 10).y.T


def gaussian_line(t0, t1, m0, s0, sigma, beta):
    """(m, s)(t₁) of the W2 flow of KL(N(m, s²) ‖ N(0, σ²)) with α = 3/t, γ = 1, by its own second-order equations."""

    def field(t, y):
        m, s, m_dot, s_dot = y
        b = beta(t)
        m_ddot = -3 / t * m_dot - b * m_dot / sigma**2 - m / sigma**2
        s_ddot = -3 / t * s_dot - b * (sigma**-2 + s**-2) * s_dot - (s / sigma**2 - 1 / s)
        return [m_dot, s_dot, m_ddot, s_ddot]

    return integrate(field, [m0, s0, 0.0, 0.0], t0, t1)[0, :2]


def sobolev_circle(s, beta, beta_dot, gamma, force, rho0, t0, t1):
    """ρ(t₁) of the H^s flow on the circle in first-order form, with numpy's FFT."""
    n = len(rho0)
    k2 = np.fft.fftfreq(n, 1 / n) ** 2
    series = sum(k2**i for i in range(abs(s) + 1))
    inverse = 1 / series if s >= 0 else series

    def field(t, y):
        rho, Psi = y[:n], y[n:]
        f = force(rho)
        rho_dot = np.fft.ifft(inverse * np.fft.fft(Psi - beta(t) * f)).real
        return np.concatenate([rho_dot, -3 / t * Psi - (gamma(t) - beta_dot(t) - 3 / t * beta(t)) * f])

    return integrate(field, np.concatenate([rho0, beta(t0) * force(rho0)]), t0, t1)[0, :n]


def power_oscillator(p, alpha, times):
    """|s|^p along s̈ + (α/t) ṡ + p |s|^(p−1) sgn s = 0 from s(1) = 1, ṡ(1) = 0."""

    def field(t, y):
        return [y[1], -alpha / t * y[1] - p * abs(y[0]) ** (p - 1) * np.sign(y[0])]

    return np.abs(integrate(field, [1.0, 0.0], 1.0, times[-1], times, rtol=1e-9)[:, 0]) ** p
