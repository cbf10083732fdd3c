"""Names of PyTorch that are not here say why, in every space of both engines; what is no name of PyTorch does not."""

import importlib
import importlib.util
import subprocess
import sys

import numpy as np
import pytest

import dynamic
import static
from common.core import absent, dtypes
from common.nn.module import Module
from tests.helpers.proofs import each

ENGINES = [dynamic, static]
SPACES = ("", "nn", "nn.functional", "nn.utils", "optim", "optim.lr_scheduler", "autograd", "autograd.functional",
          "autograd.graph", "func", "utils", "random", "profiler", "linalg", "special", "fft")  # fmt: skip
#: Of each line of the table some names: what stands there without a wildcard.
LISTED = [[name for name in patterns.split() if not set(name) & set("*[")] for _, patterns in absent.REASONS]


def module(engine, space):
    for part in space.split(".") if space else ():
        engine = getattr(engine, part)
    return engine


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_every_name_of_the_table_has_a_reason(engine, space):
    here = module(engine, space)
    for name in [*absent.HERE, *(name for names in LISTED for name in names)]:
        if not hasattr(here, name):
            with pytest.raises(AttributeError, match=f"^module {here.__name__!r} has no {name!r}: [^{{]+$") as caught:
                getattr(here, name)
            assert (caught.value.name, caught.value.obj) == (name, None)  # so that Python suggests nothing


@each("name", absent.TENSOR.split())
def test_tensors_have_the_same_reasons(name):
    tensor = dynamic.tensor([[1.0, 2.0]])
    if isinstance(getattr(type(tensor), name), absent.Absent):
        assert name not in dir(tensor)
        assert not hasattr(tensor, name)
        with pytest.raises(AttributeError, match=f"^'Tensor' object has no attribute '{name}': .{{5}}"):
            getattr(tensor, name)

        def traced(x):
            with pytest.raises(AttributeError, match=f"^'Tracer' object has no attribute '{name}': .{{5}}"):
                getattr(x, name)
            return x

        if name < "b":
            static.function(traced)(np.ones(2))


def test_modules_have_the_same_reasons():
    layer = dynamic.nn.Linear(2, 2)
    for name in absent.MODULE:
        if not hasattr(Module, name):
            with pytest.raises(AttributeError, match=f"^'Linear' object has no attribute '{name}': .{{5}}"):
                getattr(layer, name)
    with pytest.raises(AttributeError, match=r"^'Linear' object has no attribute 'wait'$"):
        layer.wait  # noqa: B018


@pytest.mark.parametrize(
    ("space", "name", "told"),
    [
        ("", "quantize_per_tensor", "there is no quantisation"),
        ("", "complex32", "there are no complex numbers"),
        ("", "is_coalesced", "there are no sparse tensors"),
        ("", "register_hook", "it is a method of tensors: x.register_hook"),
        ("nn.functional", "erf", r"here it is (dynamic|static).erf"),
        ("nn.functional", "mish_", r"functions do not write to their arguments; use \w+.nn.functional.mish"),
        ("linalg", "logdet", r"here it is (dynamic|static).logdet"),
        ("linalg", "eigvals", "there are no complex numbers"),
        ("optim", "SparseAdam", "there are no sparse tensors"),
    ],
)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_reasons_and_replacements(engine, space, name, told):
    with pytest.raises(AttributeError, match=told):
        getattr(module(engine, space), name)


#: What programs do with a dtype that makes something of it.
COMPUTE = {
    "to": lambda tw, d: tw.ones(2).to(d), "to by name": lambda tw, d: tw.ones(2).to(dtype=d),
    "type": lambda tw, d: tw.ones(2).type(d), "zeros": lambda tw, d: tw.zeros(2, dtype=d),
    "tensor": lambda tw, d: tw.tensor([1.0], dtype=d), "randn": lambda tw, d: tw.randn(2, dtype=d),
    "ones_like": lambda tw, d: tw.ones_like(tw.ones(2), dtype=d), "sum": lambda tw, d: tw.ones(2).sum(dtype=d),
    "softmax": lambda tw, d: tw.ones(2).softmax(0, dtype=d), "default": lambda tw, d: tw.set_default_dtype(d),
    "module": lambda tw, d: tw.nn.Linear(2, 2).to(d), "Linear": lambda tw, d: tw.nn.Linear(2, 2, dtype=d),
    "BatchNorm1d": lambda tw, d: tw.nn.BatchNorm1d(2, dtype=d),
    "class": lambda tw, d: (tw.HalfTensor if d is tw.float16 else tw.BFloat16Tensor)(2, 3),
    "class of data": lambda tw, d: (tw.HalfTensor if d is tw.float16 else tw.BFloat16Tensor)([1.0]),
}  # fmt: skip


@each("name", dtypes.ABSENT)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_dtypes_that_no_tensor_has_are_names(engine, name):
    absent_dtype = getattr(engine, name)
    by_dtype = {absent_dtype: name, engine.float32: "float32"}
    assert by_dtype[engine.ones(2).dtype] == "float32"
    assert absent_dtype != engine.float32
    assert not isinstance(engine.ones(2), (engine.HalfTensor, engine.BFloat16Tensor))
    assert engine.zeros(2).dtype != absent_dtype
    assert repr(absent_dtype) not in {"", repr(engine.float32)}
    with pytest.warns(UserWarning, match="no half precision"), engine.autocast("cpu", dtype=absent_dtype):
        assert (engine.ones(2) * 2).dtype == engine.float32


