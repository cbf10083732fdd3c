"""Convolutions and their gradients in ONNX."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from common.core.sizes import hint
from static.export.onnx_ops import Writer, fixed, rule
from static.export.onnx_places import padded
from static.graph import Node

_WAYS = ("padding", "stride", "dilation")


@rule("conv")
@rule("conv_bias")
@rule("conv_panels")
@rule("conv_bias_panels")
def _conv(w: Writer, node: Node, x: list[str]) -> str:
    pads = fixed(node, "padding")
    options = {"strides": fixed(node, "stride"), "dilations": fixed(node, "dilation"), "pads": pads + pads}
    made: str = w.add("Conv", x, group=int(node.attrs["groups"]), **options)
    reach = zip(node.operands[0].shape[2:], node.operands[1].shape[2:], *(fixed(node, k) for k in _WAYS), strict=True)
    wanted = node.outputs[0].shape[2:]
    if any((hint(n) + 2 * p - d * (hint(k) - 1) - 1) // s + 1 != hint(m) for (n, k, p, s, d), m in zip(reach, wanted)):
        made = _cut(w, made, wanted)
    return made


@rule("conv_input_panels")
def _conv_input(w: Writer, node: Node, x: list[str]) -> str:
    """Without padding, of which elements may be wanted, and then cut: sizes may be free, attributes may not."""
    pads, strides, dilations = (fixed(node, name) for name in _WAYS)
    made = w.add("ConvTranspose", x, group=int(node.attrs["groups"]), strides=strides, dilations=dilations)
    out, reach = node.outputs[0], zip(*(v.shape[2:] for v in node.operands), strides, dilations, strict=True)
    whole = [(m - 1) * s + d * (k - 1) + 1 for m, k, s, d in reach]
    after = [n + p - m for n, p, m in zip(out.shape[2:], pads, whole, strict=True)]
    return padded(w, made, out.dtype, [0, 0, *(-p for p in pads)], [0, 0, *after])


@rule("conv_weight_panels")
def _conv_weight(w: Writer, node: Node, x: list[str]) -> str:
    """A convolution of the images with the cotangent, where images take the part of channels."""
    pads, strides, dilations = (fixed(node, name) for name in _WAYS)
    groups = int(node.attrs["groups"])
    cotangent, (n, channels, *sizes) = w.add("Transpose", [x[0]], perm=_swapped(node, 0)), node.operands[1].shape
    lead = [n, groups, channels // groups, *sizes]
    order = [2, 1, 0, *range(3, len(lead))]
    images = w.add("Transpose", [w.add("Reshape", [x[1], w.sizes(lead)], allowzero=1)], perm=order)
    images = w.add("Reshape", [images, w.sizes([channels // groups, groups * n, *sizes])], allowzero=1)
    made = w.add("Conv", [images, cotangent], group=groups, strides=dilations, dilations=strides, pads=pads + pads)
    made = _cut(w, made, node.outputs[0].shape[2:])
    turned: str = w.add("Transpose", [made], perm=_swapped(node, 0))
    return turned


def _swapped(node: Node, operand: int) -> list[int]:
    return [1, 0, *range(2, len(node.operands[operand].shape))]


def _cut(w: Writer, x: str, sizes: Sequence[Any]) -> str:
    """The first elements along the dimensions of images."""
    axes = w.constant(np.arange(2, 2 + len(sizes)))
    made: str = w.add("Slice", [x, w.sizes([0] * len(sizes)), w.sizes(sizes), axes])
    return made
