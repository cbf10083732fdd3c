"""A picture in the language of Graphviz."""

from __future__ import annotations

from common.tools.pictures.diagram import Diagram, PictureItem

_COLOURS = {
    "op": "#e8eef7", "input": "#cfe3ff", "parameter": "#cfe3ff", "fixed": "#eeeeee", "output": "#cdeccd",
    "write": "#ffe0b8", "scope": "#f3e8fb",
}  # fmt: skip


def dot(picture: Diagram) -> str:
    """The text of a digraph; edges are labelled with the shapes of the values that flow along them."""
    lines = [
        "digraph {",
        f"  graph [label={_quoted(picture.title)}, labelloc=t, rankdir=TB, fontname=monospace, fontsize=11]",
        "  node [shape=box, style=\"filled,rounded\", fontname=monospace, fontsize=10, height=0.2]",
        "  edge [fontname=monospace, fontsize=8, color=\"#777777\"]",
    ]  # fmt: skip
    open_scopes: tuple[str, ...] = ()
    clusters = 0
    for position, item in enumerate(picture.items):
        shared = 0
        while shared < min(len(open_scopes), len(item.scope)) and open_scopes[shared] == item.scope[shared]:
            shared += 1
        lines += ["  " * depth + "}" for depth in range(len(open_scopes), shared, -1)]
        for depth in range(shared, len(item.scope)):
            indent = "  " * (depth + 1)
            lines.append(f"{indent}subgraph cluster_{clusters} {{")
            lines.append(f'{indent}  label={_quoted(item.scope[depth])}; style=rounded; color="#999999"')
            clusters += 1
        open_scopes = item.scope
        lines.append("  " * (len(open_scopes) + 1) + _node(position, item))
    lines += ["  " * depth + "}" for depth in range(len(open_scopes), 0, -1)]
    for (made, result), (reader, _) in picture.edges:
        lines.append(f"  n{made} -> n{reader} [label={_quoted(picture.items[made].results[result])}]")
    lines += [f"  // {line}" for line in picture.legend]
    return "\n".join([*lines, "}", ""])


def _node(position: int, item: PictureItem) -> str:
    label = item.label + (f"\n{item.results[0]}" if item.kind in ("input", "parameter") and item.results else "")
    tip = ", ".join(part for part in (item.detail, item.line) if part)
    return f'n{position} [label={_quoted(label)}, fillcolor="{_COLOURS[item.kind]}", tooltip={_quoted(tip)}]'


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'
