"""Rules and composites as straight lines of calls, for the eager engine.

A rule such as ``lambda g, y: g * (1 - y * y)`` is run once on terms that know shape and dtype and write down what is
computed. The result is a function that calls the native builtins and recipes of `common.evaluate.specialise` one after
the other: the same ops in the same order, hence the same bits, without dispatch, shape arithmetic and numpy's ufuncs
(benchmarks/gates/test_chain.py). Un-broadcasting and casts of contributions are part of it. Elementwise ops that
follow each other are one kernel (`common.evaluate.fused_lines`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np

from common.core.dtypes import compute_dtypes, operand_dtypes
from common.core.interpretation import Interpretation
from common.core.op import REGISTRY, Op
from common.core.python_numbers import Int, Number, weak
from common.core.rule_code import joint_place, rule_parameters
from common.core.spec import Spec
from common.core.unbroadcast import fit
from common.evaluate.fused_columns import scratch
from common.evaluate.fused_lines import DelayedOp, fused, fused_sum
from common.evaluate.fused_rows import DelayedReduction, fused_rows
from common.evaluate.kernels import fast, form_spec
from common.evaluate.kinds import number, spread
from common.evaluate.known_numbers import by_values
from common.evaluate.layouts import dense, lies_apart
from common.evaluate.line_terms import (
    NotStraightError,
    Term,
    function_of,
    give_operators,
    is_new,
    released,
    shared_results,
    without_ones,
    write_sums,
)
from common.evaluate.specialise import NUMBERS, Recipe, recipe, run

Backward = Callable[..., tuple[Any, ...]]
Step = tuple[Op, Sequence[Any], Mapping[str, Any], Sequence[str]]

#: Terms are never seen by users, so expansions of up to this many elements are written out: views cost more.
SMALL = 1 << 14


class _Trail(Interpretation):
    """The lines written so far, and the functions and constants that they name.

    Parameters
    ----------
    by_rows : whether sums over rows wait for what is made of them, see `common.evaluate.fused_rows`.

    Attributes
    ----------
    made : what kernels and views of the lines that run whenever the next one does have made, by recipe and operands.
    """

    def __init__(self, by_rows: bool = False) -> None:
        give_operators()
        self.by_rows = by_rows
        self.scope: dict[str, Any] = {}
        self.lines: list[str] = []
        self.made: dict[Any, Any] = {}

    def name(self, value: Any) -> str:
        """A global name for a value."""
        name = f"k{len(self.scope)}"
        self.scope[name] = value
        return name

    def constant(self, x: np.ndarray) -> Term:
        """An array that follows from forms, such as indices that a rule counts out."""
        if x.size > SMALL:
            raise NotStraightError
        return Term(self.name(x), Spec(x.shape, x.dtype), self)

    def let(self, text: str, spec: Any) -> Any:
        """A variable for a call's result."""
        name = f"v{len(self.lines)}"
        self.lines.append(f"{name} = {text}")
        if isinstance(spec, tuple) and not isinstance(spec, Spec):
            return tuple(Term(f"{name}[{i}]", each, self) for i, each in enumerate(spec))
        return Term(name, spec, self)

    def record(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """Write down the application of an op."""
        operands = [self.constant(x) if type(x) is np.ndarray else x for x in operands]
        if not all(isinstance(x, (Term, *NUMBERS)) for x in operands):
            raise NotStraightError
        operands = [float(x) if type(x) is Number else int(x) if type(x) is Int else x for x in operands]
        if all(not isinstance(x, Term) or isinstance(x.spec, type) for x in operands):
            raise NotStraightError  # arithmetic of numbers
        if op.kind == "composite" and op.reduce is None:
            return op.forward(*operands, **attrs)  # type: ignore[misc]
        if any(isinstance(x, Term) and isinstance(x.spec, Spec) and x.spec.shape is None for x in operands):
            return self._shapeless(op, operands, attrs)
        if op.name == "reshape" and (alone := without_ones(operands[0], attrs["new_shape"])) is not None:
            return self.record(REGISTRY["sum"], (alone.operand,), {"dim": alone.dim, "keepdim": False})
        if op.name == "where" and operands[1] is operands[2] and is_new(operands[1], operands[0], self.made):
            return operands[1]  # rows of a table of which one gets no gradient, where none is wanted
        forms: Any = tuple(
            (x.spec if isinstance(x.spec, type) else x.spec[:2]) if isinstance(x, Term) else type(x) for x in operands
        )
        found: Any = recipe(op, forms, attrs)
        if found.spec is None:
            return op.forward(*operands, **attrs)  # type: ignore[misc]
        if op.name == "expand" and prod(found.spec.shape) <= SMALL:
            (shape, dtype), target = forms[0], found.spec
            builtin, otherwise = spread(shape, dtype, target.shape)
            if builtin is not None:
                return self._builtin(builtin, otherwise, dtype, operands, target)
            return self.let(f"{self.name(otherwise)}({operands[0].text})", target)
        if op.kind in ("kernel", "view"):
            key = (found, *[x if isinstance(x, Term) else repr(x) for x in operands])
            if key not in self.made:
                self.made[key] = made = self._written(found, operands)
                if op.kind == "view" and isinstance(made.spec, Spec):
                    made.apart = lies_apart(op, forms[0], attrs)
            return self.made[key]
        if op.kind == "reduction" and op.reduce in ("sum", "max"):
            made = DelayedReduction(op.reduce, operands[0], attrs["dim"], found.builtin or found.run, found.run)
            if self.by_rows and (made.may_wait(found.spec) or made.is_of_columns()):
                return Term("", found.spec, self, made)
            return self._reduced(made, found.spec)
        if op.kind == "elementwise" and (not attrs or op.casts) and found.builtin is not None:
            made = DelayedOp(op, tuple(operands), found.builtin, found.run, found.dtype, attrs)
            return self._elementwise(made, found.spec)
        return self._written(found, operands)

    def _written(self, found: Recipe, operands: Sequence[Any]) -> Any:
        """An op that is written down at once."""
        if found.builtin is None or not isinstance(found.spec, Spec):
            texts = [x.text if isinstance(x, Term) else self.name(x) for x in operands]
            return self.let(f"{self.name(found.run)}({', '.join(texts)})", found.spec)
        return self._builtin(found.builtin, found.run, found.dtype, operands, found.spec)

    def _elementwise(self, made: DelayedOp, spec: Any) -> Term:
        """An elementwise op; of one float dtype it is written down later."""
        if made.is_fusible(spec):
            return Term("", spec, self, made)
        return self._builtin(made.builtin, made.otherwise, made.dtype, made.operands, spec)

    def _reduced(self, made: DelayedReduction, spec: Any) -> Term:
        total = fused_sum(made.operand, made.dim, spec) if made.kind == "sum" else None
        if total is None:
            return self._builtin(made.builtin, made.otherwise, spec.dtype, (made.operand,), spec)
        return self._builtin(total.builtin, total.otherwise, spec.dtype, total.inputs, spec)

    def results(self, terms: Sequence[Term]) -> list[str]:
        """The names of what a composite returns; what it returns beside a first result of rows is one kernel's."""
        first, *others = terms
        waiting = [x for x in others if not x.written]
        found = None
        if self.by_rows and waiting and not first.written and type(first.made) is DelayedOp:
            found = fused_rows(first, waiting)
        if found is not None:
            for x in waiting:
                x.written = self.let(f"{self.name(np.empty)}({x.spec.shape}, {self.name(x.spec.dtype)})", x.spec).text
            builtin, otherwise, inputs = found
            first.written = self._builtin(builtin, otherwise, first.spec.dtype, [*inputs, *waiting], first.spec).text
        for x in reversed(terms):  # the first is often made of the others
            x.text  # noqa: B018
        return [x.text for x in terms]

    def join(self, terms: Sequence[Any]) -> None:
        """Write down a delayed term of rows, and sums over columns of what has its shape, as one kernel."""
        root, *others = terms
        sums = [x for x in others if not x.written and type(x.made) is DelayedReduction and x.made.is_of_columns()]
        sums = [x for x in sums if x.made.operand.spec[:2] == root.spec[:2] == (root.spec.shape, x.spec.dtype)]
        found = fused_rows(root, (), sums) if sums and not root.written and type(root.made) is DelayedOp else None
        if found is None:
            return
        held, dtype = scratch(prod(root.spec.shape[: len(sums[0].made.dim)]), prod(sums[0].spec.shape)), root.spec.dtype
        more = []
        for x in sums:
            arrays = [self.let(f"{self.name(np.empty)}({n}, {self.name(dtype)})", x.spec) for n in (x.spec.shape, held)]
            x.written = arrays[0].text
            more += arrays
        root.written = self._builtin(found.builtin, found.otherwise, dtype, [*found.inputs, *more], root.spec).text

    def write(self, term: Term) -> str:
        """Write down a delayed op, in one kernel with those that only it needs; the name of its result."""
        made = term.made
        if type(made) is DelayedReduction:
            return self._reduced(made, term.spec).text
        assert type(made) is DelayedOp
        found = fused_rows(term) if self.by_rows else None
        if found is None:
            write_sums(term)
            found = fused(term)
        if found is None:
            return self._builtin(made.builtin, made.otherwise, made.dtype, made.operands, term.spec).text
        builtin, otherwise, inputs = found
        for x in inputs:  # what no kernel reads where it lies is copied once for all
            if x.apart:
                x.written, x.apart = self.let(f"{self.name(dense)}({x.text})", x.spec).text, False
        return self._builtin(builtin, otherwise, made.dtype, inputs, term.spec).text

    def _shapeless(self, op: Op, operands: Sequence[Any], attrs: Mapping[str, Any]) -> Any:
        """An elementwise op on operands of one shape, which is not known; and numbers."""
        if op.kind != "elementwise" or attrs:
            raise NotStraightError
        kinds = [x.spec if isinstance(x, Term) else type(x) for x in operands]
        specs = [form_spec(x) if isinstance(x, type) else Spec((2,), x.dtype) for x in kinds]
        dtype, out_dtype, _ = compute_dtypes(op, specs)
        wanted = operand_dtypes(op, specs)
        if any(not isinstance(x, type) and x.dtype != d for x, d in zip(kinds, wanted, strict=True)):
            raise NotStraightError
        builtin = fast(op.name, tuple(wanted), out_dtype)
        made = DelayedOp(op, tuple(operands), builtin, lambda *xs: run(op, xs, {}), dtype)
        return self._elementwise(made, Spec(None, out_dtype))  # type: ignore[arg-type]

    def _builtin(self, builtin: Any, otherwise: Any, dtype: np.dtype, operands: Sequence[Any], spec: Any) -> Term:
        texts, plain = [], []
        for x in operands:
            if not isinstance(x, Term):
                texts.append(self.name(number(x, dtype)))
                plain.append(self.name(x))
            else:
                is_number = isinstance(x.spec, type)
                texts.append(f"{self.name(number)}({x.text}, {self.name(dtype)})" if is_number else x.text)
                plain.append(x.text)
        term: Term = self.let(f"{self.name(builtin)}({', '.join(texts)})", spec)
        # a builtin declines what is not contiguous
        self.lines.append(f"if {term.text} is None: {term.text} = {self.name(otherwise)}({', '.join(plain)})")
        return term

    def function(self, head: str, lines: Sequence[str]) -> Any:
        """The function of a head and lines."""
        return function_of(head, lines, self.scope)


def straight_forward(self: Recipe) -> Callable[..., Any] | None:
    """A composite as straight lines, None if its ops follow from more than forms; also sets the result's spec."""
    trail = _Trail(by_rows=True)
    names = [f"x{i}" for i in range(len(self.forms))]
    try:
        terms = [Term(n, _spec(form), trail) for n, form in zip(names, self.forms, strict=True)]
        out = self.op.forward(*terms, **self.attrs)  # type: ignore[misc]
        texts = ", ".join(trail.results(out)) if isinstance(out, tuple) else out.text
        self.spec = tuple(term.spec for term in out) if isinstance(out, tuple) else out.spec
    except Exception:  # what is not special to terms comes again from the arrays
        return None
    return trail.function(f"forward({', '.join(names)})", released([*trail.lines, f"return {texts}"]))


def straight_steps(
    specs: Mapping[str, Spec], steps: Sequence[Step], results: Sequence[str]
) -> Callable[..., tuple[np.ndarray, ...]] | None:
    """``f(*arrays)``: ops one after the other, and the results asked for; None if they follow from more than forms.

    Parameters
    ----------
    specs : of the arrays, by name.
    steps : op, operands, attributes, and names of the results; an operand is a name, a number, or an array.
    results : names of those asked for.
    """
    trail = _Trail(by_rows=True)
    terms = {name: Term(name, spec, trail) for name, spec in specs.items()}

    def term(x: Any) -> Any:
        return terms[x] if isinstance(x, str) else x

    try:
        for op, operands, attrs, names in steps:
            made = trail.record(op, [term(x) for x in operands], attrs)
            terms.update(zip(names, made if isinstance(made, tuple) else (made,), strict=True))
        texts = trail.results([terms[name] for name in results])
        if len({*texts}) < len(texts):  # two tensors would share memory
            return None
    except Exception:  # what is not special to terms comes again from the arrays
        return None
    lines = [*trail.lines, f"return ({''.join(f'{text}, ' for text in texts)})"]
    made_of: Callable[..., tuple[np.ndarray, ...]] = trail.function(f"forward({', '.join(specs)})", released(lines))
    return made_of


def _spec(form: Any) -> Any:
    return form if isinstance(form, type) else Spec(*form)


def straight_backward(self: Recipe, otherwise: Backward) -> Backward | None:
    """The rules of an op as straight lines for operands of these forms; None if they follow from more than forms."""
    if self.spec is None:
        return None
    if self.op.nout == 1:
        lines = _straight(self, ())
        numbers = [place for place, i in enumerate(self.op.saved_inputs) if isinstance(self.forms[i], type)]
        return by_values(partial(_straight, self, ()), numbers, lines or otherwise) if numbers else lines
    known: dict[tuple[bool, ...], Backward] = {}

    def backward(saved: Any, attrs: Any, g: Any, needs: Any) -> tuple[Any, ...]:
        """Lines for each choice of results that have a cotangent, and of operands that need one."""
        choice = tuple([x is not None for x in (*g, *needs)])
        if choice not in known:
            known[choice] = _straight(self, choice) or otherwise
        return known[choice](saved, attrs, g, needs)

    return backward


def _straight(self: Recipe, choice: tuple[bool, ...], values: Sequence[Any] = ()) -> Backward | None:
    """The lines; where there are several results, for one choice of them and of operands.

    Parameters
    ----------
    values : of the numbers among what is saved, or nothing: the lines are for all.
    """
    op, forms = self.op, self.forms
    trail = _Trail(by_rows=True)
    known: dict[str, Any] = dict(self.attrs)
    numbers = iter(values)
    for place, i in enumerate(op.saved_inputs):
        of_number = values and isinstance(forms[i], type)
        known[op.inputs[i]] = weak(next(numbers)) if of_number else Term(f"s{place}", _spec(forms[i]), trail)
    for i in op.saved_shapes:
        known[f"{op.inputs[i]}_shape"] = forms[i][0]
    if op.nout == 1:
        known["g"], known["y"] = Term("g", self.spec, trail), Term("y", self.spec, trail)
    else:
        terms = (Term(f"g{i}", spec, trail) for i, spec in enumerate(self.spec))
        known["g"] = tuple(term if there else None for term, there in zip(terms, choice[: op.nout], strict=True))
        known["y"] = tuple(Term(f"y[{i}]", spec, trail) for i, spec in enumerate(self.spec))
        known["rest"] = (None, *known["y"][1:])
        known["first"] = (known["y"][0], *(None for _ in known["y"][1:]))
    lines = _unpack(op)
    body = _rules(op, known, trail, forms, choice[op.nout :])
    if body is None:
        return None
    if op.nout > 1:
        lines.append(f"{''.join(f'g{i}, ' for i in range(op.nout))}= g")
    return trail.function("backward(saved, attrs, g, needs)", [*lines, *body])


def straight_rules(op: Op, forms: Sequence[np.dtype | type], dtype: np.dtype) -> Backward | None:
    """``backward(saved, attrs, g, needs)`` of an elementwise op for operands of one shape, whichever.

    Parameters
    ----------
    forms : per operand its dtype, or the type of a number.
    dtype : of the result.
    """
    trail = _Trail()
    specs: list[Any] = [x if isinstance(x, type) else Spec(None, x) for x in forms]  # type: ignore[arg-type]
    own: Any = Spec(None, dtype)  # type: ignore[arg-type]
    known = {name: Term(name, own, trail) for name in ("g", "y")}
    known |= {op.inputs[i]: Term(f"s{place}", specs[i], trail) for place, i in enumerate(op.saved_inputs)}
    body = None if op.saved_shapes else _rules(op, known, trail, None, numbers=[isinstance(x, type) for x in forms])
    return None if body is None else trail.function("backward(saved, attrs, g, needs)", [*_unpack(op), *body])


def _unpack(op: Op) -> list[str]:
    names = [f"s{i}" for i in range(len(op.saves))]
    if op.saves_output:
        names[-1] = "y"
    return [f"{''.join(f'{n}, ' for n in names)}= saved"] if names else []


def _rules(
    op: Op, known: Mapping[str, Any], trail: _Trail, forms: Any, needed: Sequence[bool] = (), numbers: Any = None
) -> list[str] | None:
    """The lines of all rules: of those that are needed, or, if that is not known, each behind a test whether it is."""
    results: dict[int, Any] = {}
    numbers = [isinstance(form, type) for form in forms] if numbers is None else numbers
    try:
        shared = shared_results(op, known)
    except Exception:  # as below
        return None
    body = [] if needed else [*trail.lines]
    for i, rule in enumerate(op.rules):
        body.append(f"c{i} = None")
        if rule is None or numbers[i] or (needed and not needed[i]):
            continue
        start = len(trail.lines)
        if not needed:
            trail.made.clear()  # the lines of another rule may be left out
        try:
            names = rule_parameters(rule)
            result = rule(*(known[name] for name in names)) if (place := joint_place(rule)) is None else shared[place]
            if result is None:
                continue
            results[i] = fit(result, *forms[i]) if forms is not None else result
            if not needed:
                last = f"c{i} = {results[i].text}"  # asking for the text writes lines
                body += [f"if needs[{i}] is not None:", *(f"    {line}" for line in [*trail.lines[start:], last])]
        except Exception:  # what is not special to terms comes again from the arrays
            return None
    if needed:
        if len(results) > 1:
            trail.join(list(results.values()))
        texts = [f"c{i} = {result.text}" for i, result in results.items()]
        body += [*trail.lines, *texts]
    return [*body, f"return ({''.join(f'c{i}, ' for i in range(len(op.rules)))})"]
