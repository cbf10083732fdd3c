"""Pictures have their colours in every viewer: also in those that know neither CSS variables nor media queries."""

import re
import xml.etree.ElementTree as ET

import pytest

from tests.helpers import page_pictures

DOCS = page_pictures.DOCS


def test_svg_has_plain_colours_for_viewers_that_know_attributes_only():
    """No variables anywhere, and without its style the picture has all its colours: CSS changes them on dark pages."""
    text = (DOCS / "graph.svg").read_text(encoding="utf-8")
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


def test_pictures_of_the_pages_need_no_variables():
    pictures = sorted(DOCS.rglob("*.svg"))
    assert len(pictures) > 5
    assert [path.name for path in pictures if "var(" in path.read_text(encoding="utf-8")] == []


@pytest.mark.parametrize("page", page_pictures.pages(), ids=lambda page: page.stem)
def test_the_pictures_on_a_page_are_those_of_its_programs(page):
    """If not: ``python -m tests.helpers.page_pictures`` draws them."""
    made = dict(page_pictures.drawn(page))
    assert made
    for path, text in made.items():
        assert text == path.read_text(encoding="utf-8"), path.name
