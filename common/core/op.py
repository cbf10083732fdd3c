"""The op record: everything that both engines, the tests and the docs know of an operation, in one place.

Kinds
-----
elementwise  a scalar expression over exact primitives; broadcasting and un-broadcasting are automatic
reduction    sum, prod, amax, amin, any, all over dimensions, in the order that docs/numerics.md defines
view         an index map on (offset, shape, strides)
kernel       one compiled function which both engines call, e.g. gemm, gather
composite    written with ops; a rule of its own only where that is measurably better

A gradient rule is a small function of the cotangent `g`, the output `y`, inputs by their names, and attributes by
theirs; ``x_shape`` is the shape of input x without its value, and `rest` the outputs with None for the first one. What
a node saves for backward is what its rules name.
The same rule runs on arrays (eager engine), on recorded tensors (higher order) and on traced values (compiler).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from common.core.dispatch import apply
from common.core.dtypes import SUPPORTED, unsupported
from common.core.int_arguments import lengths
from common.core.rule_code import OUTPUTS, Rule, generate_backward, generate_save, rule_parameters
from common.core.sizes import Dim
from common.core.spec import Spec

if TYPE_CHECKING:
    from common.core.subgradients import Subgradient


class Registry(dict[str, "Op"]):
    """Ops by name, of which each is loaded with its module when it is first asked for.

    Attributes
    ----------
    homes : name -> the module that registers the op; what is not in it is found once something has registered it.
    families : stem -> the module whose `op_of` makes the ops of that stem, such as ``cat3``, and their largest number.
    """

    def __init__(self) -> None:
        super().__init__()
        self.homes: dict[str, str] = {}
        self.families: dict[str, tuple[str, int]] = {}

    def _relative(self, name: object) -> tuple[str, int] | None:
        """The family of an op that is one of many, and its number."""
        if not isinstance(name, str):
            return None
        stem = name.rstrip("0123456789")
        _, most = self.families.get(stem, ("", 0))
        digits = name[len(stem) :]
        if not most or not digits or digits[0] == "0" or len(digits) > len(str(most)) or int(digits) > most:
            return None
        return stem, int(digits)

    def __missing__(self, name: str) -> Op:
        if name in self.homes:
            import_module(self.homes[name])
        elif relative := self._relative(name):
            import_module(self.families[relative[0]][0]).op_of(*relative)
        if not super().__contains__(name):  # `self[name]` would come back here
            raise KeyError(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        """The op, or `default` where there is none of that name."""
        if name not in self:
            return default
        return self[name]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or name in self.homes or self._relative(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(self.load())

    def __len__(self) -> int:
        return len(self.load())

    def keys(self) -> Any:
        """The names of all ops."""
        return self.load().keys()

    def values(self) -> Any:
        """All ops."""
        return self.load().values()

    def items(self) -> Any:
        """All ops with their names."""
        return self.load().items()

    def loaded(self) -> list[Op]:
        """The ops that are loaded now; `rules_changed` tells of those that follow."""
        return list(super().values())

    def load(self) -> dict[str, Op]:
        """Load every op; all of them in the order of `homes`, whichever were loaded first, then those of no module."""
        for module in dict.fromkeys(self.homes.values()):
            import_module(module)
        known = dict(list(super().items()))
        return {name: known[name] for name in (*self.homes, *known) if name in known}


REGISTRY = Registry()

#: Called with an op whose rules are replaced: what was made of them is dropped.
rules_changed: list[Callable[[Op], None]] = []


class Refusal(str):
    """The message of a status that stands for a value which an argument may not have: an ArgumentError."""

    __slots__ = ()


class NativeCall(NamedTuple):
    """One run of a compiled kernel; a kernel op is a sequence of them.

    Attributes
    ----------
    source, name : text and function name of the kernel (see `common.compiler.compile`).
    ints : int arguments; may hold Dims inside a trace.
    buffers : which of the op's operands and results (counted through) the kernel gets; None means all.
    scratch : bytes of scratch memory, passed as the last buffer when not 0.
    errors : status -> message, for statuses that stand for a user's mistake.
    """

    source: str
    name: str
    ints: tuple[Any, ...]
    buffers: tuple[int, ...] | None = None
    scratch: Any = 0
    errors: Mapping[int, str] = {}


#: Ops that engines insert themselves, by what they do: convert a dtype, copy, hold a number, fill an array with one,
#: undo broadcasting, compare, choose, and add up contributions.
CAST, COPY, NUMBER, FILL = "to", "clone", "constant", "full"
UNBROADCAST, EQUAL, LESS, CHOOSE, ADD = "sum", "eq", "lt", "where", "add"

#: Of what engines rely on, the fields that are plain data, and what an op has that does not set them.
TRAITS: Mapping[str, Any] = {
    **dict.fromkeys(("result", "reduce", "domain", "fill", "indexed")),
    **dict.fromkeys(("costly", "product", "literal", "casts", "copies", "form_only", "involution"), False),
    "refuses": "", "parts": "", "versions": (), "neutral": (),
}  # fmt: skip

#: The same for all fields that a definition may set.
DEFAULTS: Mapping[str, Any] = {
    **TRAITS, "refusals": (), **dict.fromkeys(("samples", "scalar", "strided", "native", "forward", "oracle", "array")),
}  # fmt: skip


class IndexUse(NamedTuple):
    """How an op reads or writes at indices that are data.

    Attributes
    ----------
    writes : whether it writes there, to zeros or to a copy of its first operand; else it reads there.
    one : whether it is one element of each row, the last dimension; else rows or elements along the attribute `dim`.
    own : whether each element has an index of its own; else those of a row share one.
    join : of a write, the scalar function that joins an element with what is written there; "" replaces it.
    pairs : whether each element has two indices, of neighbouring dimensions.
    """

    writes: bool = False
    one: bool = False
    own: bool = False
    join: str = ""
    pairs: bool = False


class Op:
    """One operation; made by `common.ops._define`, found in `REGISTRY` by name.

    Attributes
    ----------
    name : PyTorch's name of the op.
    kind : see the module's docstring.
    inputs : names of the array operands.
    spec : ``spec(*operand_specs, **attrs) -> Spec`` or a tuple of Specs.
    rules : per input a gradient rule or None.
    node_name : what ``grad_fn.name()`` shows, as in PyTorch.
    saves : names that the rules need, in the order in which a node holds them.
    backward : ``backward(saved, attrs, g, needs) -> tuple`` of contributions, generated from the rules.
    save : ``save(payloads, y) -> tuple`` of what a node keeps, in the order of `saves`.
    frees : whether a node of it saves arrays, which a backward pass frees; shapes may stay.
    differentiable : whether any input has a gradient rule.
    oracle : the op on plain arrays, without a compiler, for the tests; kernel ops only.
    array : a view op on a numpy array.
    costly : whether computing it costs clearly more than loading its result; of elementwise ops.
    refuses : kinds of dtype for which it is not defined, of "b", "iu", "f", or "B" if no operand may be of bools; of
        elementwise ops.
    refusals : what it says first where it refuses: with one operand of bools or none, with two; () for nothing.
    product : whether it multiplies matrices: its cost grows with the sizes of all three.
    literal : whether its value is an attribute: it has no operands and runs nothing.
    samples : ``samples(rng, dtype) -> list of (operands, attrs)`` for the generated tests.
    versions : values of the last operand for which an elementwise op is much less work: a loop over all elements with
        one such number is compiled for each.
    subgradients : what it gives where it has no derivative, see `common.core.subgradients`.
    casts : whether it changes the dtype of elements, and nothing else.
    copies : whether it gives its operand's elements in new memory.
    form_only : whether it changes no more than shape and dtype: where both stay, the result is the operand.
    fill : where all elements of its result are one number, that number, or the attribute that is; else None.
    neutral : pairs (position, number): with this number as that operand, the result is the other operand, bit by bit.
    involution : whether twice it is the operand, bit by bit.
    indexed : how it reads or writes at indices that are data, its last operand; None for other ops.
    parts : how its result is made of parts of its operands, or is a part of one: "join", "stack up", "pad", "set
        slice", "set view", "part" or "turn"; "slices" if its results are views that may each be written where a tape
        records; "" for other ops. Those of one way have attributes of the same names.
    """

    __slots__ = (
        "name", "kind", "inputs", "spec", "rules", "node_name", "saves", "backward", "doc", "samples", "scalar",
        "result", "reduce", "strided", "native", "forward", "nout", "domain", "attrs", "saved_inputs", "saved_shapes",
        "subgradients", "saves_output", "frees", "oracle", "array", "costly", "differentiable", "save", "refuses",
        "product", "literal", "versions", "casts", "copies", "form_only", "fill", "neutral", "involution",
        "indexed", "parts", "refusals",
    )  # fmt: skip

    rules: tuple[Rule | None, ...]
    saves: tuple[str, ...]
    saved_inputs: tuple[int, ...]
    saved_shapes: tuple[int, ...]
    saves_output: bool
    frees: bool
    backward: Callable[..., tuple[Any, ...]]
    save: Callable[[Sequence[Any], Any], tuple[Any, ...]]
    differentiable: bool
    samples: Callable[..., Any]
    scalar: Callable[..., Any]
    result: str
    domain: str
    costly: bool
    product: bool
    literal: bool
    refuses: str
    refusals: tuple[str, ...]
    versions: tuple[float, ...]
    casts: bool
    copies: bool
    form_only: bool
    fill: float | str | None
    neutral: tuple[tuple[int, float], ...]
    involution: bool
    indexed: IndexUse | None
    parts: str
    reduce: Any
    strided: Callable[..., Any]
    native: Callable[..., Sequence[NativeCall]]
    forward: Callable[..., Any] | None
    oracle: Callable[..., Any]
    array: Callable[..., Any]
    subgradients: Sequence[Subgradient]

    def __init__(
        self,
        name: str,
        kind: str,
        inputs: tuple[str, ...],
        spec: Callable[..., Any],
        rules: Sequence[Callable[..., Any] | None],
        doc: str,
        *,
        node_name: str | None = None,
        nout: int = 1,
        attrs: tuple[str, ...] = (),
        **fields: Any,
    ) -> None:
        self.name, self.kind, self.inputs, self.doc = name, kind, inputs, doc
        self.spec = sound(name, spec)
        self.rules = tuple(rules) + (None,) * (len(inputs) - len(rules))
        self.node_name = (node_name or "".join(w.capitalize() for w in name.split("_"))) + "Backward0"
        self.nout, self.attrs = nout, attrs
        for field, value in fields.items():
            assert field in DEFAULTS, f"unknown field {field} of op {name}"
            setattr(self, field, value)
        self.set_rules(self.rules)
        assert not dict.__contains__(REGISTRY, name), f"op {name} is registered twice"
        REGISTRY[name] = self

    def set_rules(self, rules: Sequence[Callable[..., Any] | None]) -> None:
        """Install gradient rules; also what the mutation tests use to break one."""
        self.rules = tuple(rules)
        named = [rule_parameters(rule) if rule else () for rule in self.rules]
        wanted = {n for names in named for n in names}
        shapes = tuple(f"{n}_shape" for n in self.inputs)
        unknown = wanted - {"g", *OUTPUTS, *self.inputs, *shapes, *self.attrs}
        assert not unknown, f"a rule of {self.name} names {sorted(unknown)}"
        self.saved_inputs = tuple(i for i, n in enumerate(self.inputs) if n in wanted)
        self.saved_shapes = tuple(i for i, n in enumerate(shapes) if n in wanted)
        outputs = tuple(n for n in OUTPUTS if n in wanted)
        assert len(outputs) < 2, f"rules of {self.name} name {outputs}: one of them is saved"
        self.saves_output = bool(outputs)
        self.frees = bool(self.saved_inputs) or self.saves_output
        self.saves = (
            *(self.inputs[i] for i in self.saved_inputs),
            *(shapes[i] for i in self.saved_shapes),
            *outputs,
        )
        for made_of_rules in ("backward", "save"):
            with suppress(AttributeError):
                delattr(self, made_of_rules)
        self.differentiable = any(rule is not None for rule in self.rules)
        for notify in rules_changed:
            notify(self)

    def __getattr__(self, name: str) -> Any:
        """Make what follows from the rules when it is first asked for: most programs use few ops."""
        if name in _MAKERS:
            made = _MAKERS[name](self)
        elif name in DEFAULTS:
            made = DEFAULTS[name]
        else:
            raise AttributeError(f"an op has no attribute {name!r}")
        setattr(self, name, made)
        return made

    def __call__(self, *operands: Any, **attrs: Any) -> Any:
        """Run the op by the engine of its operands."""
        return apply(self, operands, attrs)

    def __repr__(self) -> str:
        return f"<op {self.name}>"

    def __reduce__(self) -> Any:
        """The op of that name: there is one, of which copies are not told apart."""
        return _named, (self.name,)


def _named(name: str) -> Op:
    return REGISTRY[name]


def _subgradients(op: Op) -> Sequence[Subgradient]:
    from common.core.subgradients import TABLE

    return TABLE.get(op.name, ())


_MAKERS: dict[str, Callable[[Op], Any]] = {
    "backward": generate_backward, "save": generate_save, "subgradients": _subgradients,
}  # fmt: skip


def sound(name: str, spec: Callable[..., Any]) -> Callable[..., Any]:
    """The function for an op's results, refusing sizes and dtypes that no memory has: kernels rely on both.

    Raises
    ------
    ArgumentError, ShapeError : a size that is no int, or is negative.
    DTypeError : a dtype without ops.
    """

    def found(*specs: Spec, **attrs: Any) -> Any:
        result = spec(*specs, **attrs)
        for out in out_specs(result):
            if out.dtype not in SUPPORTED:
                raise unsupported(out.dtype, f"{name}(): ")
            for size in out.shape:
                if type(size) is not int and not isinstance(size, Dim):
                    lengths(out.shape, name)
        return result

    return found


def out_specs(result: Spec | tuple[Spec, ...]) -> tuple[Spec, ...]:
    """Specs of all outputs as a tuple."""
    return (result,) if isinstance(result, Spec) else result
