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


class SobolevCircle:
    """The H^s flow of mean[0.025 u_x² + u⁴/4 − F u] on 15 points of the circle, exact and discretised, in numpy."""

    n = 15
    x = 2 * np.pi * np.arange(15) / 15
    wave = np.fft.fftfreq(15, 1 / 15)
    F = np.cos(x) + 0.5 * np.sin(2 * x)
    rho0 = 0.8 * np.sin(x) + 0.2

    def __init__(self, s, beta=0.2):
        self.b = beta
        series = sum(self.wave ** (2 * i) for i in range(abs(s) + 1))
        self.inverse = 1 / series if s >= 0 else series

    def beta(self, t):
        return self.b / (1 + 0.3 * t)

    def beta_dot(self, t):
        return -0.3 * self.b / (1 + 0.3 * t) ** 2

    def gamma(self, t):
        return 1 + 0.2 / t

    def force(self, rho):
        return np.fft.ifft(0.05 * self.wave**2 * np.fft.fft(rho)).real + rho**3 - self.F

    def sharpen(self, Phi):
        return np.fft.ifft(self.inverse * np.fft.fft(Phi)).real

    def exact(self, t0, t1):
        """ρ(t₁) of the flow in first-order form, α = 3/t."""

        def field(t, y):
            rho, Psi = y[: self.n], y[self.n :]
            f, b = self.force(rho), self.beta(t)
            return np.concatenate(
                [self.sharpen(Psi - b * f), -3 / t * Psi - (self.gamma(t) - self.beta_dot(t) - 3 / t * b) * f]
            )

        return integrate(field, np.concatenate([self.rho0, self.beta(t0) * self.force(self.rho0)]), t0, t1)[0, : self.n]

    def scheme(self, h, t0, steps, printed_form=False):
        """ρ after `steps` steps: Φ ← μΦ − β_prev (f − f_prev) − hγf, or the paper's L² form with analytic β̇."""
        rho, t, b_prev, f_prev, Phi = self.rho0, t0, self.beta(t0), self.force(self.rho0), np.zeros(self.n)
        for k in range(steps):
            f, b, mu = self.force(rho), self.beta(t), 1 - h * 3 / t
            if printed_form and k:
                Phi = mu * (Phi + b_prev * f_prev) - (mu * b + h * (self.gamma(t) - self.beta_dot(t))) * f
            else:
                Phi = mu * Phi - b_prev * (f - f_prev) - h * self.gamma(t) * f
            rho, t, b_prev, f_prev = rho + h * self.sharpen(Phi), t + h, b, f
        return rho


def power_oscillator(p, alpha, times):
    """|s|^p along s̈ + (α/t) ṡ + p |s|^(p−1) sgn s = 0 from s(1) = 1, ṡ(1) = 0."""

    def field(t, y):
        return [y[1], -alpha / t * y[1] - p * abs(y[0]) ** (p - 1) * np.sign(y[0])]

    return np.abs(integrate(field, [1.0, 0.0], 1.0, times[-1], times, rtol=1e-9)[:, 0]) ** p
