"""A picture as SVG: a scope is laid out as a box, and is then a vertex of the picture around it."""

from __future__ import annotations

import html
from collections.abc import Iterator
from functools import partial

from common.tools.pictures.diagram import Diagram, PictureItem, Port
from common.tools.pictures.layered_drawing import Placed, Stop, Wire, arrange

escape = partial(html.escape, quote=False)  # that of xml.sax loads a client of HTTP

#: Colours on a light page and on a dark one.
_COLOURS = {
    "paper": ("#ffffff", "#15191f"), "ink": ("#1b2430", "#e3e8f0"), "faint": ("#69748a", "#97a3b8"),
    "line": ("#8792a5", "#6d7a90"), "box": ("#5b7bb5", "#7f9fd8"), "op": ("#e9eef6", "#2a3342"),
    "input": ("#d3e5fb", "#1f3f66"), "parameter": ("#d3e5fb", "#1f3f66"), "fixed": ("#eeeeee", "#333333"),
    "output": ("#d0ecd2", "#20492a"), "write": ("#fbe3c2", "#573c14"), "scope": ("#ece2f7", "#43305c"),
}  # fmt: skip


def _plain(fill: str = "", stroke: str = "") -> str:
    """Colours of a light page as attributes, which every viewer understands."""
    return "".join(f' {key}="{_COLOURS[name][0]}"' for key, name in (("fill", fill), ("stroke", stroke)) if name)


def _dark(selector: str, fill: str = "", stroke: str = "") -> str:
    named = (("fill", fill), ("stroke", stroke))
    return f"{selector} {{ {' '.join(f'{key}: {_COLOURS[name][1]};' for key, name in named if name)} }}"


_WHITE, _BLACK = _COLOURS["paper"]
#: Styles that only browsers know: dark pages, and a halo behind the letters that cross a line.
_STYLE = "\n".join([
    "svg { color-scheme: light dark; }",
    "@media (prefers-color-scheme: dark) {",
    _dark("text", "ink"), _dark("text.shape, text.name", "faint"), _dark(".paper", "paper"),
    _dark(".box", "box", "box"),
    *(_dark(f".{kind}", kind, "line") for kind in ("op", "input", "parameter", "fixed", "output", "write", "scope")),
    _dark(".wire", "", "line"), _dark(".head", "line"),
    "}",
    "@supports (paint-order: stroke) {",
    f"text.halo {{ paint-order: stroke; stroke: {_WHITE}; stroke-width: 2.5px; stroke-linejoin: round; }}",
    f"@media (prefers-color-scheme: dark) {{ text.halo {{ stroke: {_BLACK}; }} }}",
    "}",
])  # fmt: skip
_FONT = "ui-monospace, DejaVu Sans Mono, Menlo, Consolas, monospace"
_SHAPE = f'font-size="9"{_plain("faint")}'
_NAME = f'font-size="10" font-weight="600"{_plain("faint")}'
_LETTER, _SMALL = 6.63, 5.42  # widths of the letters of a monospaced font, at 11 and 9 px
_MARGIN, _PADDING, _TITLE = 16.0, 12.0, 22.0
_LONGEST = 44


def svg(picture: Diagram) -> str:
    """The document; light or dark as the page or the viewer is."""
    root = _Box("", (), 0, len(picture.items), picture)
    root.lay_out()
    notes = max((len(line) * _SMALL for line in picture.legend), default=0.0)
    width = max(root.width, len(picture.title) * _LETTER, notes) + 2 * _MARGIN
    top = _MARGIN + 14
    height = root.height + top + _MARGIN + 13 * len(picture.legend)
    boxes: list[str] = []
    wires: list[str] = []
    items: list[str] = []
    root.draw((width - root.width) / 2, top, boxes, wires, items)
    texts = [f'<text class="name halo" {_NAME} x="{_MARGIN}" y="{_MARGIN + 4}">{escape(picture.title)}</text>']
    texts += [f'<text class="shape halo" {_SHAPE} x="{_MARGIN}" '
              f'y="{_n(top + root.height + 14 + 13 * i)}">{escape(line)}</text>'
              for i, line in enumerate(picture.legend)]  # fmt: skip
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_n(width)}" height="{_n(height)}" '
        f'viewBox="0 0 {_n(width)} {_n(height)}" role="img" aria-label="{html.escape(picture.title or "graph")}" '
        f'font-family="{_FONT}" font-size="11"{_plain("ink")}>',
        f"<style>{_STYLE}</style>",
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        f'<path class="head"{_plain("line")} d="M0 1L8 4L0 7z"/></marker></defs>',
        f'<rect class="paper"{_plain("paper")} width="{_n(width)}" height="{_n(height)}"/>',
        *boxes, *wires, *items, *texts, "</svg>", "",
    ])  # fmt: skip


