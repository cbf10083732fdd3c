"""Event files, read by a real TensorBoard server."""

import io
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
from matplotlib.figure import Figure
from matplotlib.image import imread
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
        """The server's answer once it is ready: it reads files in the background."""
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


IMAGE = np.linspace(0, 1, 3 * 4 * 5, dtype=np.float32).reshape(3, 4, 5)
LABELS, GUESSES = np.array([0, 1, 1, 0, 1]), np.array([0.12, 0.93, 0.41, 0.63, 0.85])


def write_more(writer):
    """Records of every further kind."""
    writer.add_scalar("exact", 0.1, 0, double_precision=True)
    writer.add_scalars("both/of", {"a": 1.0, "b": tw.tensor(2.0)}, 3, walltime=50.0)
    writer.add_histogram("coarse", np.arange(100.0), 0, bins=50, max_bins=5)
    writer.add_histogram_raw("counted", 0.0, 2.0, 3, 3.0, 5.0, [0.5, 1.5, 2.5], [1, 1, 1], 0)
    writer.add_image("picture", tw.tensor(IMAGE), 4)
    writer.add_image("grey", (IMAGE[0] * 255).astype(np.uint8), dataformats="HW")
    writer.add_images("ten", np.full((10, 1, 2, 3), 255, np.uint8))
    figure = Figure(figsize=(1, 1), dpi=40)
    figure.subplots().plot([0, 1])
    writer.add_figure("drawn", figure)
    writer.add_figure("two", [figure, figure], close=False)
    writer.add_pr_curve("curve", LABELS, tw.tensor(GUESSES), 1, num_thresholds=11)
    writer.add_hparams({"lr": 0.1, "wide": True, "kind": "mlp", "none": None}, {"accuracy": tw.tensor(0.75)},
                       {"kind": ["mlp", "cnn"]}, run_name="first")  # fmt: skip
    for step in (0, 1):
        writer.add_embedding(tw.arange(12).reshape(4, 3), ["a", "b", "c\td", "e"], np.zeros((4, 1, 2, 2)), step)
    writer.add_embedding(np.eye(2), [["a", 1], ["b", 2]], tag="named", metadata_header=["letter", "number"])


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
        write_more(writer)
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


def test_numbers_of_every_kind_arrive(server):
    server.wait_for("scalars/tags", lambda tags: {"eager/both_of_a", "eager/both_of_b"} <= set(tags))
    assert json.loads(server.get("scalars/scalars", run="eager", tag="exact"))[0][2] == 0.1  # not float32's
    for name, value in (("a", 1.0), ("b", 2.0)):
        assert json.loads(server.get("scalars/scalars", run=f"eager/both_of_{name}", tag="both/of")) == [
            [50.0, 3, value]
        ]
    ((_, _, buckets),) = json.loads(server.get("histograms/histograms", run="eager", tag="coarse"))
    assert [count for *_, count in buckets if count] == [20.0] * 5
    ((_, _, buckets),) = json.loads(server.get("histograms/histograms", run="eager", tag="counted"))
    assert sum(count for *_, count in buckets) == 3


def test_pictures_arrive(server):
    server.wait_for("images/tags", lambda runs: len(runs.get("eager", ())) == 5)

    def picture(tag):
        ((about),) = json.loads(server.get("images/images", run="eager", tag=tag, sample=0))
        url = f"{server.address}/data/plugin/images/individualImage?{about['query']}"
        with urllib.request.urlopen(url, timeout=30) as answer:
            return imread(io.BytesIO(answer.read()))

    assert np.array_equal(np.rint(picture("picture") * 255), np.floor(IMAGE.transpose(1, 2, 0) * np.float32(255)))
    assert np.array_equal(np.rint(picture("grey") * 255), np.floor(IMAGE[0] * 255))
    ten = picture("ten")
    assert ten.shape == (4, 24)
    assert (ten[:, :6].min(), ten[2:, 6:].max()) == (1.0, 0.0)  # eight in the first row, two in the second
    assert picture("drawn").shape == (40, 40, 4)
    assert picture("two").shape == (40, 80, 4)


