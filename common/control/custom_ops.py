"""Operators of users' own, under the names of `torch.library`: a function of tensors that a program calls by name.

A compiled program calls an operator as it is, where a function gives the form of its results; without one the operator
is traced like any function. Its gradient is the rule that is registered.
"""

from __future__ import annotations

import contextlib
import inspect
import re
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from common.autograd.function import Function
from common.control.callback import ShapeDtypeStruct, pure_callback
from common.core import mode
from common.core.errors import ArgumentError, GradientError, NotDefinedError
from common.core.tree import flatten, unflatten
from common.tensor.create import lift, tensor

__all__ = [
    "CustomOpDef", "Library", "custom_op", "define", "get_ctx", "impl", "register_autograd", "register_fake",
    "register_kernel",
]  # fmt: skip

#: "namespace::name" -> the operator.
OPERATORS: dict[str, CustomOpDef] = {}
_NAME = re.compile(r"(\w+)::(\w+)(?:\.\w+)?")
_OTHER_DEVICES = ("cuda", "xpu", "mps", "mtia", "hpu")


class CustomOpDef:
    """An operator: what it computes, the form of its results, and its gradient.

    Parameters
    ----------
    name : "namespace::name".
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or _NAME.fullmatch(name) is None:
            raise ArgumentError(f"an operator's name is 'namespace::name', not {name!r}")
        self._name = name
        self._kernel: Callable[..., Any] | None = None
        self._signature: inspect.Signature | None = None
        self._node: type[Function] = type(name.replace("::", "_"), (_OperatorCall,), {})
        self._fake: Callable[..., Any] | None = None
        self._backward: Callable[..., Any] | None = None
        self._keep: Callable[..., Any] | None = None
        #: Whether it is an operator, of which a kernel is or will be given, or has only been spoken of.
        self.defined = False
        self._records = False

    def __repr__(self) -> str:
        return f"<CustomOpDef({self._name})>"

    @property
    def default(self) -> CustomOpDef:
        """The operator: it has one form."""
        return self

    def register_kernel(
        self, device_types: Any, func: Callable[..., Any] | None = None, /, *, records: bool = False
    ) -> Callable[..., Any]:
        """Say what it computes; decorates a function. Those of other devices than the CPU are left alone.

        Parameters
        ----------
        device_types : "cpu", or others, or several; None for all.
        func : of tensors; numpy arrays are made of them by `numpy()`.
        records : whether gradients go through what the function does.
        """
        if func is None:
            return lambda function: self.register_kernel(device_types, function, records=records)
        kinds = [device_types] if isinstance(device_types, str) else device_types
        if kinds is None or not all(str(kind).lower().startswith(_OTHER_DEVICES) for kind in kinds):
            self._kernel, self.defined, self._records = func, True, records
            self._signature = None
            with contextlib.suppress(ValueError):  # builtins have none
                self._signature = inspect.signature(func)
        return func

    def register_fake(self, fn: Callable[..., Any], /) -> Callable[..., Any]:
        """Say what form the results have; decorates a function of the same arguments, which returns tensors of it."""
        self._fake = fn
        return fn

    def register_autograd(
        self, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None
    ) -> None:
        """Give the rule of its gradient.

        Parameters
        ----------
        backward : ``backward(ctx, *grads)`` returns a gradient per argument, None for those without.
        setup_context : ``setup_context(ctx, inputs, output)`` keeps what `backward` needs.
        """
        self._backward, self._keep = backward, setup_context

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the operator.

        Raises
        ------
        NotDefinedError : it has no kernel.
        GradientError : in a backward pass that goes through it, where no rule has been registered.
        """
        if self._kernel is None:
            raise NotDefinedError(f"{self._name}: no kernel for the CPU has been registered")
        if self._records:
            return self._kernel(*args, **kwargs)
        if self._signature is None:  # of a builtin
            given, named = args, kwargs
        else:
            bound = self._signature.bind(*args, **kwargs)
            bound.apply_defaults()
            given, named = bound.args, bound.kwargs
        leaves, structure = flatten(given)
        call = _Call(self, structure, named)
        made = self._node.apply(*(lift(x) if isinstance(x, np.ndarray) else x for x in leaves), call)
        return call.results(made)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """What it computes, without a record; in a trace a call that the compiled program makes."""
        assert self._kernel is not None
        if mode.current_trace() is None or self._fake is None:
            return self._kernel(*args, **kwargs)
        results, structure = flatten(self._fake(*args, **kwargs))
        forms = [ShapeDtypeStruct(x.shape, x.dtype) for x in results]
        kernel = self._kernel

        def call(*args: Any, **kwargs: Any) -> Any:
            leaves, form = flatten((args, kwargs))
            args, kwargs = unflatten(form, [tensor(x) if hasattr(x, "dtype") else x for x in leaves])
            with mode.no_grad():
                return kernel(*args, **kwargs)

        call.__name__ = self._name
        return pure_callback(call, unflatten(structure, forms), *args, **kwargs)


