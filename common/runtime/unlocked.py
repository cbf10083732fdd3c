"""Programs that run without Python's lock: each call has memory of its own, and objects are only looked at.

The function is that of `common.runtime.run_text`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from common.compiler.compile import load_native
from common.runtime import cpython_abi
from common.runtime.bound_program import GIVEN, HELD, payload_address
from common.runtime.call_text import builtin_source
from common.runtime.program_plan import ProgramPlan

ALIGNMENT = 64


@dataclass(eq=False)
class FreeProgram:
    """A program for code that calls it by address.

    Attributes
    ----------
    address : of the function.
    table : its first argument.
    nbytes : how much memory a call needs.
    keep : what the table points to.
    """

    address: int
    table: np.ndarray
    nbytes: int
    keep: list[Any]


def make_free(plan: ProgramPlan, state: Sequence[Any], arena_bytes: int) -> FreeProgram:
    """A plan as a program that runs without Python's lock.

    Parameters
    ----------
    state : per argument the tensor or array in which it is found; None if it is given.
    arena_bytes : how much memory the plan's places need.
    """
    cpython_abi.define_symbols()
    address = load_native(builtin_source("free"), "twingrad_builtin_free")
    keep, sources = [plan.keep, *state], []
    for x, argument in zip(state, plan.arguments, strict=True):
        array = x if x is None or isinstance(x, np.ndarray) else x.payload
        keep.append(array)
        cell = 0 if x is None else payload_address(x, keep)
        sources.append((GIVEN if x is None else HELD, cell, id(array), id(argument.dtype)))
    records, code = (words.at(plan.numbers) for words in (plan.records(sources)[0], plan.code))
    frame = plan.start().copy()
    frame[plan.places] -= plan.base
    start, most = 8, plan.most_buffers
    offsets = np.cumsum([start, len(records), len(code), len(frame)]).tolist()
    head = [len(sources), offsets[0], offsets[1], len(frame), offsets[2], len(plan.places), offsets[3], most]
    table = np.array([*head, *records, *code, *frame, *plan.places], np.int64)
    return FreeProgram(address, table, 8 * (len(frame) + most) + ALIGNMENT + arena_bytes, keep)
