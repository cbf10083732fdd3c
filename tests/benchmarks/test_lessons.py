"""Lessons: both engines take the same steps; a whole training reaches what the lesson states."""

import math

import numpy as np
import pytest

import dynamic
import static
from benchmarks import bits
from benchmarks.lessons import Lesson
from benchmarks.workload import discover
from benchmarks.workloads import gan, gpt, reinforce, vae
from benchmarks.workloads.charlm import corpus

LESSONS = [workload for workload in discover() if isinstance(workload, Lesson)]
NAMED = pytest.mark.parametrize("lesson", LESSONS, ids=lambda lesson: lesson.name)


def test_the_lessons_are_there():
    assert {lesson.name for lesson in LESSONS} == {"lenet", "resnet", "gpt", "vae", "gan", "reinforce"}


@NAMED
def test_steps_have_the_same_bits(lesson, monkeypatch):
    monkeypatch.setattr(bits, "STEPS", 3)
    assert list(bits.mismatches(lesson, dynamic, static)) == []


@pytest.mark.slow
@pytest.mark.parametrize("engine", [dynamic, static], ids=["dynamic", "static"])
@NAMED
def test_training_reaches_its_goal(lesson, engine):
    assert lesson.train(engine) >= lesson.goal, lesson.measure


def test_an_untrained_lesson_is_far_from_its_goal():
    for lesson in LESSONS:
        if lesson.name != "resnet":  # as LeNet
            model, _ = lesson.build(dynamic)
            assert lesson.score(dynamic, model) < 0.6 * lesson.goal, lesson.name


def test_the_gpt_writes_the_same_text_in_both_engines():
    def written(tw):
        model, _ = gpt.Gpt().build(tw)
        tw.manual_seed(3)
        return gpt.write(tw, model, "The ", 5)

    text = written(dynamic)
    assert text.startswith("The ")
    assert len(text) == 9
    assert text == written(static)


@pytest.mark.slow
def test_what_the_gpt_writes_is_mostly_words_of_its_text():
    lesson = gpt.Gpt()
    model, program = lesson.build(static)
    for arguments in lesson.material():
        program.call(*arguments)
    static.manual_seed(4)
    words = gpt.write(static, model, "The ", 400).split()[:-1]
    known = set("".join(chr(32 + code) if code < 95 else "\n" for code in corpus()).split())
    assert np.mean([word in known for word in words]) >= 0.6


def test_a_pole_that_is_let_go_falls_as_its_equations_say():
    world = reinforce.CartPole(0)
    world.reset()
    world.state = np.array([0.0, 0.0, 0.1, 0.0])
    state, ended = world.step(1)
    # the textbook's equations by hand: f = 10, m = 0.1, l = 0.5, cart and pole 1.1
    turn = (9.8 * math.sin(0.1) - math.cos(0.1) * 10 / 1.1) / (0.5 * (4 / 3 - 0.1 * math.cos(0.1) ** 2 / 1.1))
    assert state == pytest.approx([0.0, 0.02 * (10 / 1.1 - 0.05 * turn * math.cos(0.1) / 1.1), 0.1, 0.02 * turn])
    assert not ended
    states, actions = reinforce.episode(world, lambda state: 1.0)
    assert len(states) == len(actions) < 15
    assert actions.all()


def test_measures_know_the_best_and_the_worst():
    x = np.random.default_rng(0).standard_normal((40, 64)).astype(np.float32)
    assert gan.coverage(x, x) == 1.0
    assert gan.coverage(x, x[:1] * 0 + 100) == 0.0
    assert vae.explained(x, x) == 1.0
    assert vae.explained(x, np.broadcast_to(x.mean(0), x.shape)) == pytest.approx(0.0)
    assert np.diff(reinforce.returns(9)).max() < 0
