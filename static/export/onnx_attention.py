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
    query, key, value, cotangent = x[:4]
    weights = w.add("Softmax", [_scores(w, node, x)], axis=-1)
    slopes = w.add("MatMul", [cotangent, _turned(w, value)])
    last = w.constant(np.array([-1], np.int64))
    mean = w.add("ReduceSum", [w.add("Mul", [slopes, weights]), last], keepdims=1)
    slopes = w.add("Mul", [weights, w.add("Sub", [slopes, mean])])
    products = (slopes, key), (_turned(w, slopes), query), (_turned(w, weights), cotangent)
    return [w.add("MatMul", list(both)) for both in products]


def _turned(w: Writer, x: str) -> str:
    made: str = w.add("Transpose", [x], perm=[0, 2, 1])
    return made


def _scores(w: Writer, node: Node, x: list[str]) -> str:
    """Products of queries and keys; -inf for those that a causal row does not see."""
    scores: Any = w.add("MatMul", [x[0], _turned(w, x[1])])
    if node.attrs["causal"]:
        ones = w.add("Expand", [w.number(1, node), w.add("Shape", [scores])])
        seen = w.add("Greater", [w.add("Trilu", [ones], upper=0), w.number(0, node)])
        scores = w.add("Where", [seen, scores, w.number(-math.inf, node)])
    return scores


MADE.update(("attention", "attention_backward"))
