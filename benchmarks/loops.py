"""``python -m benchmarks.loops``: stencils, permuted operands, narrow arrays, small matrices; values and gradients.

Microseconds of processor time per call on one core and one thread, medians of interleaved rounds; the engines' bits are
compared first. jax.jit runs the same programs, if JAX is installed, and its first result is compared by tolerance.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

from benchmarks import measure
from benchmarks.bits import difference
from benchmarks.peers import installed
from benchmarks.terminal import table

Array = np.ndarray[Any, Any]
Program = Callable[..., Any]


def five_points(tw: Any, x: Any) -> Any:
    """Return a step of the heat equation inside of an image, squared and summed."""
    inside = x[1:-1, 1:-1]
    laplace = x[2:, 1:-1] + x[:-2, 1:-1] + x[1:-1, 2:] + x[1:-1, :-2] - 4 * inside
    return ((inside + 0.1 * laplace) ** 2).sum()


def on_a_torus(tw: Any, x: Any) -> Any:
    """Return the same where the image's ends meet."""
    laplace = tw.roll(x, 1, 0) + tw.roll(x, -1, 0) + tw.roll(x, 1, 1) + tw.roll(x, -1, 1) - 4 * x
    return ((x + 0.1 * laplace) ** 2).sum()


def seven_points(tw: Any, x: Any) -> Any:
    """Return a step of the heat equation inside of a volume, squared and summed."""
    inside = x[1:-1, 1:-1, 1:-1]
    across = x[2:, 1:-1, 1:-1] + x[:-2, 1:-1, 1:-1] + x[1:-1, 2:, 1:-1] + x[1:-1, :-2, 1:-1]
    laplace = across + x[1:-1, 1:-1, 2:] + x[1:-1, 1:-1, :-2] - 6 * inside
    return ((inside + 0.1 * laplace) ** 2).sum()


def total_variation(tw: Any, x: Any) -> Any:
    """Return the sum of the squared differences of neighbours."""
    return ((x[1:] - x[:-1]) ** 2).sum() + ((x[:, 1:] - x[:, :-1]) ** 2).sum()


def turned(tw: Any, x: Any, y: Any) -> Any:
    """Return the sum of a product with an array whose dimensions are in another order."""
    return (tw.tanh(x.T) * y).sum()


def quaternions(tw: Any, p: Any, q: Any) -> Any:
    """Return the sum of the cubes of products of quaternions."""
    a, b, c, d = (p[:, i] for i in range(4))
    e, f, g, h = (q[:, i] for i in range(4))
    columns = [
        a * e - b * f - c * g - d * h, a * f + b * e + c * h - d * g, a * g - b * h + c * e + d * f,
        a * h + b * g - c * f + d * e,
    ]  # fmt: skip
    return (tw.stack(columns, -1) ** 3).sum()


def forces(tw: Any, x: Any) -> Any:
    """Return the potential of bodies that attract each other."""
    apart = x[:, None] - x[None]
    return (1 / tw.sqrt((apart * apart).sum(-1) + 0.01)).sum()


def mixture(tw: Any, x: Any) -> Any:
    """Return the sum of the logarithms of the sums of exponentials of short rows."""
    highest = tw.amax(x, 1) if hasattr(tw, "amax") else x.max(1)
    return (tw.log(tw.exp(x - highest[:, None]).sum(1)) + highest).sum()


def attention(tw: Any, scores: Any, values: Any) -> Any:
    """Return the squared averages of values, weighted over the middle dimension of three."""
    weights = tw.exp(scores - scores.max())
    weights = weights / weights.sum(1)[:, None]
    mean = (weights * values).sum(1)
    return (mean * mean).sum()


def set_maxima(tw: Any, x: Any, offset: Any) -> Any:
    """Return the sum of the largest elements of sets of vectors."""
    return tw.amax(x * offset + x, 1).sum()


def distances(tw: Any, x: Any, precision: Any) -> Any:
    """Return the sum of Mahalanobis distances, each with a matrix of its own."""
    return tw.sqrt(abs(x[:, None] @ precision @ x[:, :, None]) + 1).sum()


def cofactors(tw: Any, a: Any, b: Any) -> Any:
    """Return the sum of solutions' first elements, of symmetric systems of three equations, by cofactors."""
    m = a @ a.transpose(*((1, 2) if hasattr(tw, "no_grad") else (0, 2, 1))) + 2
    x = m[:, 1, 1] * m[:, 2, 2] - m[:, 1, 2] * m[:, 2, 1]
    y = m[:, 1, 2] * m[:, 2, 0] - m[:, 1, 0] * m[:, 2, 2]
    z = m[:, 1, 0] * m[:, 2, 1] - m[:, 1, 1] * m[:, 2, 0]
    return ((x * b[:, 0] + y * b[:, 1] + z * b[:, 2]) / (m[:, 0, 0] * x + m[:, 0, 1] * y + m[:, 0, 2] * z + 1)).sum()


def wavelet(tw: Any, x: Any) -> Any:
    """Return the sum of the fourth powers of the coefficients of Haar's wavelet, of three levels."""
    total = 0
    for _ in range(3):
        x, rest = (x[:, 0::2] + x[:, 1::2]) * 0.5, x[:, 0::2] - x[:, 1::2]
        total = total + (rest**4).sum()
    return total + (x**4).sum()


def bases(tw: Any, a: Any) -> Any:
    """Return the sum of squared elements of the orthogonal bases that Gram and Schmidt's steps make of matrices."""
    found: list[Any] = []
    for column in range(a.shape[2]):
        v = a[:, :, column]
        for u in found:
            v = v - (u * v).sum(1)[:, None] * u
        found.append(v / ((v * v).sum(1)[:, None] + 0.1) ** 0.5)
    return sum((v * v).sum() for v in found)


