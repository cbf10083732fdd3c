"""Event files, read by a real TensorBoard server."""

import json
import re
import subprocess
import sys
import threading
import time
import urllib.parse
import urllib.request

import numpy as np
import pytest
from tensorboard.compat.proto.graph_pb2 import GraphDef

import dynamic as tw
import static
from common.core.errors import ArgumentError
from common.tools.files.tensorboard import graph_def
from dynamic.utils.tensorboard import SummaryWriter
from static.utils.tensorboard import SummaryWriter as StaticWriter

X = np.ones((4, 8), np.float32)


class Net(tw.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = tw.nn.Sequential(tw.nn.Linear(8, 6), tw.nn.Tanh())
        self.head = tw.nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.body(x))


class Server:
    """TensorBoard on a free port of the loopback."""

    def __init__(self, folder):
        command = [sys.executable, "-m", "tensorboard.main", "--logdir", str(folder), "--host", "127.0.0.1", "--port",
                   "0", "--load_fast", "false", "--reload_interval", "1"]  # fmt: skip
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.killer = threading.Timer(120, self.process.kill)  # whatever happens
        self.killer.start()
        said = []
        for line in self.process.stderr:
            said.append(line)
            if found := re.search(r"http://127\.0\.0\.1:\d+", line):
                self.address = found.group()
                return
        self.close()
        raise AssertionError("".join(said))

    def get(self, path, **query):
        url = f"{self.address}/data/plugin/{path}?{urllib.parse.urlencode(query)}"
        with urllib.request.urlopen(url, timeout=30) as response:
            return response.read().decode()

    def wait_for(self, path, ready):
        """What is answered once it is ready: the server reads files in the background."""
        for _ in range(100):
            answer = json.loads(self.get(path))
            if ready(answer):
                return answer
            time.sleep(0.1)
        raise AssertionError(answer)

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        self.killer.cancel()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    model = Net()
    with SummaryWriter(folder / "eager") as writer:
        writer.add_graph(model, tw.tensor(X))
        for step in range(3):
            writer.add_scalar("loss/train", tw.tensor([1.0 / (step + 1)]), step, walltime=100.0 + step)
        writer.add_histogram("weights", np.array([-2.0, -1.0, 0.0, 0.5, 0.5, 4.0, np.nan, np.inf]), 7)
        writer.add_histogram("even", tw.arange(10), 0, bins=5)
        writer.add_text("note", "**bold**", 1)
        assert writer.get_logdir() == str(folder / "eager")
    with StaticWriter(folder / "traced") as writer:
        writer.add_graph(model, X)
    running = Server(folder)
    try:
        running.wait_for("graphs/info", lambda runs: len(runs) == 2)
        yield running
    finally:
        running.close()


def nodes(server, run):
    """Name -> (op, inputs, shapes) of a graph, from the text that the server answers."""
    text = server.get("graphs/graph", run=run, conceptual="false", limit_attr_size=1024, large_attrs_key="_too_large")
    found = {}
    for part in re.split(r"^node \{$", text, flags=re.MULTILINE)[1:]:
        fields = re.findall(r'^  (name|op|input): "(.*)"$', part, re.MULTILINE)
        single = dict(fields)
        shapes = re.findall(r"shape \{(.*?)\n        \}", part, re.DOTALL)
        sizes = [[int(n) for n in re.findall(r"size: (-?\d+)", shape)] for shape in shapes]
        found[single["name"]] = single["op"], [v for k, v in fields if k == "input"], sizes
    return found


def test_scopes_of_a_recorded_graph_are_modules_and_edges_have_shapes(server):
    body, head = "Net/Sequential[body]/Linear[0]", "Net/Linear[head]"
    assert nodes(server, "eager") == {
        "input": ("input", [], [[4, 8]]),
        f"{body}/weight": ("parameter", [], [[6, 8]]),
        f"{body}/bias": ("parameter", [], [[6]]),
        f"{body}/Addmm": ("AddmmBackward0", [f"{body}/bias", "input", f"{body}/weight"], [[4, 6]]),
        "Net/Sequential[body]/Tanh[1]/Tanh": ("TanhBackward0", [f"{body}/Addmm"], [[4, 6]]),
        f"{head}/weight": ("parameter", [], [[3, 6]]),
        f"{head}/bias": ("parameter", [], [[3]]),
        f"{head}/Addmm": (
            "AddmmBackward0",
            [f"{head}/bias", "Net/Sequential[body]/Tanh[1]/Tanh", f"{head}/weight"],
            [[4, 3]],
        ),
        "output": ("output", [f"{head}/Addmm"], [[4, 3]]),
    }