class _Box:
    """The scope that holds the items from `first` up to `last`; laid out before what is around it.

    Attributes
    ----------
    parts : what lies directly inside, an item's position or a box.
    entries, exits : results that come in and go out, and where, from the middle to the right.
    """

    def __init__(self, name: str, path: tuple[str, ...], first: int, last: int, picture: Diagram) -> None:
        self.name, self.first, self.last, self.picture = name, first, last, picture
        self.parts: list[int | _Box] = list(self._parts(path))
        self.entries: dict[Port, float] = {}
        self.exits: dict[Port, float] = {}
        self.width = self.height = 0.0
        self.placed: Placed
        self.wires: list[Wire] = []
        self.values: list[Port] = []
        self.above = self.left = 0.0

    def _parts(self, path: tuple[str, ...]) -> Iterator[int | _Box]:
        items, position, depth = self.picture.items, self.first, len(path)
        while position < self.last:
            scope = items[position].scope[: depth + 1]
            if len(scope) <= depth:
                yield position
                position += 1
                continue
            end = position + 1
            while end < self.last and items[end].scope[: depth + 1] == scope:
                end += 1
            yield _Box(scope[-1], scope, position, end, self.picture)
            position = end

    def lay_out(self) -> None:
        """Give everything inside a place, and the box a size."""
        vertex_of, readers, used_outside = self._connections()
        entering = [value for value in readers if value not in vertex_of]
        leaving = [value for value in vertex_of if value in used_outside]
        start = len(entering)
        sizes = [(0.0, 0.0)] * start
        for part in self.parts:
            if isinstance(part, _Box):
                part.lay_out()
                sizes.append((part.width, part.height))
            else:
                sizes.append(_size(self.picture.items[part]))
        exits = len(sizes)
        sizes += [(0.0, 0.0)] * len(leaving)
        sources = {value: (i, 0.0) for i, value in enumerate(entering)}
        for value, index in vertex_of.items():
            part = self.parts[index]
            at = part.exits.get(value, 0.0) if isinstance(part, _Box) else _outlet(self.picture.items[part], value[1])
            sources[value] = (start + index, at)
        targets: dict[Port, list[tuple[int, float]]] = {}
        for value, found in readers.items():
            for index, operand in found:
                part = self.parts[index]
                at = part.entries[value] if isinstance(part, _Box) else _inlet(self.picture.items[part], operand)
                targets.setdefault(value, []).append((start + index, at))
        for i, value in enumerate(leaving):
            targets.setdefault(value, []).append((exits + i, 0.0))
        self.values = list(targets)
        self.wires = [Wire(*sources[value], ends) for value, ends in targets.items()]
        self.placed = arrange(sizes, self.wires, start, len(leaving))
        named = bool(self.name)
        self.left = _PADDING if named else 0.0
        self.above = _TITLE if named and not entering else 0.0
        name = len(_shortened(self.name)) * _LETTER + 12 if named else 0.0
        self.width = max(self.placed.width + 2 * self.left, name)
        self.left = (self.width - self.placed.width) / 2
        self.height = self.above + self.placed.height + (_PADDING if named and not leaving else 0.0)
        places = [x + self.left - self.width / 2 for x in self.placed.middles]
        self.entries = dict(zip(entering, places, strict=False))
        self.exits = dict(zip(leaving, places[exits:], strict=True))

    def _connections(self) -> tuple[dict[Port, int], dict[Port, list[tuple[int, int]]], set[Port]]:
        """The part that makes each result; the parts that read each, and at which operand; what is read outside."""
        owner: dict[int, int] = {}
        for index, part in enumerate(self.parts):
            owner.update(
                dict.fromkeys(range(part.first, part.last), index) if isinstance(part, _Box) else {part: index}
            )
        made: dict[Port, int] = {}
        readers: dict[Port, list[tuple[int, int]]] = {}
        for position, index in owner.items():
            item = self.picture.items[position]
            boxed = isinstance(self.parts[index], _Box)
            made.update(((position, i), index) for i in range(len(item.results)))
            for operand, value in enumerate(item.operands):
                if value is None or (boxed and owner.get(value[0]) == index):
                    continue
                found = readers.setdefault(value, [])
                if not boxed or (index, -1) not in found[-1:]:  # a box takes a value once
                    found.append((index, -1 if boxed else operand))
        return made, readers, self.picture.read_after(self.first, self.last)

    def draw(self, x: float, y: float, boxes: list[str], wires: list[str], items: list[str]) -> None:
        """Append elements for everything inside, with the box's corner at (x, y)."""
        if self.name:
            boxes.append(f'<rect class="box"{_plain("box", "box")} fill-opacity=".07" '
                         f'stroke-opacity=".5" x="{_n(x)}" y="{_n(y)}" width="{_n(self.width)}" '
                         f'height="{_n(self.height)}" rx="7"/>')  # fmt: skip
            items.append(f'<text class="name halo" {_NAME} x="{_n(x + 7)}" y="{_n(y + 13)}">'
                         f"{escape(_shortened(self.name))}</text>")  # fmt: skip
        left, top = x + self.left, y + self.above
        start = len(self.entries)
        for index, part in enumerate(self.parts, start):
            middle, upper = left + self.placed.middles[index], top + self.placed.tops[index]
            if isinstance(part, _Box):
                part.draw(middle - part.width / 2, upper, boxes, wires, items)
            else:
                items.append(_drawn(self.picture.items[part], middle, upper))
        stop = start + len(self.parts)
        for value, wire, routes in zip(self.values, self.wires, self.placed.routes, strict=True):
            for target, route in routes:
                headed = start <= target < stop and not isinstance(self.parts[target - start], _Box)
                wires.append(_path(route, left, top, headed))
            item = self.picture.items[value[0]]
            direct = start <= wire.source < stop and not isinstance(self.parts[wire.source - start], _Box)
            if direct and item.kind in ("op", "scope") and (text := _short(item.results[value[1]])):
                first = routes[0][1][0]
                items.append(f'<text class="shape halo" {_SHAPE} x="{_n(left + first.x + 4)}" '
                             f'y="{_n(top + first.top + 10)}">{escape(text)}</text>')  # fmt: skip


