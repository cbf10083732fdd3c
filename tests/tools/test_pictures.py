"""Pictures of graphs: one model for both engines; text, DOT and SVG that are right, not only well-formed."""

import itertools
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

import dynamic as tw
import static
from common.core.errors import ArgumentError
from common.tensor.node import Node
from common.tools.pictures.diagram import PictureItem, settle
from common.tools.pictures.layered_drawing import Wire, _WiredVertices, arrange
from common.tools.pictures.picture import Picture
from dynamic.autograd import graph
from tests.autograd.test_graph_tools import PROGRAMS, diamond, inside, leaf

X, T = np.ones((5, 8), np.float32), np.zeros(5, np.int64)


class Net(tw.nn.Module):
    """Modules in a list, one of them used twice."""

    def __init__(self):
        super().__init__()
        self.first = tw.nn.Linear(8, 6)
        self.layers = tw.nn.ModuleList([tw.nn.Linear(6, 6), tw.nn.Tanh()])

    def forward(self, x):
        x = self.first(x)
        for layer in (*self.layers, *self.layers):
            x = layer(x)
        return x


def recorded(model):
    with graph.module_scopes() as scopes:
        y = model(tw.tensor(X))
    return graph.make_dot(y, scopes=scopes)


def step_of(model, optimizer):
    @static.function
    def step(x, t):
        optimizer.zero_grad()
        loss = static.nn.functional.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    step(X, T)
    return step


# ------------------------------------------------------------------ the model


@pytest.mark.parametrize("name", PROGRAMS)
def test_results_have_the_shapes_of_their_gradients(name):
    """A node's gradient has its result's shape: told by hooks on all nodes, while the picture infers it."""
    x, w = leaf(1.0, 2.0), leaf(3.0, -1.0)
    root = PROGRAMS[name](x, w)
    picture = graph.make_dot(root)
    if name in ("a region", "a function"):  # inside, rules run where no hook of the outside is
        assert all(item.results != ("",) for item in picture.items if item.label != "TwiceBackward")
        return
    nodes = sorted((n for n in graph.iter_graph(root) if isinstance(n, Node)), key=lambda n: n.number)
    seen = {}
    for node in nodes:
        node.register_prehook(lambda grads, node=node: seen.__setitem__(node, grads))
    root.backward()
    drawn = [item for item in picture.items if item.kind == "op"]
    assert [item.label for item in drawn] == [node.name() for node in nodes]
    for node, item in zip(nodes, drawn, strict=True):
        for g, result in zip(seen.get(node, ()), item.results, strict=False):
            if g is not None:
                assert result == f"float32[{', '.join(map(str, g.shape))}]", item


def test_both_engines_have_one_picture():
    program = static.function(lambda x, w: diamond(x, w))
    program(np.ones(2, np.float32), np.ones(2, np.float32))
    compiled, tape = program.picture, graph.make_dot(diamond(leaf(1.0, 2.0), leaf(3.0, 4.0)))

    def ops(picture):
        return [(item.label.removesuffix("Backward0").lower(), item.operands) for item in picture.items]

    assert [x for x in ops(compiled) if not x[0].startswith("arg")] == [x for x in ops(tape) if x[0] != "leaf"]
    assert [item.line for item in compiled.items][2:-1] == [item.line for item in tape.items][2:-1]


def test_scopes_are_modules():
    linear, again = ("Net", "ModuleList[layers]", "Linear[0]"), ("Net", "ModuleList[layers]", "Tanh[1]")
    first = ("Net", "Linear[first]")
    expected = [first] * 3 + [linear] * 3 + [again, linear, again, ()]
    assert [item.scope for item in recorded(Net()).items] == expected
    program = static.function(Net())
    with static.no_grad():
        program(X)
    modules = [tuple(name for name in item.scope if name != "addmm") for item in program.picture.items]
    assert modules == [(), *[first] * 4, *[linear] * 4, again, *[linear] * 2, again, ()]


def test_scopes_without_a_recorder_are_the_owners_of_parameters():
    model = tw.nn.Sequential(tw.nn.Linear(8, 4), tw.nn.Tanh(), tw.nn.Linear(4, 1))
    picture = graph.make_dot(model(tw.tensor(X)))
    assert [item.scope for item in picture.items if item.kind == "op"] == [("0",), (), ("2",)]


def test_nobody_who_does_not_ask_is_told():
    model = Net()
    with graph.module_scopes() as scopes:
        inner = model(tw.tensor(X))
    outer = model(tw.tensor(X))
    assert scopes.of(inner.grad_fn) == ("Net", "ModuleList[layers]", "Tanh[1]")
    assert scopes.of(outer.grad_fn) == ()
    assert scopes.of(leaf(1.0).sum().grad_fn) == ()


