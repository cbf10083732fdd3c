"""The picture in docs/graph.md; ``python -m tests.helpers.graph_picture`` draws it."""

from __future__ import annotations

from pathlib import Path

import dynamic as tw
from common.tools.pictures.picture import Picture
from dynamic.autograd import graph

PATH = Path(__file__).resolve().parents[2] / "docs" / "graph.svg"


def drawn() -> str:
    """The recorded graph of a small network; without lines, which differ from machine to machine."""
    net = tw.nn.Sequential(tw.nn.Linear(4, 8), tw.nn.Tanh(), tw.nn.Linear(8, 2))
    with graph.module_scopes() as scopes:
        prediction = net(tw.zeros(16, 4))
        loss = tw.nn.functional.cross_entropy(prediction, tw.zeros(16, dtype=tw.int64))
    picture = graph.make_dot(loss, scopes=scopes)
    return Picture([item._replace(line="") for item in picture.items], "a small network and its loss").to_svg()


if __name__ == "__main__":
    PATH.write_text(drawn(), encoding="utf-8")