class _Call:
    """One call of an operator.

    Parameters
    ----------
    op : the operator.
    structure : of its arguments by position.
    named : its arguments that only keywords can say.
    """

    __slots__ = ("op", "structure", "named", "form")

    def __init__(self, op: CustomOpDef, structure: Any, named: dict[str, Any]) -> None:
        self.op, self.structure, self.named = op, structure, named
        self.form: Any = None  # the structure of the results, once there are any

    def results(self, leaves: Any) -> Any:
        """What the operator returns, of what its node returns."""
        return unflatten(self.form, list(leaves) if isinstance(leaves, tuple) else [leaves])


class _OperatorCall(Function):
    """The node of a call; each operator has a class of its own, by whose name it is shown.

    The call comes last among the arguments, so that `needs_input_grad` begins with those of the operator.
    """

    @staticmethod
    def forward(*args: Any) -> Any:
        """Run the operator."""
        *leaves, call = args
        results, call.form = flatten(call.op.run(*unflatten(call.structure, leaves), **call.named))
        return results[0] if len(results) == 1 else tuple(results)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Keep what the operator's rule needs."""
        *leaves, ctx.operator_call = inputs
        call: _Call = ctx.operator_call
        if call.op._keep is not None:
            only = {"keyword_only_inputs": call.named} if call.named else {}
            given = unflatten(call.structure, leaves)
            call.op._keep(ctx=ctx, inputs=given, output=call.results(output), **only)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Ask the operator's rule."""
        call: _Call = ctx.operator_call
        if call.op._backward is None:
            raise GradientError(
                f"Trying to backward through {call.op._name} but no autograd formula was registered. Please use "
                "register_autograd to add one."
            )
        nested = call.results(grads)
        found = call.op._backward(ctx, *(nested if isinstance(nested, tuple) else (nested,)))
        like = unflatten(call.structure, [None] * (len(ctx.needs_input_grad) - 1))
        return (*_per_leaf(found if isinstance(found, tuple) else (found,), like), None)


def _per_leaf(grads: Any, like: Any) -> list[Any]:
    """Gradients in the order of the leaves of `like`; None for a list or tuple is None for its members."""
    if not isinstance(like, (list, tuple)):
        return [grads]
    if grads is None:
        grads = [None] * len(like)
    if not isinstance(grads, (list, tuple)):
        raise GradientError(f"a backward function returned {type(grads).__name__} for a list of {len(like)} arguments")
    if len(grads) != len(like):
        raise GradientError(f"a backward function returned {len(grads)} gradients for {len(like)} arguments")
    return [leaf for g, part in zip(grads, like, strict=True) for leaf in _per_leaf(g, part)]


def _operator(op: Any) -> CustomOpDef:
    """An operator by itself or its name; one that nobody has defined yet is kept for who will."""
    if isinstance(op, CustomOpDef):
        return op
    name = str(op)
    return OPERATORS.setdefault(name, CustomOpDef(name))