def test_scopes_end_where_a_module_raises():
    class Wrong(tw.nn.Module):
        def forward(self, x):
            raise KeyError("no")

    with graph.module_scopes() as scopes:
        with pytest.raises(KeyError):
            tw.nn.Sequential(Wrong())(tw.tensor(X))
        y = leaf(1.0) * 2
    assert scopes.of(y.grad_fn) == ()


def test_a_training_step_shows_where_everything_is():
    model = tw.nn.Sequential(tw.nn.Linear(8, 4))
    picture = step_of(model, tw.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)).picture
    outer = [item.scope[0] for item in picture.items if item.scope]
    names = ("Sequential", "log_softmax", "nll_mean", "backward", "SGD")
    assert list(dict.fromkeys(outer)) == [name for name, _ in itertools.groupby(outer)] == list(names)  # undivided
    by_label = {item.label: item for item in picture.items}
    assert by_label["0.weight"].scope == ("Sequential", "Linear[0]")
    assert by_label["lr"].scope[0] == "SGD"
    assert by_label["0.weight.momentum_buffer"].scope == ("SGD", "0.weight")
    assert {"0.weight.grad", "0.bias.grad", "write 0.weight", "write 0.bias.momentum_buffer"} <= set(by_label)
    assert by_label["0.weight.grad"].results == ("float32[4, 8]",)
    assert picture.legend[0] == "n = arg0.shape[0], 5 when traced"


def test_a_region_is_drawn_as_what_it_has_recorded():
    x, w = leaf(1.0, 2.0), leaf(3.0, 4.0)
    picture = graph.make_dot(inside(x * w) + w, params={"x": x, "w": w})
    assert [(item.label, item.scope) for item in picture.items] == [
        ("x", ()), ("w", ()), ("MulBackward0", ()), ("MulBackward0", ("inside",)), ("TanhBackward0", ("inside",)),
        ("AddBackward0", ()), ("output", ()),
    ]  # fmt: skip
    assert picture.items[3].operands == ((2, 0), (2, 0))
    assert picture.items[5].operands == ((4, 0), (1, 0))


def test_what_is_saved_and_attributes_are_shown_on_demand():
    x = leaf(1.0, 2.0)
    shown = graph.make_dot(x.exp().sum(), show_attrs=True, show_saved=True)
    assert [item.detail for item in shown.items[1:3]] == ["saves float32[2]", "dim=(0,), keepdim=False"]


def test_what_has_no_graph_is_refused():
    with pytest.raises(ArgumentError, match="others have no graph"):
        graph.make_dot(tw.tensor([1.0]))


# ------------------------------------------------------------------ closing scopes


def test_closed_scopes_keep_what_flows_between_them():
    picture = recorded(Net())
    closed = picture.collapse(1)
    assert [item.label for item in closed.items] == ["Linear[first]", "ModuleList[layers]", "output"]
    assert [item.operands for item in closed.items] == [(), ((0, 0),), ((1, 0),)]
    assert [item.results for item in closed.items] == [("float32[5, 6]",)] * 3
    assert [item.label for item in picture.collapse(0).items] == ["Net", "output"]
    assert len(picture.collapse(9).items) == len(picture.items)


def test_a_large_picture_is_closed_as_far_as_needed():
    picture = recorded(Net())
    assert picture.at_most(1000) is picture
    assert [len(picture.at_most(n).items) for n in (10, 9, 4, 2)] == [10, 8, 3, 2]
    assert "closed below level 1" in picture.to_svg(max_items=4)
    with pytest.raises(ArgumentError, match="10 items, 2 with all scopes collapsed, is more than max_items=1"):
        picture.to_svg(max_items=1)


# ------------------------------------------------------------------ random pictures

NAMES = st.sampled_from(["a", "b <&\"'>", "c"])


@st.composite
def pictures(draw):
    items = []
    for i in range(draw(st.integers(0, 30))):
        reads = draw(st.lists(st.one_of(st.none(), st.integers(0, i - 1)), max_size=3)) if i else []
        ports = tuple(None if j is None else (j, draw(st.integers(0, len(items[j].results) - 1))) for j in reads)
        kind = "op" if reads else draw(st.sampled_from(["input", "parameter", "fixed"]))
        results = ("float32[2, 3]",) * (draw(st.integers(1, 3)) if kind == "op" else 1)
        scope = tuple(draw(st.lists(NAMES, max_size=3))) if kind == "op" else ()
        items.append(PictureItem(f"item<{i}>", kind, ports, results, scope, "x & y", "f.py:1"))
    return Picture(settle(items) if draw(st.booleans()) else items, "random & <odd>")


def read(picture):
    """Operands as labels."""
    items = picture.items
    return {item.label: [p and (items[p[0]].label, p[1]) for p in item.operands] for item in items}


