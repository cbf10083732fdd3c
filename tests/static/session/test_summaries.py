"""`static.summary`: what is read from the written files is what runs returned."""

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import static as tw
from common.core.errors import ArgumentError


@pytest.fixture
def graph():
    with tw.Graph().as_default() as graph:
        yield graph


def read(folder):
    events = EventAccumulator(str(folder), {"histograms": 0, "images": 0, "scalars": 0})
    events.Reload()
    return events


def test_what_a_run_logs_is_in_the_file(graph, tmp_path):
    x = tw.placeholder(tw.float32, [None], name="x")
    w = tw.Variable([1.0, 2.0], name="w")
    with tw.name_scope("train"):
        tw.summary.scalar("mean", x.mean())
        tw.summary.histogram("w", w, family="weights")
    apart = tw.summary.scalar("apart", 2.0 * x.sum(), collections=["other"])
    merged, step = tw.summary.merge_all(), w.assign_add([1.0, 1.0])
    with tw.Session() as session, tw.summary.FileWriter(tmp_path, session.graph) as writer:
        session.run(tw.global_variables_initializer())
        for i in range(3):
            found, _, lone = session.run([merged, step, apart], {x: [1.0, 2.0 + i]})
            writer.add_summary(found, i)
            writer.add_summary(lone, np.int64(i))
    events = read(tmp_path)
    assert [(e.step, e.value) for e in events.Scalars("train/mean")] == [(0, 1.5), (1, 2.0), (2, 2.5)]
    assert [(e.step, e.value) for e in events.Scalars("apart")] == [(0, 6.0), (1, 8.0), (2, 10.0)]
    assert [e.histogram_value.sum for e in events.Histograms("train/weights/w")] == [3.0, 5.0, 7.0]
    assert {node.name for node in events.Graph().node} >= {"x"}
    assert tw.summary.merge_all("nothing") is None
    assert [entry.tag for entry in tw.summary.merge_all(scope="train/mean").entries] == ["train/mean"]


def test_pictures_are_scaled_as_tensorflow_does(graph, tmp_path):
    pictures = np.array([[[[0.0], [2.0]]], [[[-1.0], [0.5]]]], np.float32)
    three = tw.summary.image("p", tw.constant(pictures), max_outputs=3)
    one = tw.summary.image("p", tw.constant((pictures > 0).astype(np.uint8) * 200), max_outputs=1)
    with tw.Session() as session, tw.summary.FileWriter(tmp_path) as writer:
        for summary in session.run((three, one)):
            writer.add_summary(summary)
    events = read(tmp_path)
    assert events.Tags()["images"] == ["p/image/0", "p/image/1", "p_1/image"]
    shown = [pixels(events.Images(tag)[0].encoded_image_string) for tag in events.Tags()["images"]]
    assert shown == [[0, 255], [0, 190], [0, 200]]


def pixels(png):
    from io import BytesIO

    from matplotlib.image import imread

    return np.round(imread(BytesIO(png), format="png") * 255).astype(int).ravel().tolist()


def test_names_are_unique_and_a_merged_tag_is_not_there_twice(graph):
    first, second = tw.summary.scalar("loss", 1.0), tw.summary.scalar("loss", 2.0)
    assert [s.entries[0].tag for s in (first, second)] == ["loss", "loss_1"]
    with pytest.raises(ArgumentError, match="have the tag 'loss'"):
        tw.summary.merge([first, second, first])


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda: tw.summary.scalar("x", [1.0, 2.0]), r"must be one number, not of shape \(2,\)"),
        (lambda: tw.summary.scalar(3, 1.0), "argument 'name' must be a text, not 3"),
        (lambda: tw.summary.image("x", tw.zeros(3, 3)), r"must be \(N, height, width, channels\)"),
        (lambda: tw.summary.merge([1.0]), r"summary.merge\(\) takes summaries, not 1.0"),
    ],
)
def test_wrong_arguments_are_named(graph, call, told):
    with pytest.raises(ArgumentError, match=told):
        call()


def test_a_writer_takes_what_a_run_returned(graph, tmp_path):
    merged = tw.summary.merge([tw.summary.scalar("x", 1.0)])
    with tw.summary.FileWriter(tmp_path) as writer:
        for wrong, told in ((merged, "fetch it"), (1.0, "what a run returns for a summary")):
            with pytest.raises(ArgumentError, match=told):
                writer.add_summary(wrong)
        with pytest.raises(ArgumentError, match="takes a Graph, not str"):
            writer.add_graph("graph")