def test_a_curve_of_precision_and_recall_arrives(server):
    server.wait_for("pr_curves/tags", lambda runs: "eager" in runs)
    (curve,) = json.loads(server.get("pr_curves/pr_curves", run="eager", tag="curve"))["eager"]
    assert len(curve["thresholds"]) == 10  # nothing is above 1
    for i, threshold in enumerate(np.arange(10) / 10):
        above = threshold <= GUESSES
        tp, fp = (above & (LABELS == 1)).sum(), (above & (LABELS == 0)).sum()
        assert (curve["true_positives"][i], curve["false_positives"][i]) == (tp, fp)
        assert curve["recall"][i] == pytest.approx(tp / 3)
        assert curve["precision"][i] == pytest.approx(tp / (tp + fp))


def test_hyperparameters_arrive(server):
    server.wait_for("scalars/tags", lambda tags: "eager/first" in tags)
    query = {"colParams": [], "startIndex": 0, "sliceSize": 9, "allowedStatuses": ["STATUS_SUCCESS"]}
    request = urllib.request.Request(f"{server.address}/data/plugin/hparams/session_groups",
                                     json.dumps(query).encode(), {"Content-Type": "application/json"})  # fmt: skip
    with urllib.request.urlopen(request, timeout=30) as answer:
        (group,) = json.loads(answer.read())["sessionGroups"]
    assert group["hparams"] == {"lr": 0.1, "wide": True, "kind": "mlp"}
    (metric,) = group["metricValues"]
    assert (metric["name"]["tag"], metric["value"]) == ("accuracy", 0.75)


def test_embeddings_arrive(server):
    listed = server.wait_for("projector/runs", lambda runs: runs)
    assert "eager" in listed
    info = json.loads(server.get("projector/info", run="eager"))
    assert [each["tensorName"] for each in info["embeddings"]] == ["default:00000", "default:00001", "named:00000"]
    labels = server.get("projector/metadata", run="eager", name="default:00001")
    assert labels.split("\n") == ["a", "b", "c d", "e", ""]
    assert server.get("projector/metadata", run="eager", name="named:00000").startswith("letter\tnumber\na\t1\n")
    assert info["embeddings"][0]["sprite"]["singleImageDim"] == [2, 2]
    url = f"{server.address}/data/plugin/projector/tensor?run=eager&name=default:00000"
    with urllib.request.urlopen(url, timeout=30) as answer:
        assert np.frombuffer(answer.read(), np.float32).tolist() == list(range(12))


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
            "does not fit dataformats='CHW'": lambda: writer.add_image("x", X, dataformats="CHW"),
            "must be a figure of matplotlib": lambda: writer.add_figure("x", [X]),
            "1, 3 or 4 channels, not 2": lambda: writer.add_image("x", np.zeros((2, 4, 4))),
            "takes one number each, got 2": lambda: writer.add_scalars("x", {"b": [1, 2]}),
            "argument 'tag_scalar_dict' must be dict": lambda: writer.add_scalars("x", [1]),
            "2 limits for 1 bins": lambda: writer.add_histogram_raw("x", 0, 1, 1, 1, 1, [0, 1], [1]),
            "2 labels for 3 predictions": lambda: writer.add_pr_curve("x", [0, 1], [0, 1, 1]),
            "probabilities from 0 to 1": lambda: writer.add_pr_curve("x", [0, 1], [0, 7]),
            "one number per threshold, 127": lambda: writer.add_pr_curve_raw("x", *[[1, 2]] * 6),
            "should be dictionary": lambda: writer.add_hparams([], {}),
            "'a' should be one of int, float": lambda: writer.add_hparams({"a": [1, 2]}, {}),
            "names 'b', hparam_dict does not": lambda: writer.add_hparams({"a": 1}, {}, {"b": [1]}),
            "mat should be 2D": lambda: writer.add_embedding(np.zeros(3)),
            "1 metadata for 2 points": lambda: writer.add_embedding(np.zeros((2, 2)), ["a"]),
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