@settings(max_examples=60)
@given(pictures(), st.integers(0, 3))
def test_order_and_edges_survive(picture, depth):
    for one in (picture, Picture(settle(picture.items)), picture.collapse(depth)):
        assert all(made < reader for (made, _), (reader, _) in one.edges)
        assert all(0 <= result < len(one.items[made].results) for (made, result), _ in one.edges)
    settled = read(Picture(settle(picture.items)))
    assert {label: settled[label] for label in settled} == {k: v for k, v in read(picture).items() if k in settled}
    unread = set(read(picture)) - set(settled)
    assert all(item.is_source for item in picture.items if item.label in unread)


def test_a_source_divides_no_scope():
    one, two = ("net", "one"), ("net", "two")
    items = [PictureItem("x", "input"), PictureItem("w", "parameter"), PictureItem("a", "op", ((0, 0),), scope=one),
             PictureItem("b", "op", ((2, 0), (1, 0)), scope=one), PictureItem("c", "op", ((3, 0), (1, 0)), scope=two),
             PictureItem("update", "op", ((1, 0),), scope=("sgd",))]  # fmt: skip
    assert [(item.label, item.scope) for item in settle(items)] == [
        ("x", ()), ("w", ("net",)), ("a", one), ("b", one), ("c", two), ("update", ("sgd",)),
    ]  # fmt: skip


def parsed(picture):
    """Rectangles of items by label, of boxes, and the two ends of every wire."""
    root = ET.fromstring(picture.to_svg())
    tag = "{http://www.w3.org/2000/svg}"
    width, height = (float(root.get(k)) for k in ("width", "height"))

    def rectangle(e):
        x, y, w, h = (float(e.get(k)) for k in ("x", "y", "width", "height"))
        return x, y, x + w, y + h

    items = {g.find(f"{tag}title").text.split("\n")[0]: rectangle(g.find(f"{tag}rect")) for g in root.iter(f"{tag}g")}
    boxes = [rectangle(e) for e in root.iter(f"{tag}rect") if e.get("class") == "box"]
    wires = []
    for e in root.iter(f"{tag}path"):
        if e.get("class") == "wire":
            assert re.fullmatch(r"(M[\d.]+ [\d.]+)((V[\d.]+)|([LC][\d. ]+))*", e.get("d")), e.get("d")
            points, x = [], 0.0
            for letter, numbers in re.findall(r"([MVLC])([\d. ]+)", e.get("d")):
                values = [float(v) for v in numbers.split()]
                x = x if letter == "V" else values[-2]
                points.append((x, values[-1]))
            wires.append((points, e.get("marker-end") is not None))
    for x0, y0, x1, y1 in (*items.values(), *boxes):
        assert 0 <= x0 < x1 <= width
        assert 0 <= y0 < y1 <= height
    notes = [e for e in root.iter(f"{tag}text") if e.get("x") == "16.0"]  # title and legend, at the left margin
    assert all(16 + 0.603 * float(e.get("font-size")) * len(e.text or "") <= width for e in notes)
    return items, boxes, wires


def test_a_title_that_is_longer_than_the_picture_is_wide_is_seen_whole():
    x = tw.tensor([1.0], requires_grad=True)
    picture = graph.make_dot(x.exp())
    items, _, _ = parsed(Picture(picture.items, "a title of a good many letters, which is wider than the picture"))
    assert items


@settings(max_examples=60, deadline=None)
@given(pictures())
def test_drawings_are_readable(picture):
    items, boxes, wires = parsed(picture)
    assert set(items) == {item.label for item in picture.items}
    assert not {"script", "image", "foreignObject"} & {e.tag.rpartition("}")[2] for e in
                                                       ET.fromstring(picture.to_svg()).iter()}  # fmt: skip
    for a, b in itertools.combinations(items.values(), 2):
        assert a[2] < b[0] or b[2] < a[0] or a[3] <= b[1] or b[3] <= a[1]  # nothing overlaps
    for box in boxes:  # what is not inside a box is outside
        for item in items.values():
            within = box[0] < item[0] and item[2] < box[2] and box[1] < item[1] and item[3] <= box[3]
            assert within or box[2] < item[0] or item[2] < box[0] or box[3] <= item[1] or item[3] <= box[1]
    for points, _ in wires:
        assert all(a[1] <= b[1] + 0.11 for a, b in itertools.pairwise(points))  # downwards
    edges = list(picture.edges)
    heads = [points[-1] for points, headed in wires if headed]
    assert len(heads) == len(edges)
    tops = [items[picture.items[reader].label] for _, (reader, _) in edges]
    for x, y in heads:
        assert any(abs(y - top[1]) < 0.11 and top[0] <= x <= top[2] for top in tops)
    starts = [points[0] for points, _ in wires]
    for points, headed in wires:  # at the border of a box one wire goes on as another
        x, y = points[-1]
        assert headed or any(abs(x - a) < 0.11 and abs(y - b) < 0.11 for a, b in starts)
    for (made, _), (reader, _) in edges:
        assert items[picture.items[made].label][3] < items[picture.items[reader].label][1]