@each("use", COMPUTE)
@each("name", ["float16", "bfloat16"])
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_what_computes_in_such_a_dtype_is_told_why_not(engine, name, use):
    before = engine.get_default_dtype()
    with pytest.raises(TypeError, match=f"dtype {name} is not supported: there is no half precision; compute in"):
        COMPUTE[use](engine, getattr(engine, name))
    assert engine.get_default_dtype() == before


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_complex_dtypes_have_their_own_reason(engine):
    with pytest.raises(TypeError, match="dtype complex64 is not supported: there are no complex numbers; keep real"):
        engine.zeros(2, dtype=engine.cfloat)
    with pytest.raises(TypeError, match="dtype uint16 is not supported: there are no unsigned integers but uint8"):
        engine.tensor([1, 2]).to(engine.uint16)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_spectra_can_be_imported_and_refuse_to_be_computed(engine):
    for name in ("fft", "irfft2", "ihfftn"):
        function = getattr(importlib.import_module(f"{engine.__name__}.fft"), name)
        with pytest.raises(NotImplementedError, match=rf"^fft.{name}\(\): there are no complex numbers; numpy.fft has"):
            function(engine.ones(4))
        assert name not in engine.fft.__all__


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_other_names_are_pythons_own_matter(engine, space):
    here = module(engine, space)
    for name in ("nothing_of_that_name", "__wrapped__", "tanhh", "foo_"):
        with pytest.raises(AttributeError, match=f"^module {here.__name__!r} has no attribute '{name}'$"):
            getattr(here, name)


#: Modules of PyTorch that neither engine has, and what their imports say.
ABSENT_MODULES = {
    "package": "there is no TorchScript",
    "nn.quantized.dynamic": "there is no quantisation", "sparse": "there are no sparse tensors",
    "distributed.fsdp": "there are no distributed programs", "distributed.tensor.parallel": "there are no distributed",
    "cuda.graphs": "there is no GPU",
    "xpu.streams": "there is no GPU", "_inductor.config": "static compiles programs",
    "utils.cpp_extension": "ops are written in Python", "utils.data.datapipes": "there are no data pipes",
}  # fmt: skip
PLACED = [(space, name) for spaces, _, patterns in absent.PLACED for space in spaces.split() or [""]
          for name in patterns.split() if not set(name) & set("*[")]  # fmt: skip


@each("name", ABSENT_MODULES)
@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_imports_of_absent_modules_say_why(engine, name):
    first = f"{engine.__name__}.{name}"
    with pytest.raises(
        ModuleNotFoundError, match=f"^no module '{engine.__name__}[^{{]+: [^{{]*{ABSENT_MODULES[name]}[^{{]*$"
    ):
        importlib.import_module(first)


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_imports_of_what_pytorch_has_not_are_pythons_own_matter(engine):
    for name in ("nothing_of_that_name", "nn.nothing_of_that_name", "distributed.nothing_of_that_name"):
        with pytest.raises(ModuleNotFoundError, match=f"^No module named '{engine.__name__}.{name}'$"):
            importlib.import_module(f"{engine.__name__}.{name}")
    assert importlib.util.find_spec(f"{engine.__name__}.package") is None  # a question, not an import
    assert importlib.util.find_spec(f"{engine.__name__}.nn") is not None


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_names_of_one_package_have_its_reason(engine):
    for space, name in PLACED:
        here = module(engine, space)
        if not hasattr(here, name):
            with pytest.raises(AttributeError, match=f"^module {here.__name__!r} has no {name!r}: [^{{]+$"):
                getattr(here, name)
    with pytest.raises(AttributeError, match=f"^module '{engine.__name__}.nn' has no attribute 'get_backend'$"):
        engine.nn.get_backend  # noqa: B018


#: A line of a program, the last line that Python prints of it, and whether it may guess another name.
READ = [
    ("{tw}.quantize_dynamic", "MissingAttributeError: module '{tw}' has no 'quantize_dynamic': there", False),
    (
        "from {tw}.distributed import P2POp",
        "ImportError: module '{tw}.distributed' has no 'P2POp': there are",
        False,
    ),
    ("from {tw}.nn import Linear, CrossMapLRN2d", "ImportError: module '{tw}.nn' has no 'CrossMapLRN2d': ", False),
    ("{tw}.tensor([1.0]) @ {tw}.coss", "MissingAttributeError: module '{tw}' has no attribute 'coss'", True),
]
PRINTED = """
import sys, {tw}
for line in {lines}:
    try:
        exec(line)
    except Exception:
        sys.__excepthook__(*sys.exc_info())
    print("----", file=sys.stderr)
"""


@pytest.mark.parametrize("engine", ENGINES, ids=lambda e: e.__name__)
def test_what_a_user_reads(engine):
    name = engine.__name__
    code = PRINTED.format(tw=name, lines=[line.format(tw=name) for line, _, _ in READ])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    for (_, told, guess), printed in zip(READ, done.stderr.split("----")[:-1], strict=True):
        last = printed.strip().splitlines()[-1]
        assert last.removeprefix("common.core.errors.").startswith(told.format(tw=name))
        assert guess or "Did you mean" not in last