def _size(item: PictureItem) -> tuple[float, float]:
    label, shapes = len(_shortened(item.label)) * _LETTER + 14, [_short(text) for text in item.results]
    if item.kind not in ("op", "scope"):
        return max(label, len(shapes[0]) * _SMALL + 14), 32.0 if shapes[0] else 20.0
    longest = max(map(len, shapes), default=0) * _SMALL
    return max(label, (len(shapes) + 1) * (longest + 9) if len(shapes) > 1 else 2 * longest - 22), 20.0


def _inlet(item: PictureItem, operand: int) -> float:
    read = [i for i, port in enumerate(item.operands) if port is not None]
    return _size(item)[0] * ((read.index(operand) + 1) / (len(read) + 1) - 0.5)


def _outlet(item: PictureItem, result: int) -> float:
    return _size(item)[0] * ((result + 1) / (len(item.results) + 1) - 0.5)


def _drawn(item: PictureItem, middle: float, top: float) -> str:
    width, height = _size(item)
    tip = "\n".join(
        part for part in (item.label, ", ".join(filter(None, item.results)), item.detail, item.line) if part
    )
    corner = 10 if item.kind in ("input", "parameter", "fixed", "output", "write") else 4
    parts = [
        f"<g><title>{escape(tip)}</title>"
        f'<rect class="item {item.kind}"{_plain(item.kind, "line")} stroke-width=".8" '
        f'x="{_n(middle - width / 2)}" y="{_n(top)}" width="{_n(width)}" '
        f'height="{_n(height)}" rx="{corner}"/>'
        f'<text text-anchor="middle" x="{_n(middle)}" y="{_n(top + 14)}">{escape(_shortened(item.label))}</text>'
    ]
    if height > 20:
        shape = escape(_short(item.results[0]))
        parts.append(
            f'<text class="shape" {_SHAPE} text-anchor="middle" x="{_n(middle)}" y="{_n(top + 26)}">{shape}</text>'
        )
    return "".join([*parts, "</g>"])


def _path(route: list[Stop], left: float, top: float, headed: bool) -> str:
    first = route[0]
    x, y = left + first.x, top + first.top
    steps = [f"M{_n(x)} {_n(y)}"]
    if first.bottom > first.top:
        y = top + first.bottom
        steps.append(f"V{_n(y)}")
    for stop in route[1:]:
        to_x, to_y = left + stop.x, top + stop.top
        if abs(to_x - x) < 0.6:
            steps.append(f"L{_n(to_x)} {_n(to_y)}")
        else:
            half = (y + to_y) / 2
            steps.append(f"C{_n(x)} {_n(half)} {_n(to_x)} {_n(half)} {_n(to_x)} {_n(to_y)}")
        x, y = to_x, to_y
        if stop.bottom > stop.top:
            y = top + stop.bottom
            steps.append(f"V{_n(y)}")
    end = ' marker-end="url(#head)"' if headed else ""
    return f'<path class="wire" fill="none"{_plain(stroke="line")} stroke-width="1.1" d="{"".join(steps)}"{end}/>'


def _short(result: str) -> str:
    """``float32[n, 16]`` as ``n×16``; other dtypes are told."""
    dtype, _, sizes = result.partition("[")
    shape = sizes.rstrip("]").replace(", ", "×") or ("()" if result else "")
    return _shortened(shape if dtype == "float32" else f"{dtype} {shape}".strip())


def _shortened(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _n(x: float) -> str:
    """A number with at most one decimal."""
    return f"{x:.1f}".removesuffix(".0")
