"""Rules and composites: at first as they are written, with forms that come again as straight lines of calls."""

from __future__ import annotations

from typing import Any

from common.core.spec import Spec
from common.core.unbroadcast import fit
from common.evaluate import kinds
from common.evaluate.immediate import run_rules, unwrapped, wrapped
from common.evaluate.specialise import Recipe, prepares
from common.kernels.arrays.mapped_sums import ELEMENTS

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
    if op.reduce is not None and (_mapped_sum if op.reduce in ELEMENTS else _own)(self):
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
    from common.evaluate import reduction_kernels

    shape, dtype = self.forms[0]
    dims = self.attrs["dim"]
    if dtype.kind != "f" or any(form[1] != dtype for form in self.forms):
        return False
    kept = self.attrs["keepdim"]
    out_shape = tuple(1 if i in dims else n for i, n in enumerate(shape) if kept or i not in dims)
    found = reduction_kernels.mapped_sum(self.op.reduce, shape, dtype, dtype, dims, out_shape)
    if found is None:
        return False
    (self.builtin, self.run), self.spec = found, Spec(out_shape, dtype)
    return True


def _own(self: Recipe) -> bool:
    """Let a composite run as a kernel of its own; whether there is one."""
    from common.evaluate import reduction_kernels
    from common.evaluate.own_kernels import own_kernel

    found = own_kernel(self.op.reduce, self.forms, self.attrs)
    if found is None:
        return False
    dtypes = tuple(form[1] for form in self.forms)
    dtype = dtypes[0] if found.dtype is None else found.dtype
    held = found.held * dtype.itemsize
    self.builtin, self.run = reduction_kernels.with_scratch(
        found.source, found.name, dtypes, found.shape, dtype, found.ints, held
    )
    self.spec = Spec(found.shape, dtype)
    return True
