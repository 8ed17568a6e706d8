# %% [markdown]
# # Your own metric
#
# A metric says how long a change of the function is. Natural gradients go down the loss as steeply
# as that length allows, so the metric decides which changes are cheap. Perhaps you care for slopes
# more than for values, or for one half of the domain; then say so.
#
# Here is the length $\int m\,\sigma^2+|\nabla\sigma|^2$ of a change σ, with a mass m. With m = 1 it
# is $H^1$; with a small m it is close to the seminorm of gradients, for which a constant would be
# free. The metric takes ten lines, of which one is the formula.

# %%
import equinox as eqx
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
import angd


class MassAndGradient(angd.AbstractSobolev):
    """∫ m σ² + |∇σ|²."""

    mass: float = 1.0
    on: str = eqx.field(static=True, default="interior")

    def features(self, u, x):
        return jnp.append(jnp.ravel(jax.grad(u)(x)), self.mass**0.5 * u(x))


# %% [markdown]
# 1. **`features`** is all that a metric of Sobolev type needs: the vector at one point whose squared
#    length is integrated. `u` is a function, so derivatives of any order are there for the asking.
#    From this line come the rows of the linear system, the transport of momentum from step to step
#    (a Jacobian–vector product of the same vector) and Hessian-driven damping.
# 2. **Numbers are fields** of the class. Give an array, `MassAndGradient(mass=jnp.asarray(0.1))`,
#    and another value does not compile anew. What decides about shapes is `static`; `on` names the
#    samples that carry the metric when a loss has several kinds.
#
# ## A problem to try it on
#
# Regression to a sine. Nothing in the problem knows about the metric.


# %%
class Regression(eqx.Module):
    def field(self, params, x):
        return jnp.tanh(params["w"] @ x) @ params["a"]

    def loss(self, params, samples):
        u = jax.vmap(self.field, (None, 0))(params, samples.x)
        return samples.mean((u - jnp.sin(samples.x[:, 0])) ** 2) / 2


weights = jnp.array([[0.5, 0.1], [-1.0, 0.3], [1.5, -0.2]])
start = {"w": weights, "a": jnp.array([0.3, 0.7, -0.2])}
samples = angd.Samples(jax.random.normal(jax.random.key(0), (30, 2)))
flow = angd.ARGFlow.momentum(mu=0.5, rate=0.05, beta=0.05)


def train(metric, steps=10):
    opt = angd.ANGD(flow, metric, angd.Normal(1e-4))
    return angd.fit(
        Regression(),
        opt,
        params=start,
        samples=samples,
        steps=steps,
        progress=False,
    )


for mass in (0.1, 1.0, 10.0):
    loss = train(MassAndGradient(mass=mass)).history["loss"]
    print(f"m = {mass:4}: loss {loss[0]:.4f} → {loss[-1]:.4f}")
    assert loss[-1] < loss[0]

# %% [markdown]
# ## A test
#
# With m = 1 the metric must agree with the built-in `Hs(1)`. Whenever a metric of yours contains a
# known one, test that first.

# %%
mine, built_in = train(MassAndGradient()).params, train(angd.Hs(1)).params
assert all(jnp.allclose(mine[name], built_in[name], atol=1e-9) for name in mine)

# %% [markdown]
# Does momentum in your metric mean anything? The method promises: with h → 0 the iterates follow the
# accelerated flow in your metric, and halving h halves the distance. `tests/theory/test_scheme.py`
# has the pattern, for a model of two or three parameters whose flow is solved independently. For a
# metric whose tensor does not depend on ρ, like this one, it follows from the recursion. A metric
# that does depend on ρ, as Fisher–Rao does, needs a correction, and a sign error in it can be seen
# only there ([errata](errata.md)).
#
# ## On a differential equation
#
# The same kind of class works for `angd.problems.pinn` problems, on their interior points. This one
# makes changes at late times dear:


# %%
class LateTimes(angd.AbstractSobolev):
    """∫ (½ + t) σ²."""

    on: str = eqx.field(static=True, default="interior")

    def features(self, u, z):
        return jnp.sqrt(0.5 + z[0]) * jnp.ravel(u(z))


opt = angd.ANGD(
    angd.ARGFlow.momentum(mu=0.8, rate=0.03),
    LateTimes(),
    angd.Normal(1e-3),
    angd.LineSearch(),
)
fit = angd.fit("heat", opt, steps=20, progress=False)
assert fit.history["loss"][-1] < 0.5 * fit.history["loss"][0]

# %% alt="How loss and error of the heat equation fell in the metric of one's own, and the solution"
fit.plot()

# %% [markdown]
# Put the class into a file, and the program uses it in place of L², with everything else as it was:
#
# ```
# angd run heat angd-l2 --metric mine.py:LateTimes
# angd compare heat angd-l2,adam --budget "200 steps"
# ```
#
# Next: [a metric from scratch](extending.md#a-metric-from-scratch), for lengths that are no squares
# of linear operators, and [a manifold of your own](manifolds.md), to see its exact flow.
