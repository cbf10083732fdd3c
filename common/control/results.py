"""Results of branches made alike: a Python number takes the dtype of the tensor in its place elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from common.control.body import Body
from common.control.mismatches import outputs
from common.control.structures import Said, TreeSpec, number, tensors, with_numbers
from common.core.dtypes import bool_
from common.core.spec import Spec
from common.tensor.base import TensorBase


class Results:
    """The results of all branches of a construct.

    Parameters
    ----------
    name : of the construct.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._forms: list[tuple[Said, TreeSpec]] = []
        self._roles: list[str] = []
        self._numbers: list[dict[int, Any]] = []
        self._agreed = False

    @property
    def structure(self) -> Any:
        """That of every branch's result."""
        return self._forms[0][1].structure

    def of(self, role: str, function: Callable[..., Any], result: Any) -> list[TensorBase]:
        """The leaves of what the next branch returns.

        Raises
        ------
        ArgumentError : one is neither a number nor an array nor a tensor.
        """
        numbers: dict[int, Any] = {}
        first = self._forms[0][1] if self._forms else None
        leaves, structure = tensors(result, f"{self._name}: the result of {role}", first, numbers)
        self._roles.append(role)
        self._forms.append((Said(f"the result of {role} ({{}})", function), TreeSpec(structure, leaves)))
        self._numbers.append(numbers)
        return leaves

    def settle(self, i: int, body: Body) -> None:
        """Give the numbers that branch i returns their dtypes, once all branches are known.

        Raises
        ------
        ArgumentError, ShapeError, DTypeError : two branches differ; the message shows both.
        """
        if not self._agreed:
            self._agree()
        specs = self._forms[i][1].specs
        for k, x in self._numbers[i].items():
            if body.carried[k].dtype != specs[k].dtype:
                body.carried[k] = number(x, specs[k].dtype)

    def _agree(self) -> None:
        first = self._forms[0]
        if all(form.structure == first[1].structure for _, form in self._forms):
            for k in {k for numbers in self._numbers for k in numbers}:
                given = [numbers[k] for numbers in self._numbers if k in numbers]
                beside = [
                    form.specs[k].dtype for (_, form), numbers in zip(self._forms, self._numbers) if k not in numbers
                ]
                dtype = with_numbers(beside[0] if beside else bool_, given)
                for (_, form), numbers in zip(self._forms, self._numbers):
                    if k in numbers:
                        form.specs[k] = Spec((), dtype)
        for other, role in zip(self._forms, self._roles):
            if not first[1].is_like(other[1]):
                pair = [(*first, self._roles[0]), (*other, role)]
                (a, form, one), (b, another, two) = reversed(pair) if self._name == "cond" else pair
                outputs(self._name, Said(f"{self._name}: {a.text}", a.function), b, (one, two)).require_equal(
                    form, another
                )
        self._agreed = True
