"""The study guide: its chapters lead to each other, have exercises whose solutions run, and are the same in Chinese."""

import itertools
import re

import pytest

from tests.helpers.proofs import each
from tests.test_docs import ROOT

DOCS = ROOT / "docs"
GUIDE = DOCS / "tradeoff"
CHAPTERS = sorted(GUIDE.glob("[0-9]-*.md"))
SOLUTION = re.compile(r"<details><summary>Solution</summary>\n\n.*?\n</details>\n", re.DOTALL)


@pytest.mark.parametrize("page", CHAPTERS, ids=lambda page: page.stem)
def test_a_chapter_promises_shows_and_asks(page):
    text = page.read_text(encoding="utf-8")
    number = int(page.name[0])
    assert text.startswith(f"# {number}. ")
    assert text.split("\n\n")[1].startswith("After this chapter you can ")
    lesson, _, exercises = text.partition("## Exercises\n")
    assert lesson.count("```python\n>>> ") > 3
    asked = re.split(r"^\*\*\d\.\*\* ", exercises, flags=re.MULTILINE)[1:]
    assert len(asked) == 3
    for exercise in asked:
        (solution,) = SOLUTION.findall(exercise)
        assert ">>> " in solution  # which the tests of the pages run


def test_chapters_are_listed_and_lead_on():
    contents = (GUIDE / "README.md").read_text(encoding="utf-8")
    heads = {page.name: page.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ") for page in CHAPTERS}
    assert re.findall(r"^\| \[(.*?)\]\((.*?)\)", contents, re.MULTILINE) == [(h, name) for name, h in heads.items()]
    for page, after in itertools.pairwise(CHAPTERS):
        assert page.read_text(encoding="utf-8").endswith(f"Next: [{heads[after.name]}]({after.name})\n")


CHINESE = sorted((DOCS / "zh").rglob("*.md"))
CODE = re.compile("^```.*?^```$", re.MULTILINE | re.DOTALL)


def english(page):
    """The page of which a Chinese one is the translation."""
    path = page.relative_to(DOCS / "zh")
    return ROOT / path if str(path) == "README.md" else DOCS / path


def test_readme_guide_and_sharp_bits_are_there_in_chinese():
    wanted = [ROOT / "README.md", DOCS / "sharp-bits.md", GUIDE / "README.md", *CHAPTERS]
    assert sorted(map(english, CHINESE)) == sorted(wanted)


@each("page", CHINESE)
def test_a_chinese_page_has_the_same_blocks_headings_and_pictures(page):
    ours, theirs = (p.read_text(encoding="utf-8") for p in (page, english(page)))
    assert CODE.findall(ours) == CODE.findall(theirs)  # whose examples run
    for pattern in ("^#+ ", r"^\*\*\d\.\*\*", "<details>", "^- ", r"^\d\. "):
        first, second = (re.findall(pattern, CODE.sub("", text), re.MULTILINE) for text in (ours, theirs))
        assert first == second, pattern
    assert re.findall(r"!\[.*?\]\(.*?([\w-]+\.svg)\)", ours) == re.findall(r"!\[.*?\]\(.*?([\w-]+\.svg)\)", theirs)
    prose = re.sub(r"`.*?`|\(.*?\)", "", CODE.sub("", ours))
    assert len(re.findall("[\u4e00-\u9fff]", prose)) > len(re.findall("[A-Za-z]", prose))


def test_the_glossary_is_in_order_and_has_each_term_in_chinese():
    rows = re.findall(
        r"^\| (.*?) \((.*?)\) \| (.*?) \|$", (DOCS / "glossary.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert len(rows) > 40
    assert [term for term, *_ in rows] == sorted((term for term, *_ in rows), key=str.lower)
    assert [term for term, chinese, _ in rows if not re.search("[\u4e00-\u9fff]", chinese)] == []


def test_every_sharp_bit_is_an_example():
    text = (DOCS / "sharp-bits.md").read_text(encoding="utf-8")
    entries = re.split("^### ", text, flags=re.MULTILINE)[1:]
    assert len(entries) > 20
    assert [entry.partition("\n")[0] for entry in entries if "```python\n>>> " not in entry] == []
