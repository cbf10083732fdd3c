"""Rules and composites: at first as they are written, with forms that come again as straight lines of calls."""

from __future__ import annotations

from math import prod
from typing import Any

from common.core.spec import Spec
from common.core.unbroadcast import fit
from common.evaluate import kernels, kinds
from common.evaluate.immediate import run_rules, unwrapped, wrapped
from common.evaluate.specialise import Recipe, prepares
from common.kernels.arrays import mapped_sums

assert kinds  # completes recipes of ops of all other kinds


@prepares("rules")
def _rules(self: Recipe) -> None:
    """The gradient of an op for operands of one form: its rules, and from the second call on as straight lines.

    Writing lines is worth it only for forms that come again.
    """
    op, forms = self.op, self.forms
    calls = 0

    def backward(saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        nonlocal calls
        calls += 1
        if calls == 2:
            from common.evaluate.straight_line import straight_backward

            self.backward = straight_backward(self, general) or general
        lines = self.backward  # this function itself, as long as another thread is writing the lines
        return (general if calls == 1 or lines is backward else lines)(saved, attrs, g, needs)

    def general(saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        contributions = run_rules(op, saved, attrs, g, needs)
        return tuple([c if c is None else fit(c, *form) for c, form in zip(contributions, forms, strict=True)])

    self.backward = backward


@prepares("rules for any shape")
def _rules_for_any_shape(self: Recipe, forms: Any) -> None:
    """The same for an elementwise op and operands of one shape, whichever; lines are written by the first call."""
    op = self.op
    written: list[Any] = []

    def backward(saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        if not written:  # nodes that were recorded before come here every time
            from common.evaluate.straight_line import straight_rules

            written.append(straight_rules(op, forms, self.spec.dtype))
            if self.backward is backward:
                self.backward = written[0] or backward
                self.plan = self.plan if written[0] else None  # from now on recipes for one shape are better
        return (written[0] or general)(saved, attrs, g, needs)

    def general(saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        return run_rules(op, saved, attrs, g, needs)

    self.backward = backward


@prepares("composite")
def _composite(self: Recipe) -> None:
    op, attrs = self.op, self.attrs
    if op.reduce is not None and _mapped_sum(self):
        return

    def first(*operands: Any) -> Any:
        from common.evaluate.straight_line import straight_forward

        if self.run is first:
            self.run = straight_forward(self) or general
        return self.run(*operands)

    def general(*operands: Any) -> Any:
        return unwrapped(op.forward(*map(wrapped, operands), **attrs))  # type: ignore[misc]

    self.run = first


def _mapped_sum(self: Recipe) -> bool:
    """Let a composite that sums a function of its elements run as one kernel; whether there is one."""
    shape, dtype = self.forms[0]
    if self.op.reduce in ("distances", "slopes"):
        return _of_pairs(self)
    if self.op.reduce == "neighbours":
        return _of_neighbours(self)
    dims = self.attrs["dim"]
    if dtype.kind != "f" or any(form[1] != dtype for form in self.forms):
        return False
    kept = self.attrs["keepdim"]
    out_shape = tuple(1 if i in dims else n for i, n in enumerate(shape) if kept or i not in dims)
    found = kernels.mapped_sum(self.op.reduce, shape, dtype, dtype, dims, out_shape)
    if found is None:
        return False
    (self.builtin, self.run), self.spec = found, Spec(out_shape, dtype)
    return True


def _of_pairs(self: Recipe) -> bool:
    """Let distances, or their slopes, run as one kernel; whether there is one."""
    from common.kernels.arrays import distances

    (*_, (a, dtype), (b, _)), forms = self.forms, self.forms
    out_shape = (*a[:-1], b[-2]) if self.op.reduce == "distances" else a
    if dtype.kind != "f" or any(form[1] != dtype for form in forms) or 0 in out_shape:
        return False
    if not distances.serves(b[-2], b[-1], dtype.itemsize):
        return False
    ints = (prod(a[:-2]), a[-2], b[-2], b[-1])
    if self.op.reduce == "distances":
        name, source, held = (
            "distances",
            distances.distances_source(dtype, b[-1]),
            distances.scratch_of_distances(*ints[2:]),
        )
    else:
        name = "turned" if self.attrs["turned"] else "slopes"
        source, held = distances.slopes_source(dtype, self.attrs["turned"]), distances.scratch_of_slopes(*ints[2:])
    found = kernels.with_scratch(source, name, (dtype,) * len(forms), out_shape, dtype, ints, dtype.itemsize * held)
    (self.builtin, self.run), self.spec = found, Spec(out_shape, dtype)
    return True


def _of_neighbours(self: Recipe) -> bool:
    """Let a sum over rows of means of neighbours run as one kernel; whether there is one."""
    ((shape, dtype),) = self.forms
    if dtype.kind != "f" or self.attrs["dim"] != len(shape) - 1 or 0 in shape:
        return False
    rows, columns = prod(shape[:-1]), shape[-1] - 1
    held = dtype.itemsize * mapped_sums.scratch("neighbours", columns, 0)
    source = mapped_sums.neighbours_source(dtype)
    found = kernels.with_scratch(source, "neighbours", (dtype,), shape[:-1], dtype, (rows, columns), held)
    (self.builtin, self.run), self.spec = found, Spec(shape[:-1], dtype)
    return True
