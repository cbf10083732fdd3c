"""numba's typing and target contexts, reduced to the contents of kernels: integers, loops, comparisons.

The standard CPU contexts register everything that numba supports, which takes 0.28 s in each process before
the first function is compiled; these take 0.02 s.
"""

# numba comes without types: its classes are Any, and so are its decorators.
# mypy: disable-error-code="misc, untyped-decorator"

from __future__ import annotations

from functools import cache
from typing import Any

from numba.core import cpu, types, typing
from numba.core.typing.templates import RegistryLoader, _OverloadFunctionTemplate, builtin_registry


class KernelTypingContext(typing.Context):
    """Resolves the types of kernel source; every resolution is a pure function of the types and is kept."""

    def load_additional_registries(self) -> None:
        """Load none: math, arrays, lists and dictionaries are not part of kernel source."""

    def _load_builtins(self) -> None:
        from numba.core.typing import builtins  # noqa: F401  (registers itself)

        # Without overloads: making a template of one loads the whole standard context, scipy included.
        loader = self._registries.setdefault(builtin_registry, RegistryLoader(builtin_registry))
        for template in loader.new_registrations("functions"):
            if not issubclass(template, _OverloadFunctionTemplate):
                self.insert_function(template(self))
        for template in loader.new_registrations("attributes"):
            if getattr(template, "key", None) is types.NumberClass:
                self.insert_attributes(template(self))
        for value, value_type in loader.new_registrations("globals"):
            templates = getattr(value_type, "templates", ())
            if any(issubclass(template, _OverloadFunctionTemplate) for template in templates):
                continue
            known = self._lookup_global(value)
            if known is not None:
                self._remove_global(value)
            self._insert_global(value, value_type if known is None else known.augment(value_type))

    def resolve_value_type(self, val: Any) -> Any:
        """Return the type of a global; of ``range`` without numba's search, which imports its containers."""
        known = self._lookup_global(val) if val is range else None
        return super().resolve_value_type(val) if known is None else known

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """Return the signature of a call, from memory where the same call has been resolved before."""
        if kws:
            return super().resolve_function_type(func, args, kws)
        key = func, tuple(args)
        known = self._resolved.get(key)
        if known is None:
            known = super().resolve_function_type(func, args, kws)
            if known is not None:
                self._resolved[key] = known
        return known

    def init(self) -> None:
        """Start with an empty memory."""
        self._resolved: dict[Any, Any] = {}


class KernelTargetContext(cpu.CPUContext):
    """Lowers kernel source for the host CPU."""

    def load_additional_registries(self) -> None:
        """Load the implementations of integers, comparisons and ``range``."""
        from numba.core import optional  # noqa: F401
        from numba.cpython import builtins, iterators, numbers, rangeobj, tupleobj  # noqa: F401

    def post_lowering(self, module: Any, library: Any) -> None:
        """Add nothing: the reference counting runtime has nothing to count."""


@cache
def contexts() -> tuple[KernelTypingContext, KernelTargetContext]:
    """Return the two contexts of the process."""
    typing_context = KernelTypingContext()
    return typing_context, KernelTargetContext(typing_context)
