"""Figures as text, and aligned tables."""

from collections.abc import Sequence

UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns"))


def seconds(value: float) -> str:
    """Return a duration with three significant digits and its unit.

    Examples
    --------
    >>> seconds(0.0001234), seconds(2.5), seconds(0.0)
    ('123 us', '2.50 s', '0 s')
    """
    if value == 0:
        return "0 s"
    scale, unit = next((u for u in UNITS if abs(value) >= 0.9995 * u[0]), UNITS[-1])
    return f"{significant(value / scale)} {unit}"


def significant(value: float) -> str:
    """Return a number with three significant digits, without an exponent.

    Examples
    --------
    >>> significant(1.0), significant(12.345), significant(1234.5)
    ('1.00', '12.3', '1234')
    """
    size = abs(value)
    return f"{value:.2f}" if size < 9.995 else f"{value:.1f}" if size < 99.95 else f"{value:.0f}"


def megabytes(size: float) -> str:
    """Return a size in units of 10^6 bytes."""
    return f"{size / 1e6:.0f} MB"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table, aligned so that it reads as plain text: first column left, others right."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]

    def line(cells: Sequence[str]) -> str:
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        return f"| {' | '.join([cells[0].ljust(widths[0]), *rest])} |"

    rule = "|".join(["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])])
    return "\n".join([line(header), f"|{rule}|", *map(line, rows)])