def custom_op(
    name: str,
    fn: Callable[..., Any] | None = None,
    /,
    *,
    mutates_args: str | Iterable[str],
    device_types: Any = None,
    schema: str | None = None,
    tags: Any = None,
) -> Any:
    """Make an operator of a function; decorates it.

    Parameters
    ----------
    name : "namespace::name", under which `ops` has it too.
    fn : of tensors and other values.
    mutates_args : the arguments that it writes to, accepted: a write is seen where it happens.
    device_types : those that the function is for; None for all.
    schema, tags : accepted; the function's own signature counts.

    Returns
    -------
    CustomOpDef

    Examples
    --------
    >>> import numpy as np, dynamic as tw
    >>> @tw.library.custom_op("mine::cube", mutates_args=())
    ... def cube(x: tw.Tensor) -> tw.Tensor:
    ...     return tw.from_numpy(x.numpy() ** 3)
    >>> cube.register_autograd(lambda ctx, g: 3 * g * ctx.x**2,
    ...     setup_context=lambda ctx, inputs, output: setattr(ctx, "x", inputs[0]))
    >>> x = tw.tensor([2.0], requires_grad=True)
    >>> tw.ops.mine.cube(x).backward()
    >>> x.grad
    tensor([12.])
    """
    if fn is None:
        return lambda function: custom_op(name, function, mutates_args=mutates_args, device_types=device_types)
    op = OPERATORS[name] = CustomOpDef(name)
    op.register_kernel(device_types, fn)
    return op


def define(qualname: str, schema: str, *, lib: Any = None, tags: Any = ()) -> None:
    """Name an operator, whose kernel is given by `impl`; the kernel's own signature counts."""
    _operator(qualname).defined = True


def impl(qualname: str, types: Any, func: Callable[..., Any] | None = None, *, lib: Any = None) -> Any:
    """Give an operator's kernel, see `CustomOpDef.register_kernel`; decorates a function."""
    return register_kernel(qualname, None if types == "default" else types, func)


def register_kernel(op: Any, device_types: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Give an operator's kernel, see `CustomOpDef.register_kernel`; decorates a function."""
    return _operator(op).register_kernel(device_types, func)


def register_fake(op: Any, func: Callable[..., Any] | None = None, /, *, lib: Any = None) -> Any:
    """Say what form an operator's results have, see `CustomOpDef.register_fake`; decorates a function."""
    kept = _operator(op)
    return kept.register_fake if func is None else kept.register_fake(func)


def register_autograd(
    op: Any, backward: Callable[..., Any], /, *, setup_context: Callable[..., Any] | None = None, lib: Any = None
) -> None:
    """Give the rule of an operator's gradient, see `CustomOpDef.register_autograd`."""
    _operator(op).register_autograd(backward, setup_context=setup_context)


def get_ctx() -> Any:
    """Refused: sizes that depend on elements have no form before the program runs.

    Raises
    ------
    NotDefinedError : always.
    """
    raise NotDefinedError("get_ctx(): a result's size cannot depend on elements; give it the largest size it may have")


class Library:
    """Operators of one namespace, defined and given kernels one by one.

    Parameters
    ----------
    ns : the namespace.
    kind : "DEF", "FRAGMENT" or "IMPL".
    dispatch_key : what kernels are for where `impl` does not say.
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("DEF", "FRAGMENT", "IMPL"):
            raise ArgumentError(f"Library(): kind is 'DEF', 'FRAGMENT' or 'IMPL', not {kind!r}")
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Name an operator by its schema, such as "cube(Tensor x) -> Tensor"; return the name."""
        name = schema.partition("(")[0].strip()
        define(f"{self.ns}::{name}", schema)
        return name

    def impl(
        self, op_name: Any, fn: Callable[..., Any], dispatch_key: str = "", *, with_keyset: bool = False
    ) -> None:  # fmt: skip
        """Give a kernel, or for the key "Meta" the form of results; other devices' are left alone.

        Kernels of the keys "Autograd", "AutogradCPU" and "CompositeImplicitAutograd" are recorded as they run.
        """
        op = op_name if isinstance(op_name, CustomOpDef) else _operator(f"{self.ns}::{op_name.rpartition('::')[2]}")
        key = dispatch_key or self.dispatch_key or "CompositeImplicitAutograd"
        if key == "Meta":
            op.register_fake(fn)
        else:
            device = key.removeprefix("Autograd").removeprefix("Autocast")
            op.register_kernel(device or "cpu", fn, records="Autograd" in key and key != "CompositeExplicitAutograd")