@settings(max_examples=30, deadline=None)
@given(pictures())
def test_dot_is_balanced_and_quoted(picture):
    text = picture.to_dot()
    bare = re.sub(r'"(\\.|[^"\\])*"', "@", text)
    assert bare.count("{") == bare.count("}") == 1 + text.count("subgraph")
    assert '"' not in bare
    assert len(re.findall(r"n\d+ -> n\d+", bare)) == len(list(picture.edges))
    assert len(re.findall(r"^ *n\d+ \[label=", bare, re.MULTILINE)) == len(picture.items)


# ------------------------------------------------------------------ steps of the layout


def test_places_are_the_least_squares_under_the_distances():
    rng = np.random.default_rng(0)
    sizes = [(float(w), 10.0) for w in rng.integers(1, 60, 12)]
    drawing = _WiredVertices(sizes, [Wire(i, 0.0, [(i + 6, 0.0)]) for i in range(6)], 0, 0)
    middles = list(rng.uniform(0, 300, 12))
    row = drawing.rows[1]
    gaps = [drawing._distance(a, b) for a, b in itertools.pairwise(row)]
    shifts = np.concatenate([[0], np.cumsum(gaps)])
    wanted = [(0.01 * middles[v] + middles[v - 6]) / 1.01 for v in row]
    expected = isotonic_regression(np.array(wanted) - shifts).x + shifts
    drawing._place(row, middles, [drawing.above])
    assert np.allclose([middles[v] for v in row], expected)


def test_crossings_that_need_not_be_are_undone():
    wires = [Wire(i, 0.0, [(9 - i, 0.0)]) for i in range(5)]  # upside down
    drawing = _WiredVertices([(10.0, 10.0)] * 10, wires, 0, 0)
    assert drawing._crossings() == 10
    drawing._order()
    assert drawing._crossings() == 0
    pair = _WiredVertices(
        [(10.0, 10.0)] * 4, [Wire(0, 0.0, [(2, 0.0), (3, 0.0)]), Wire(1, 0.0, [(2, 0.0), (3, 0.0)])], 0, 0
    )
    assert pair._crossings() == 1


def test_readers_of_one_value_share_one_line():
    placed = arrange([(10.0, 10.0)] * 4, [Wire(0, 0.0, [(1, 0.0), (2, 0.0), (3, 0.0)]), Wire(1, 0.0, [(2, 3.0)]),
                                          Wire(2, 0.0, [(3, 3.0)])])  # fmt: skip
    (far, longest), *others = placed.routes[0]
    assert far == 3
    corners = {(stop.x, stop.bottom) for stop in longest}
    assert all((stops[0].x, stops[0].bottom) in corners for _, stops in others)


def test_long_graphs_are_drawn_without_recursion():
    y = x = leaf(1.0, 2.0)
    for _ in range(2000):
        y = y * 1.5 + x
    picture = graph.make_dot(y.sum())
    assert len(picture.items) == 4003
    assert picture.to_svg(max_items=5000).count('class="item') == 4003
    assert "... deeper than max_depth=60" in picture.to_text()
    assert picture.to_text(max_items=3).splitlines()[-1] == "... more than max_items=3 lines"


# ------------------------------------------------------------------ files


def test_files_have_the_form_of_their_ending(tmp_path):
    picture = recorded(Net())
    for ending, start in ((".svg", "<svg"), (".dot", "digraph {"), (".gv", "digraph {"), (".txt", "output  float32")):
        path = picture.save(tmp_path / f"picture{ending}")
        assert path.read_text(encoding="utf-8").startswith(start)
    with pytest.raises(ArgumentError, match=r"not as '\.png'"):
        picture.save(tmp_path / "picture.png")
    assert picture.source == picture.to_dot()
    assert picture._repr_svg_() == picture.to_svg()
    assert repr(picture) == "<Picture 'recorded graph': 10 items>"


def test_a_tree_names_what_is_shared_once():
    x = leaf(1.0, 2.0)
    low, high = (x * x).split(1)
    text = graph.make_dot((low * high).sum(), params={"x": x}).to_text()
    assert text.splitlines() == [
        "output  float32[]",
        "└─ SumBackward0  float32[]",
        "   └─ MulBackward0  float32[1]",
        "      ├─ SplitBackward0 #1 (0)  float32[1]",
        "      │  └─ MulBackward0  float32[2]",
        "      │     ├─ x #2  float32[2]",
        "      │     └─ x #2",
        "      └─ SplitBackward0 #1 (1)",
    ]
