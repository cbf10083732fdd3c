"""The page of short programs: its runner finds what prints differently, and the page tries what it promises."""

import re

from tests import tutorial


def test_the_page_prints_what_it_says():
    failed, attempted = tutorial.run("dynamic")
    assert (failed, attempted > 120) == (0, True)


def test_a_different_print_is_found(tmp_path, monkeypatch, capsys):
    page, text = tmp_path / "tutorial.md", tutorial.PAGE.read_text(encoding="utf-8").partition("## 3.")[0]
    page.write_text(text.replace("tensor([2., 4., 6.])", "tensor([2., 4., 7.])"), encoding="utf-8")
    monkeypatch.setattr(tutorial, "PAGE", page)
    assert tutorial.run("dynamic").failed == 1
    assert "tensor([2., 4., 6.])" in capsys.readouterr().out


def test_each_program_uses_what_its_users_know():
    text = tutorial.PAGE.read_text(encoding="utf-8")
    assert len(re.findall(r"^## \d+\. ", text, re.MULTILINE)) == 15
    for move in ("requires_grad=True", "grad_fn", "no_grad()", "detach()", "save_for_backward", "jacobian", "hessian",
                 "register_hook", "saved_tensors_hooks", "create_graph=True", "requires_grad_(False)", "from_numpy",
                 "gradcheck", "inference_mode", "optim.RMSprop", "next_functions"):  # fmt: skip
        assert move in text