def test_a_traced_graph_has_the_same_scopes_and_open_sizes(server):
    eager, traced = nodes(server, "eager"), nodes(server, "traced")

    def modules(names):
        return list(dict.fromkeys(name[: name.rindex("]") + 1] for name in names if "]" in name))

    assert modules(traced) == modules(eager) == ["Net/Sequential[body]/Linear[0]", "Net/Sequential[body]/Tanh[1]",
                                                 "Net/Linear[head]"]  # fmt: skip
    head = "Net/Linear[head]/addmm"  # one node of the tape, two of the program
    assert traced[f"{head}/mm"] == ("mm", ["Net/Sequential[body]/Tanh[1]/tanh", "Net/Linear[head]/weight"], [[-1, 3]])
    assert traced[f"{head}/add"] == ("add", [f"{head}/mm", "Net/Linear[head]/bias"], [[-1, 3]])


def test_curves_histograms_and_texts_arrive(server):
    server.wait_for("scalars/tags", lambda tags: "eager" in tags)
    points = json.loads(server.get("scalars/scalars", run="eager", tag="loss/train"))
    assert points == [[100.0, 0, 1.0], [101.0, 1, 0.5], [102.0, 2, pytest.approx(1 / 3)]]
    ((_, step, buckets),) = json.loads(server.get("histograms/histograms", run="eager", tag="weights"))
    assert step == 7
    assert sum(count for *_, count in buckets) == 6
    for value, count in ((-2.0, 1), (-1.0, 1), (0.5, 2), (4.0, 1)):
        assert sum(n for low, high, n in buckets if low <= value <= high) == count
    ((_, _, buckets),) = json.loads(server.get("histograms/histograms", run="eager", tag="even"))
    assert [count for *_, count in buckets if count] == [2.0] * 5
    (text,) = json.loads(server.get("text/text", run="eager", tag="note/text_summary"))
    assert "<strong>bold</strong>" in text["text"]


def test_pictures_of_training_steps_are_graphs_too(tmp_path, capsys):
    model = tw.nn.Linear(8, 1)
    optimizer = tw.optim.SGD(model.parameters(), lr=0.1)

    @static.function
    def step(x):
        optimizer.zero_grad()
        loss = model(x).sum()
        loss.backward()
        optimizer.step()
        return loss

    step(X)
    graph = graph_def(step.picture, GraphDef)
    names = [node.name for node in graph.node]
    assert len(names) == len(set(names))
    assert {"SGD/weight/sub", "backward/AddmmBackward0/mm", "Linear/weight", "write_weight"} <= set(names)
    known = set()
    for node in graph.node:  # whatever is read has been written before
        assert {name.partition(":")[0] for name in node.input} <= known
        known.add(node.name)
    with StaticWriter(tmp_path) as writer:
        writer.add_graph(step.picture, verbose=True)
    assert capsys.readouterr().out.startswith("output  float32[]")


def test_several_results_are_told_apart():
    x = tw.ones(4, requires_grad=True)
    low, high = (x * x).split(2)
    graph = graph_def(tw.autograd.graph.make_dot((low * high).sum(), params={"x": x}), GraphDef)
    assert {node.name: list(node.input) for node in graph.node}["Mul_1"] == ["Split", "Split:1"]


def test_what_cannot_be_written_is_refused(tmp_path):
    with SummaryWriter(tmp_path, purge_step=5) as writer:
        for message, call in {
            "takes one number, got 2": lambda: writer.add_scalar("x", [1.0, 2.0]),
            "no finite values": lambda: writer.add_histogram("x", [np.nan]),
            "give input_to_model": lambda: writer.add_graph(Net()),
            "no result of the model has a graph": lambda: writer.add_graph(lambda x: x > 1, tw.tensor(X)),
        }.items():
            with pytest.raises(ArgumentError, match=re.escape(message)):
                call()


def test_the_folder_has_a_default(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with SummaryWriter(comment="_try") as writer:
        writer.add_scalar("x", 1)
        writer.flush()
    (folder,) = (tmp_path / "runs").iterdir()
    assert folder.name.endswith("_try")
    assert [f.name.startswith("events.out.tfevents") for f in folder.iterdir()] == [True]