def filtered(tw: Any, observed: Any, step: Any) -> Any:
    """Return the sum of the squared states of a Kalman filter of two numbers."""
    eye = tw.eye(2)
    motion = eye + 0.01 * step

    def iterate(carry: Any, seen: Any) -> Any:
        mean, spread = carry
        mean, spread = motion @ mean, motion @ spread @ motion.T + 0.01 * eye
        noise = spread + 0.1 * eye
        determinant = noise[0, 0] * noise[1, 1] - noise[0, 1] * noise[1, 0]
        rows = tw.stack([noise[1, 1], -noise[0, 1]]), tw.stack([-noise[1, 0], noise[0, 0]])
        gain = spread @ (tw.stack(rows) / determinant)
        mean = mean + gain @ (seen - mean)
        return (mean, (eye - gain) @ spread), mean

    return (_scan(tw)(iterate, (observed[0] * 0, eye), observed)[1] ** 2).sum()


def state_space(tw: Any, inputs: Any, decay: Any, weights: Any) -> Any:
    """Return the sum of the squared outputs of channels, each of which has a state of a few numbers."""
    kept = tw.exp(-tw.abs(decay))

    def iterate(state: Any, given: Any) -> Any:
        state = kept * state + weights * given[:, None]
        return state, state.sum(1)

    return (_scan(tw)(iterate, decay * 0, inputs)[1] ** 2).sum()


def _scan(tw: Any) -> Any:
    return tw.scan if hasattr(tw, "scan") else importlib.import_module("jax.lax").scan


PROGRAMS: dict[str, tuple[Program, tuple[tuple[int, ...], ...]]] = {
    "five points of 256 x 256, by slices": (five_points, ((256, 256),)),
    "five points on a torus, by roll": (on_a_torus, ((256, 256),)),
    "seven points of 32 x 32 x 32": (seven_points, ((32, 32, 32),)),
    "total variation of 256 x 256": (total_variation, ((256, 256),)),
    "product with a turned matrix, 300 x 400": (turned, ((300, 400), (400, 300))),
    "products of 2000 quaternions": (quaternions, ((2000, 4), (2000, 4))),
    "potential of 128 bodies": (forces, ((128, 3),)),
    "log-sum-exp of 256 rows of 8": (mixture, ((256, 8),)),
    "weights over 12 of 4000 x 12 x 10": (attention, ((4000, 12, 10), (4000, 12, 10))),
    "largest of 4000 sets of 9 vectors of 4": (set_maxima, ((4000, 9, 4), (4000, 1, 4))),
    "Mahalanobis distances of 2000 points of 4": (distances, ((2000, 4), (2000, 4, 4))),
    "2000 systems of 3 equations by cofactors": (cofactors, ((2000, 3, 3), (2000, 3))),
    "Haar wavelet of 25,000 x 8": (wavelet, ((25_000, 8),)),
    "orthogonal bases of 5000 triples of vectors": (bases, ((5000, 3, 3),)),
    "Kalman filter of 2 numbers, 1000 steps": (filtered, ((1000, 2), (2, 2))),
    "state space of 16 channels of 8, 1000 steps": (state_space, ((1000, 16), (16, 8), (16, 8))),
}


def calls(program: Program, operands: list[Array]) -> dict[str, Callable[[], Any]]:
    """Return what computes a value and its gradients, by system.

    Raises
    ------
    AssertionError : the engines differ in a bit, or JAX by more than a thousandth.
    """
    import dynamic
    import static

    argnums = tuple(range(len(operands)))
    compiled = static.function(static.value_and_grad(lambda *x: program(static, *x), argnums))
    expected = dynamic.value_and_grad(lambda *x: program(dynamic, *x), argnums)(*map(dynamic.tensor, operands))
    value, gradients = compiled(*operands)
    for ours, eager in zip((value, *gradients), (expected[0], *expected[1]), strict=True):
        wrong = difference(np.asarray(ours), eager.detach().numpy())
        assert not wrong, wrong
    given = [static.as_tensor(x) for x in operands]
    found: dict[str, Callable[[], Any]] = {"static": lambda: compiled(*given)}
    if "jax.jit" in installed():
        import jax

        by_jax = jax.jit(jax.value_and_grad(lambda *x: program(jax.numpy, *x), argnums))
        there = [jax.numpy.asarray(x) for x in operands]
        for ours, theirs in zip(gradients, by_jax(*there)[1], strict=True):
            assert np.allclose(np.asarray(ours), theirs, 1e-3, 1e-3)
        found["jax.jit"] = lambda: jax.block_until_ready(by_jax(*there))
    return found


def main() -> None:
    """Measure and print."""
    measure.keep_to(1)
    rows = []
    for name, (program, shapes) in PROGRAMS.items():
        rng = np.random.default_rng(0)
        operands = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
        found = calls(program, operands)
        samples = measure.interleave({system: (run, [()]) for system, run in found.items()}, 1.0, clock="processor")
        times = {system: median(samples[system]) for system in found}
        beside = f"{times['jax.jit'] / times['static']:.1f}x" if "jax.jit" in times else "-"
        rows.append([name, *(f"{1e6 * times[s]:.0f}" if s in times else "-" for s in ("static", "jax.jit")), beside])
    print(table(["program", "static, us", "jax.jit, us", "static is so many times as fast"], rows))


if __name__ == "__main__":
    main()
