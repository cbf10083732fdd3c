"""Pictures have their colours in every viewer: also in those that know neither CSS variables nor media queries."""

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.helpers.graph_picture import drawn

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_svg_has_plain_colours_for_viewers_that_know_attributes_only():
    """No variables anywhere, and without its style the picture has all its colours: CSS changes them on dark pages."""
    text = drawn()
    assert "var(" not in text
    for element in ET.fromstring(text).iter():
        kind = element.tag.rpartition("}")[2]
        if kind in ("rect", "path"):
            assert re.fullmatch("#[0-9a-f]{6}|none", element.get("fill", "")), element.attrib
        if element.get("class", "").startswith(("item", "wire", "box")):
            assert re.fullmatch("#[0-9a-f]{6}", element.get("stroke", "")), element.attrib
    style = re.search("<style>(.*?)</style>", text, re.DOTALL).group(1)
    depth = 0
    for line in style.splitlines():  # what gives a colour stands where only browsers look
        assert depth or line.startswith(("@", "svg { color-scheme"))
        depth += line.count("{") - line.count("}")


@pytest.mark.parametrize("name", ["graph.svg", "architecture.svg", "payoff.svg"])
def test_pictures_of_the_pages_need_no_variables(name):
    assert "var(" not in (DOCS / name).read_text(encoding="utf-8")
