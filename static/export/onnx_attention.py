"""Attention and its gradients in ONNX: products of whole matrices and a softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from static.export.onnx_ops import MADE, Writer, rule
from static.graph import Node


@rule("attention")
def _attention(w: Writer, node: Node, x: list[str]) -> str:
    made: str = w.add("MatMul", [w.add("Softmax", [_scores(w, node, x)], axis=-1), x[2]])
    return made


@rule("attention_backward")
def _attention_backward(w: Writer, node: Node, x: list[str]) -> list[str]:
    return _gradients(w, x[:3], x[3], w.add("Softmax", [_scores(w, node, x)], axis=-1))


@rule("attention_masked")
def _attention_masked(w: Writer, node: Node, x: list[str]) -> str:
    made: str = w.add("MatMul", [_masked_weights(w, node, x), x[2]])
    return made


@rule("attention_masked_backward")
def _attention_masked_backward(w: Writer, node: Node, x: list[str]) -> list[str]:
    return _gradients(w, x[:3], x[4], _masked_weights(w, node, x))


def _gradients(w: Writer, x: list[str], cotangent: str, weights: str) -> list[str]:
    query, key, value = x
    slopes = w.add("MatMul", [cotangent, _turned(w, value)])
    last = w.constant(np.array([-1], np.int64))
    mean = w.add("ReduceSum", [w.add("Mul", [slopes, weights]), last], keepdims=1)
    slopes = w.add("Mul", [weights, w.add("Sub", [slopes, mean])])
    products = (slopes, key), (_turned(w, slopes), query), (_turned(w, weights), cotangent)
    return [w.add("MatMul", list(both)) for both in products]


def _turned(w: Writer, x: str) -> str:
    made: str = w.add("Transpose", [x], perm=[0, 2, 1])
    return made


def _masked_weights(w: Writer, node: Node, x: list[str]) -> str:
    """Softmax of masked scores, as (count, items of a mask, m, n) in between; 0 in rows that see nothing."""
    scores, mask, low = w.add("MatMul", [x[0], _turned(w, x[1])]), x[3], w.number(-math.inf, node)
    if node.operands[3].dtype.kind == "b":
        mask = w.add("Where", [mask, w.number(0, node), low])
    places = [w.constant(np.array(place, np.int64)) for place in ([0], [-1], [1], [1, 2])]
    sizes = w.add("Shape", [scores])
    shape = [w.add("Gather", [w.add("Shape", [mask]), places[0]]), places[1], w.add("Gather", [sizes, places[3]])]
    parted = w.add("Reshape", [scores, w.add("Concat", shape, axis=0)])
    mask = w.add("Unsqueeze", [mask, places[2]])
    blind = w.add("Equal", [w.add("ReduceMax", [mask, places[1]], keepdims=1), low])
    masked = w.add("Where", [blind, w.number(0, node), w.add("Add", [parted, mask])])
    weights = w.add("Where", [blind, w.number(0, node), w.add("Softmax", [masked], axis=-1)])
    made: str = w.add("Reshape", [weights, sizes])
    return made


def _scores(w: Writer, node: Node, x: list[str]) -> str:
    """Products of queries and keys; -inf for those that a causal row does not see."""
    scores: Any = w.add("MatMul", [x[0], _turned(w, x[1])])
    if node.attrs["causal"]:
        ones = w.add("Expand", [w.number(1, node), w.add("Shape", [scores])])
        seen = w.add("Greater", [w.add("Trilu", [ones], upper=0), w.number(0, node)])
        scores = w.add("Where", [seen, scores, w.number(-math.inf, node)])
    return scores


MADE.update(("attention", "attention_backward", "attention_masked", "attention_masked_backward"))
