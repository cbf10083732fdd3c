"""A picture as a tree of text, from the results to their operands."""

from __future__ import annotations

from collections.abc import Iterator

from common.tools.pictures.diagram import Diagram


def tree(picture: Diagram, max_items: int, max_depth: int) -> str:
    """Lines of a tree; what is read more than once has a number and is written out where it is met first.

    Parameters
    ----------
    max_items : lines at most; a last one tells of the others.
    max_depth : levels at most.
    """
    lines: list[str] = []
    for line in _lines(picture, max_depth):
        if len(lines) == max_items:
            lines.append(f"... more than max_items={max_items} lines")
            break
        lines.append(line)
    return "\n".join([*lines, *picture.legend])


def _lines(picture: Diagram, max_depth: int) -> Iterator[str]:
    readers = [0] * len(picture.items)
    for (made, _), _ in picture.edges:
        readers[made] += 1
    numbers: dict[int, int] = {}
    waiting = [(p, "", "", 0) for p in reversed(range(len(picture.items))) if not readers[p]]
    while waiting:
        position, head, below, output = waiting.pop()
        item = picture.items[position]
        text = head + item.label
        known = position in numbers
        if readers[position] > 1:
            text += f" #{numbers.setdefault(position, len(numbers) + 1)}"
        if len(item.results) > 1:
            text += f" ({output})"
        if known:
            yield text
            continue
        operands = [port for port in item.operands if port is not None]
        text += f"  {item.results[output]}" if item.results[output:] and item.results[output] else ""
        text += f"  {item.detail}" if item.detail and item.kind == "op" else ""
        yield text
        if len(below) >= 3 * max_depth and operands:
            yield f"{below}... deeper than max_depth={max_depth}"
            continue
        for i, (made, result) in reversed(list(enumerate(operands))):
            last = i == len(operands) - 1
            waiting.append((made, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), result))
