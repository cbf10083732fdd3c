"""Calls while kernels compile: interpreted, with the same bits, until machine code is there.

``function(compile="background")``. A thread lowers the program and compiles its kernels, one after the other; LLVM does
its part without the interpreter's lock. Calls that come meanwhile run node by node with the eager kernels, one call at
a time, so that they are as exact under concurrency as compiled ones. What goes wrong in the thread goes wrong again,
with the same error, in the call that finds it stopped. When the main thread ends, so does this one, after the kernel at
hand.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from common.compiler.compile import is_asked_for
from common.core.locks import make_lock
from common.core.polynomials import Atom
from static.running.interpreter import Interpreted

if TYPE_CHECKING:
    from static.graph import Graph
    from static.running.executable import Executable

_one_at_a_time = make_lock(runs_user_code=True)


class _Stopped(Exception):
    """The process is about to end."""


class Compilation:
    """A program that is being compiled.

    Parameters
    ----------
    graph : what is interpreted meanwhile.
    make : lowers it.

    Attributes
    ----------
    interpreted : how many calls have been interpreted.
    """

    def __init__(self, graph: Graph, make: Callable[[], Executable]) -> None:
        self.graph, self._make, self.interpreted = graph, make, 0
        self._made: Executable | None = None
        self._thread = threading.Thread(target=self._run, name="twingrad-compile")
        self._thread.start()

    def _run(self) -> None:
        try:
            made = self._make()
            made.load(_give_way)
            self._made = made
        except Exception:
            return

    @property
    def done(self) -> bool:
        """Whether the thread has ended, with a program or without."""
        return self._made is not None or not self._thread.is_alive()

    @property
    def executable(self) -> Executable:
        """The program, when no call is interpreted any more; made here and now if the thread could not.

        Raises
        ------
        CompileError : what stopped the thread.
        """
        with _one_at_a_time:
            if self._made is None:
                self._made = self._make()
                self._made.load(lambda: None)
            return self._made


def _give_way() -> None:
    """Let calls that need a kernel go first, and end with the process."""
    while is_asked_for():
        time.sleep(0.0005)
    if not threading.main_thread().is_alive():
        raise _Stopped


class UntilCompiled:
    """A plan that interprets until its program is compiled; then it is outdated, but works on.

    Attributes
    ----------
    env : the sizes for which it was made.
    """

    def __init__(self, compilation: Compilation, env: Mapping[Atom, int]) -> None:
        self.env = dict(env)
        self._compilation = compilation

    @property
    def outdated(self) -> bool:
        """Whether there is a better plan by now."""
        return self._compilation.done

    def __call__(self, *arrays: Any) -> Any:
        """The outputs for arrays, in the order of the graph's inputs."""
        compilation = self._compilation
        with _one_at_a_time:
            if not compilation.done:
                compilation.interpreted += 1
                return Interpreted(compilation.graph, self.env)(*arrays)
        return compilation.executable.plan(self.env)(*arrays)
