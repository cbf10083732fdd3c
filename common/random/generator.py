"""Random numbers: a generator is state (a seed and an offset), and a draw reads and advances it.

Element i of a draw depends on the seed and on offset + i only; then the offset grows by the number of elements.
In a trace the state is captured by reference and the advance is an effect, like a write to a parameter: a
compiled program continues the stream where the last call left it, and both engines draw the same numbers.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from common.core import mode
from common.core.devices import is_device, on_cpu
from common.core.dispatch import called, known_attrs
from common.core.docstrings import sections_of
from common.core.dtypes import default_changed, default_float, float64, int64, whole_range
from common.core.errors import ArgumentError, DTypeError
from common.core.int_arguments import integer, lengths, shown
from common.core.locks import make_lock
from common.core.op import REGISTRY, rules_changed
from common.core.spec import numel
from common.evaluate import specialise
from common.ops.math.compare import where
from common.ops.random import draws as _ops  # noqa: F401  registers rand and randn
from common.random.draw_counts import counted as counted
from common.random.draw_counts import note_drawn
from common.tensor.base import wrap
from common.tensor.create import lift
from common.tensor.leaf import Buffer

_INTS, _LIMIT = {int}, 1024


class DrawPlan(NamedTuple):
    """A draw of a known size: ``run(key, offset, ...)``, and how many numbers; by name, sizes and dtype as given."""

    run: Callable[..., Any]
    count: Any


_plans: dict[Any, DrawPlan] = {}
default_changed.append(_plans.clear)
rules_changed.append(lambda op: _plans.clear())


class Generator:
    """A stream of random numbers.

    Parameters
    ----------
    seed, device : any int, equal seeds give equal streams; the CPU. As in PyTorch, the device may come first.

    Attributes
    ----------
    key, offset : 0-d int64 buffers, the whole state: the seed, and how many numbers have been drawn.

    Examples
    --------
    >>> import dynamic as tw
    >>> generator = tw.Generator(7)
    >>> tw.rand(2, generator=generator)
    tensor([0.9546, 0.4070])
    >>> generator.get_state()
    tensor([7, 2])
    """

    def __init__(self, seed: Any = 0, device: Any = "cpu") -> None:
        seed, device = (0, seed) if is_device(seed) else (seed, device)
        on_cpu(device, "Generator")
        self.key, self.offset, self._lock = Buffer(np.int64(0)), Buffer(np.int64(0)), make_lock()
        self.key.name, self.offset.name = "generator.key", "generator.offset"
        self.manual_seed(seed)

    def manual_seed(self, seed: int) -> Generator:
        """Begin the stream of `seed`.

        Raises
        ------
        ArgumentError : inside a traced function, where seeding once per trace would be meant by nobody.
        """
        if mode.replayed():
            raise ArgumentError("manual_seed() inside a traced function would run once per trace: seed outside")
        self.key.payload[...], self.offset.payload[...] = (int(seed) + 2**63) % 2**64 - 2**63, 0
        return self

    def seed(self) -> int:
        """Begin the stream of a seed that the system draws, and return it."""
        return self.manual_seed(int.from_bytes(os.urandom(8), "little")).initial_seed()

    def initial_seed(self) -> int:
        """The seed of the present stream, 0 <= seed < 2^64."""
        return int(self.key.payload) % 2**64

    def get_state(self) -> Any:
        """Seed and offset, a tensor (2,) int64; in a trace an array, which is known there."""
        state = np.array([self.key.payload, self.offset.payload])
        return state if mode.current_trace() is not None else wrap(state)

    def set_state(self, new_state: Any) -> Generator:
        """Continue from what `get_state` returned.

        Raises
        ------
        ArgumentError : it is no such state.
        """
        if (state := np.asarray(new_state)).shape != (2,) or state.dtype != np.int64:
            raise ArgumentError(
                f"RNG state must be an int64 tensor of seed and offset, got {state.dtype} {state.shape}"
            )
        self.key.payload[...], self.offset.payload[...] = state
        return self

    def clone_state(self) -> Generator:
        """A fork: another generator that draws from here on what this one will draw."""
        return Generator().set_state(self.get_state())

    def __reduce__(self) -> Any:
        return type(self), (), np.asarray(self.get_state())

    __setstate__ = set_state

    def draw(self, name: str, shape: tuple[Any, ...], dtype: np.dtype) -> Any:
        """Run the op `name` and advance: an array outside a trace, a traced tensor inside.

        Raises
        ------
        ArgumentError, ShapeError, DTypeError : a name that is not "rand" or "randn"; a size that is no int, or is
            negative; a dtype that is not floating point.
        """
        if name not in ("rand", "randn"):
            raise ArgumentError(f'draw(): name must be "rand" or "randn", got {shown(name)}')
        if dtype.kind != "f":
            raise DTypeError(f"{name}(): dtype must be floating point, got {dtype}")
        shape = lengths(shape, name)
        if (trace := mode.current_trace()) is not None and trace.draw is not None:
            return trace.draw(self, name, shape, dtype)
        op, count = REGISTRY[name], numel(shape)
        if trace is None:
            return self.take(_plan(name, shape, dtype))
        if self is default_generator:
            note_drawn(count)
        with mode.GradSwitch(False):
            y = op(self.key, self.offset, shape=shape, dtype=dtype)
            self.offset.add_(count)
        return y

    def take(self, plan: tuple[Callable[..., Any], Any], *operands: Any) -> Any:
        """What a draw of a known size gives, outside a trace; advances, unless that is None."""
        run, count = plan
        if self is default_generator:
            note_drawn(count)
        key, offset = self.key.payload, self.offset.payload
        with self._lock:  # two threads never draw the same numbers
            y = run(key, offset, *operands)
            if y is not None:
                after = offset.item() + count
                offset[()] = after if after < 2**63 else after - 2**64
        return y


default_generator = Generator()


def manual_seed(seed: int) -> Generator:
    """Seed the default generator, which every draw without `generator` uses.

    Examples
    --------
    >>> _ = manual_seed(0)
    >>> a = rand(2)
    >>> _ = manual_seed(0)
    >>> bool((a == rand(2)).all())
    True
    """
    return default_generator.manual_seed(seed)


def get_rng_state() -> Any:
    """Seed and offset of the default generator, (2,) int64."""
    return default_generator.get_state()


def set_rng_state(new_state: Any) -> None:
    """Let the default generator continue from what `get_rng_state` returned."""
    default_generator.set_state(new_state)


def initial_seed() -> int:
    """The seed of the default generator, 0 <= seed < 2^64."""
    return default_generator.initial_seed()


def seed() -> int:
    """Seed the default generator with a number that the system draws, and return it."""
    return default_generator.seed()


def rand(*sizes: Any, size: Any = None, dtype: Any = None, generator: Generator | None = None) -> Any:
    """Draw from the uniform distribution on [0, 1).

    Parameters
    ----------
    sizes, size : sizes, or one tuple of them.
    dtype : float32 (default) or float64.
    generator : where from; the default generator if None.
    """
    return draw("rand", sizes, dtype, generator, size)


def randn(*sizes: Any, size: Any = None, dtype: Any = None, generator: Generator | None = None) -> Any:
    """Draw from the normal distribution with mean 0 and variance 1.

    Parameters
    ----------
    sizes, size : sizes, or one tuple of them.
    dtype : float32 (default) or float64.
    generator : where from; the default generator if None.
    """
    return draw("randn", sizes, dtype, generator, size)


def draw(name: str, sizes: tuple[Any, ...], dtype: Any, generator: Generator | None, size: Any = None) -> Any:
    """Numbers of "rand" or "randn" from a generator, the default one if None; see `Generator.draw`."""
    of = generator or default_generator
    if len(sizes) == 1 and isinstance(sizes[0], tuple):
        sizes = sizes[0]
    plain = size is None and mode.current_trace() is None and type(of) is Generator and {*map(type, sizes)} == _INTS
    plan = _plans.get((name, sizes, dtype)) if plain else None
    return of.take(plan) if plan is not None else _checked_draw(name, sizes, dtype, of, size, plain)


def _dtype(dtype: Any) -> np.dtype:
    from common.tensor.arrays import dtype_or

    return dtype_or(dtype, default_float())


def _checked_draw(name: str, sizes: Any, dtype: Any, of: Any, size: Any, plain: bool) -> Any:
    from common.ops.create.creation import known_sizes

    if not hasattr(of, "draw"):
        raise TypeError(f"argument 'generator' must be Generator, not {type(of).__name__}")
    shape, wanted = known_sizes(sizes, size), _dtype(dtype)
    y = of.draw(name, shape, wanted)
    if plain:
        if len(_plans) >= _LIMIT:
            _plans.clear()
        _plans[name, sizes, dtype] = _plan(name, shape, wanted)
    return y


def _plan(name: str, shape: tuple[int, ...], dtype: np.dtype) -> DrawPlan:
    form = (), int64
    recipe = specialise.recipe(REGISTRY[name], (form, form), known_attrs(None, shape=shape, dtype=dtype))
    return DrawPlan(recipe.run, numel(shape))


def rand_like(x: Any, dtype: Any = None, generator: Generator | None = None) -> Any:
    """Draw from the uniform distribution on [0, 1), in the shape of a tensor.

    Parameters
    ----------
    x : (...), whose shape is taken.
    dtype : by default that of `x`.
    generator : where from; the default generator if None.

    Raises
    ------
    DTypeError : a dtype that is not floating point.
    """
    return lift(draw("rand", tuple(x.shape), x.dtype if dtype is None else dtype, generator))


@sections_of(rand_like)
def randn_like(x: Any, dtype: Any = None, generator: Generator | None = None) -> Any:
    """Draw from the normal distribution with mean 0 and variance 1, in the shape of a tensor."""
    return lift(draw("randn", tuple(x.shape), x.dtype if dtype is None else dtype, generator))


def randint(
    low: Any = 0, high: Any = None, size: Any = None, dtype: Any = None, generator: Generator | None = None
) -> Any:
    """Draw integers from [low, high), all with the same probability up to (high - low) 2^-53.

    An element is ``floor(u (high - low)) + low``, where u is the element of `rand` in float64; of more than 2^53
    integers two draws say which block of 2^32, and which one in it, all with the same probability up to a factor of 2.

    Parameters
    ----------
    low, high, size : bounds, and a tuple of sizes; ``randint(high, size)`` begins at 0.
    dtype : int64 by default.
    generator : where from; the default generator if None.

    Raises
    ------
    ArgumentError : no integers between the bounds, or some beyond the dtype; a bound or the size is missing.
    ShapeError : a negative size.
    """
    if size is None and isinstance(high, (tuple, list)):
        low, high, size = 0, low, high
    elif high is None:
        low, high = 0, low  # randint(high, size=...)
    if size is None:
        raise ArgumentError(f"randint(): argument 'size' must be tuple of ints, not {type(high).__name__}")
    wanted = int64 if dtype is None else _dtype(dtype)
    first, last = _bounds(low, high, wanted, "randint")
    shape = (size,) if not isinstance(size, (tuple, list)) else tuple(size)
    return integers(first, last, shape, wanted, generator)


def randint_like(
    x: Any, first: Any = 0, last: Any = None, dtype: Any = None, generator: Generator | None = None
) -> Any:
    """Draw integers from [low, high), see `randint`, in the shape of a tensor.

    Parameters
    ----------
    x : (...), whose shape is taken.
    first, last : low and high; ``randint_like(input, high)`` begins at 0.
    dtype : by default that of `x`.
    generator : where from; the default generator if None.

    Raises
    ------
    ArgumentError : no integers between the bounds, or some beyond the dtype.
    """
    if last is None:
        first, last = 0, first  # randint_like(input, high)
    wanted = x.dtype if dtype is None else _dtype(dtype)
    first, last = _bounds(first, last, wanted, "randint_like")
    return integers(first, last, tuple(x.shape), wanted, generator)


def _bounds(low: Any, high: Any, dtype: np.dtype, function: str) -> tuple[int, int]:
    first = low if type(low) is int else int(integer(low, function, "low"))
    last = high if type(high) is int else int(integer(high, function, "high"))
    require_order(first, last)
    if dtype.kind != "f":
        least, most = whole_range(dtype)
        if first < least or last - 1 > most:
            raise ArgumentError(f"{function}(): from {first} to {last} - 1 is out of bounds for {dtype}")
    return first, last


def require_order(first: Any, last: Any) -> None:
    """Refuse bounds with no integers of 64 bits between them."""
    if not -(2**63) <= first < last <= 2**63:
        raise ArgumentError(f"random_ expects 'from' to be less than 'to', within 64 bits, but got {first} and {last}")


def integers(first: int, last: int, shape: tuple[Any, ...], dtype: np.dtype, generator: Generator | None) -> Any:
    """Integers from [first, last), see `randint`."""
    if last - first > 2**53:
        blocks, rest = -((first - last) >> 32), (last - first - 1) % 2**32 + 1  # of the last block; then from 0 on
        high, low = (integers(0, n, shape, int64, generator) for n in (blocks, 2**32))
        beyond = REGISTRY["logical_and"](REGISTRY["eq"](high, blocks - 1), REGISTRY["ge"](low, rest))
        y = where(beyond, low - rest, high * 2**32 + low)
        return y + first if dtype == int64 else _to(y + first, dtype)
    of = generator or default_generator
    if type(of) is Generator and mode.current_trace() is None:
        from common.random.one_kernel import drawn_integers

        return lift(drawn_integers(of, first, last, shape, dtype))
    u = draw("rand", shape, float64, generator)
    y = _to(lift(u) * (last - first), int64) + first
    return y if dtype == int64 else _to(y, dtype)


def _to(x: Any, dtype: np.dtype) -> Any:
    return REGISTRY["to"](x, dtype=dtype, x_dtype=x.dtype)


def dropout(x: Any, p: float = 0.5, training: bool = True) -> Any:
    """`x` with elements set to 0 with probability `p`, the others scaled by 1 / (1 - p); `x` if not training.

    Parameters
    ----------
    x : (...), floating point.
    p : probability, 0 <= p <= 1; 1 drops everything.
    training : whether anything is dropped.

    Raises
    ------
    ArgumentError : `p` is not in [0, 1].
    DTypeError : `x` is not floating point.
    """
    if not 0 <= p <= 1:
        raise ArgumentError(f"dropout probability has to be between 0 and 1, but got {p}")
    if not training or p == 0:
        return x
    if x.home is not None and mode.current_trace() is None:
        with x.home:
            return dropout(x, p)
    u = lift(rand(tuple(x.shape), dtype=x.dtype))
    return called(where(REGISTRY["ge"](u, p), x * (1 / (1 - p) if p < 1 else 0), 0), "MulBackward0")
