"""Mistakes of beginners: each bad call raises the class that PyTorch's raises, and says what is wrong.

The classes are those of PyTorch 2.13 for the same calls; the words are this library's own.
"""

import builtins
from typing import Any

import pytest

import dynamic
import static


def load(tw: Any, state: Any) -> None:
    tw.nn.Linear(3, 2).load_state_dict(state)


def sgd(tw: Any, **options: Any) -> None:
    tw.optim.SGD(tw.nn.Linear(3, 2).parameters(), **{"lr": 0.1, **options})


def named(tw: Any) -> Any:
    return tw.optim.SGD(tw.nn.Linear(3, 2).named_parameters(), lr=0.1)


def twice(tw: Any) -> None:
    x = tw.ones(2, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


def leaf(tw: Any) -> None:
    tw.ones(2, requires_grad=True).add_(1)


def vector(tw: Any) -> None:
    (tw.ones(2, requires_grad=True) * 2).backward()


def constant(tw: Any) -> None:
    tw.ones(2).sum().backward()


def overwritten(tw: Any) -> None:
    y = tw.ones(2, requires_grad=True).exp()
    y.add_(1)
    y.sum().backward()


def unused(tw: Any) -> None:
    tw.autograd.grad(tw.ones(2, requires_grad=True).sum(), tw.ones(2, requires_grad=True))


#: Class of the error | call | words of it.
BAD = """
RuntimeError | line()(ones(4, 5)) | mat1 and mat2 shapes cannot be multiplied
TypeError | nn.Linear() | Linear() missing 2 required positional
TypeError | nn.Linear(2.5, 3) | rand(): argument 'size' must be int, not
TypeError | nn.Linear("a", 3) | Linear(): argument 'in_features' must be int,
RuntimeError | nn.Linear(-1, 3) | Trying to create tensor with negative
TypeError | nn.Linear(3, 2, activation="relu") | Linear() got an unexpected keyword argument
RuntimeError | line()(ones(2, 3, dtype=tw.int64)) | mm: expected m1 and m2 to have the same
TypeError | line()([1, 2, 3]) | Linear(): argument 'input' must be Tensor,
RuntimeError | ones(2, 3) @ ones(4, 5) | mat1 and mat2 shapes cannot be multiplied
RuntimeError | tw.mm(ones(3), ones(3)) | mm: expected a 2-D tensor, got 1-D of shape
RuntimeError | tw.bmm(ones(2, 3, 4), ones(3, 4, 5)) | bmm(): batch sizes differ: 2 and 3
RuntimeError | ones(2, 3) + ones(4) | add: shapes (2, 3) and (4,) do not broadcast: The size of tensor a (3) must match
TypeError | ones(2) + "a" | unsupported operand type(s) for +: 'Tensor'
TypeError | ones(2) + None | unsupported operand type(s) for +: 'Tensor'
RuntimeError | ones(2, 3).view(4, 2) | shape '[4, 2]' is invalid for input of size 6
RuntimeError | ones(2, 3).view(-1, -1) | only one dimension can be inferred
RuntimeError | ones(2, 3).t().view(6) | view size is not compatible with input
RuntimeError | ones(2, 3).reshape(7) | shape '[7]' is invalid for input of size 6
RuntimeError | tw.cat([ones(2, 3), ones(2, 4)], 0) | cat(): Sizes of tensors must match except in
ValueError | tw.cat([]) | cat(): expected a non-empty list of Tensors
RuntimeError | tw.stack([ones(2), ones(3)]) | stack(): expects each tensor to be equal
IndexError | ones(3)[5] | index 5 is out of bounds for dimension 0 with
IndexError | ones(3)[0, 0] | too many indices for tensor of dimension 1
TypeError | ones(3)["a"] | tensors are indexed with ints, slices, None,
IndexError | ones(3)[1.5] | tensors are indexed with ints, slices, None,
IndexError | ones(3).sum(2) | sum(): Dimension out of range (expected to be
IndexError | ones(3).squeeze(4) | squeeze(): Dimension out of range (expected
IndexError | ones(2, 3).transpose(0, 5) | transpose(): Dimension out of range (expected
RuntimeError | ones(2, 3).permute(0, 0) | permute(): dims (0, 0) is not a permutation
RuntimeError | ones(2, 3).expand(4, 3) | expand(): size 2 cannot become 4: only sizes
RuntimeError | tw.gather(ones(2, 2), 1, tensor([[0, 5]])) | gather(): index out of range: index 5 is out
RuntimeError | tw.index_select(ones(2, 2), 0, tensor([0.5])) | index_select(): Expected dtype int32/int64
IndexError | ones(3)[tensor([True, False])] | The shape of the mask [2] at index 0 does not
IndexError | F.cross_entropy(ones(2, 3), tensor([0, 7])) | nll_loss(): index out of range: index 7 is
RuntimeError | F.cross_entropy(ones(2, 3), ones(2)) | cross_entropy(): expected target dtype to be
ValueError | F.cross_entropy(ones(2, 3), tensor([0, 1, 2])) | Expected input batch_size (2) to match target
RuntimeError | F.cross_entropy(ones(2, 3), tensor([0, 1]), weight=ones(2)) | cross_entropy(): weight tensor should b
ValueError | F.cross_entropy(ones(2, 3), tensor([0, 1]), reduction="avg") | avg is not a valid value for reduction;
RuntimeError | F.nll_loss(ones(2, 3), tensor([0, 1]), weight=ones(5)) | nll_loss(): weight tensor should be defined
RuntimeError | F.nll_loss(ones(2, 3), ones(2)) | nll_loss(): expected target dtype to be Long
IndexError | F.nll_loss(ones(2, 3), tensor([0, -5])) | nll_loss(): index out of range: index -5 is
RuntimeError | F.mse_loss(ones(2, 3), ones(4)) | mse_loss: shapes (2, 3) and (4,) do not
ValueError | F.binary_cross_entropy(ones(3), ones(4)) | binary_cross_entropy(): Using a target size
ValueError | F.binary_cross_entropy_with_logits(ones(3), ones(4)) | binary_cross_entropy_with_logits(): Target size
RuntimeError | nn.Embedding(3, 2)(ones(2)) | embedding(): Expected dtype int32/int64 for
IndexError | nn.Embedding(3, 2)(tensor([7])) | index_select(): index out of range: index 7
RuntimeError | nn.Conv2d(3, 4, 3)(ones(1, 2, 8, 8)) | Given groups=1, weight of size [4, 3, 3, 3],
RuntimeError | nn.Conv2d(3, 4, 3)(ones(8)) | Expected 3D (unbatched) or 4D (batched) input
RuntimeError | nn.Conv2d(1, 1, 9)(ones(1, 1, 4, 4)) | Calculated padded input size per channel: (4
ValueError | nn.Conv2d(3, 4, 3, groups=2) | in_channels must be divisible by groups, got
RuntimeError | F.max_pool2d(ones(1, 1, 2, 2), 5) | Given input size: (1, 2, 2). Calculated
RuntimeError | nn.BatchNorm1d(3)(ones(2, 4)) | batch_norm(): Expected running_mean to be a
ValueError | nn.BatchNorm1d(3)(ones(1, 3)) | Expected more than 1 value per channel when
RuntimeError | nn.LayerNorm(4)(ones(2, 3)) | layer_norm(): Given normalized_shape=[4], expected input with shape [*, 4]
ValueError | nn.Dropout(1.5) | dropout probability has to be between 0 and
RuntimeError | nn.LSTM(3, 4)(ones(2, 2, 5)) | LSTM: Expected input of 2 or 3 dimensions,
RuntimeError | twice(tw) | Trying to backward through the graph a second
RuntimeError | leaf(tw) | a leaf Variable that requires grad is being
RuntimeError | vector(tw) | grad can be implicitly created only for
RuntimeError | constant(tw) | element 0 of tensors does not require grad
RuntimeError | overwritten(tw) | one of the variables needed for gradient
RuntimeError | unused(tw) | One of the differentiated Tensors (input 0,
RuntimeError | ones(2, requires_grad=True).numpy() | Can't call numpy() on Tensor that requires
RuntimeError | ones(2, dtype=tw.int64).requires_grad_() | only Tensors of floating point dtype can
RuntimeError | tensor([1, 2], requires_grad=True) | only Tensors of floating point dtype can
RuntimeError | ones(3).item() | a Tensor with 3 elements cannot be converted
RuntimeError | bool(ones(3)) | Boolean value of Tensor with 3 values is
ValueError | float(ones(3)) | a Tensor with 3 elements cannot be converted
RuntimeError | load(tw, {}) | Missing key(s) in state_dict: "weight",
RuntimeError | load(tw, {"weight": ones(5, 5), "bias": ones(2)}) | size mismatch for weight: copying a param
RuntimeError | load(tw, {**line().state_dict(), "x": ones(2)}) | Unexpected key(s) in state_dict: "x".
TypeError | tw.randn_like(ones(2), None, 3) | argument 'generator' must be Generator
TypeError | load(tw, 3) | Expected state_dict to be dict-like, got int
ValueError | tw.optim.SGD([], lr=0.1) | optimizer got an empty parameter list
TypeError | tw.optim.SGD(ones(2, requires_grad=True), lr=0.1) | params argument given to the optimizer should
ValueError | sgd(tw, lr=-1.0) | Invalid learning rate: -1.0
ValueError | tw.optim.SGD([ones(2, requires_grad=True) * 2], lr=0.1) | can't optimize a non-leaf Tensor
TypeError | sgd(tw, learning_rate=0.1) | SGD.__init__() got an unexpected keyword
TypeError | tw.optim.Adam([1, 2]) | optimizer can only optimize Tensors, but one
ValueError | tw.optim.Adam(line().parameters(), betas=(1.5, 0.9)) | Invalid beta parameter at index 0: 1.5
AttributeError | line().foo | 'Linear' object has no attribute 'foo'
AttributeError | ones(2).foo | 'Tensor' object has no attribute 'foo'
AttributeError | tw.foo | has no attribute
NotImplementedError | nn.Module()(ones(2)) | Module [Module] is missing the required
TypeError | nn.LSTM(2, 3)(ones(4, 2), ones(1, 3)) | LSTM: hx is a pair (h_0, c_0), got Tensor
ValueError | nn.LSTM(2, 3)(ones(4, 2, dtype=tw.float64)) | LSTM: RNN input dtype (float64) does not match weight
ValueError | nn.GRU(0, 3) | GRU: input_size, hidden_size and num_layers must be greater than zero: 0, 3, 1
ValueError | tw.signal.windows.hann(3, dtype=tw.int64) | hann expects float32 or float64 dtypes, got: torch.int64
RuntimeError | tw.cov(ones(2, 2), aweights=-ones(2)) | cov(): aweights cannot be negative
RuntimeError | tw.gather(ones(2), 0, tensor([1]), out=ones(1, dtype=tw.float64)) | gather(): Expected out tensor to have
RuntimeError | tw.multinomial(ones(2), 1, out=ones(1)) | multinomial(): Expected out tensor to have dtype int64, but got
TypeError | ones("a") | size(): argument 'size' must be int, not str
TypeError | tw.zeros(2.5) | size(): argument 'size' must be int, not
RuntimeError | tw.zeros(-1) | Trying to create tensor with negative
ValueError | tensor([[1, 2], [3]]) | expected numbers in equally long sequences:
TypeError | tensor("abc") | dtype <U3 is not supported; supported are
RuntimeError | tensor([object()]) | Could not infer dtype of object
RuntimeError | tw.arange(0, 5, -1) | arange(): upper bound and lower bound inconsistent with step sign
RuntimeError | tw.randint(5, 5, (2,)) | random_ expects 'from' to be less than 'to',
RuntimeError | tw.randperm(-1) | Trying to create tensor with negative
RuntimeError | ones(2, dtype=tw.int64).mean() | mean(): could not infer output dtype. Input dtype must be a
RuntimeError | ones(2, dtype=tw.int64).exp_() | exp_(): result type float32 can't be cast to
RuntimeError | tensor([True]).add_(1) | add_(): result type int64 can't be cast to bool
RuntimeError | tensor([True]).square_() | square_(): result type int64 can't be cast to bool
RuntimeError | ones(2, dtype=tw.int64).div_(2) | div_(): result type float32 can't be cast to
IndexError | F.softmax(ones(2), 3) | softmax(): Dimension out of range (expected
RuntimeError | ones(5).split([2, 2]) | split_with_sizes expects split_sizes to sum
RuntimeError | ones(5).chunk(0) | chunk expects `chunks` to be greater than 0,
RuntimeError | ones(0).max() | amax(): Expected reduction dim 0 to have non-zero size
IndexError | ones(0).argmax() | argmax(): the dimension has size 0, which has
RuntimeError | ones(3).topk(5) | topk(): selected index k out of range: k = 5,
RuntimeError | F.one_hot(tensor([-1])) | one_hot(): num_classes must be positive or
RuntimeError | tw.einsum("ij,jk->ik", ones(2, 3), ones(4, 5)) | einsum(): subscript j has size 4 for operand
RuntimeError | tw.einsum("ij->k", ones(2, 3)) | einsum(): output subscript k does not appear
RuntimeError | tw.linalg.cholesky(-tw.eye(2)) | linalg.cholesky: The factorization could not
RuntimeError | tw.linalg.inv(tw.zeros(2, 2)) | linalg.inv: The diagonal element 1 is zero,
RuntimeError | tw.linalg.solve(ones(2, 3), ones(2)) | linalg.solve: A must be batches of square
RuntimeError | setattr(ones(2, requires_grad=True), "grad", ones(3)) | attempting to assign a gradient of size (3,)
IndexError | ones(3).__setitem__(5, 1.0) | index 5 is out of bounds for dimension 0 with
RuntimeError | ones(3).__setitem__(slice(0, 2), ones(3)) | shape mismatch: value tensor of shape [3]
RuntimeError | ones(3).masked_fill(ones(3), 1.0) | masked_fill() only supports boolean masks, but got mask with dtype
RuntimeError | tw.where(ones(3), ones(3), ones(4)) | where expected condition to be a boolean
TypeError | line().__setattr__("weight", ones(2, 3)) | cannot assign 'Tensor' as parameter 'weight'
KeyError | line().register_buffer("weight", ones(2)) | attribute 'weight' already exists
IndexError | nn.ModuleList([line()])[3] | ModuleList.__getitem__(): list index out of
IndexError | ones(2).unsqueeze(5) | Dimension out of range (expected to be in
RuntimeError | ones(2, 3).flatten(1, 0) | flatten() has invalid args: start_dim cannot
ValueError | tw.distributions.Normal(0.0, -1.0) | Expected parameter scale (Tensor of shape ())
ValueError | tw.distributions.Categorical() | Either `probs` or `logits` must be specified,
ValueError | nn.utils.clip_grad_norm_([ones(2)], "a") | unsupported operand type(s) for /: 'str' and
TypeError | tw.optim.lr_scheduler.StepLR(line(), 1) | Linear is not an Optimizer
ValueError | tw.utils.data.DataLoader([1, 2], batch_size=0) | batch_size should be a positive integer
ValueError | tw.utils.data.random_split([1, 2, 3], [1, 1]) | Sum of input lengths does not equal the
RuntimeError | tw.func.grad(lambda x: x)(ones(2)) | Expected the function to return a scalar
ValueError | tw.func.vmap(lambda x: x)(tensor(1.0)) | vmap: Got in_dim=0 for some input, but that
IndexError | ones(2).size(3) | size(): tuple index out of range; given dim=3
TypeError | list(tensor(1.0)) | iteration over a 0-d tensor
TypeError | len(tensor(1.0)) | len() of a 0-d tensor
RuntimeError | tw.arange(0, 3, 0) | step must be nonzero
RuntimeError | tw.gather(ones(1, 1), 1, ones(2, 2).long()) | Size does not match at dimension 0 expected index [2, 2]
RuntimeError | tw.scatter(ones(3, 5), 0, ones(2, 2).long(), ones(2, 5, 2)) | Index tensor must have the same number of d
RuntimeError | ones(3, 2).index_add(0, tensor([0, 1]), ones(2)) | source tensor shape must match self tensor shape
RuntimeError | tw.eye(-1) | n must be greater or equal to 0, got -1
RuntimeError | tw.eye(0, -3) | m must be greater or equal to 0, got -3
RuntimeError | tw.gradient(ones(3, 3), dim=(1, -1)) | dim 1 appears multiple times in the list of dims
RuntimeError | F.max_pool2d(ones(1, 1, 0, 10), 1) | Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size
RuntimeError | tw.multinomial(-ones(3), 2, replacement=True) | invalid multinomial distribution
RuntimeError | tw.empty_permuted((2, 3), (0, 0)) | Duplicate dim not allowed
RuntimeError | F.layer_norm(ones(2, 3), ()) | Expected normalized_shape to be at least 1-dimensional
RuntimeError | F.rms_norm(ones(2, 3), (4,)) | Given normalized_shape=[4], expected input with shape [*, 4], but got inpu
RuntimeError | F.rms_norm(ones(2, 3), (3,), ones(2)) | Expected weight to be of same shape as normalized_shape
RuntimeError | tw.narrow(ones(10), 0, 0, -1) | narrow(): length must be non-negative
RuntimeError | tw.narrow(ones(10), 0, 0, 11) | start (0) + length (11) exceeds dimension size (10).
RuntimeError | tw.scatter_add(ones(3).double(), 0, tensor([0]), ones(1)) | Expected self.dtype to be equal to src.dtype
RuntimeError | tw.scatter_add(ones(3, 2, 2), 0, ones(2, 2).long(), ones(2, 2)) | Index tensor must have the same number
RuntimeError | tw.roll(ones(5), ()) | `shifts` required
RuntimeError | tw.linalg.cross(ones(5, 3), ones(5, 1)) | inputs dimension -1 must have length 3
RuntimeError | F.conv2d(ones(2, 2, 4, 4), ones(2, 2, 1, 3), groups=3) | expected weight to be at least 3 at dimension 0
RuntimeError | F.embedding(ones(2), ones(2)) | 'weight' must be 2-D
RuntimeError | ones(2, 2).masked_fill(tensor(True), ones(1)) | only supports a 0-dimensional value tensor, but got tenso
RuntimeError | tw.arange(0.0, float("inf")) | unsupported range: 0.0 -> inf
RuntimeError | ones(2, 2).sum((0, -2)) | dim 0 appears multiple times in the list of dims
RuntimeError | tw.movedim(ones(2, 3, 4), (0, -3), (1, 2)) | movedim: repeated dim in `source` ([0, -3])
RuntimeError | tw.movedim(ones(2, 3), (0, 1), (1,)) | source ([0, 1] dims) should contain the same number of dims
RuntimeError | ones(3).masked_scatter(ones(3), ones(3)) | only supports boolean masks
RuntimeError | F.softshrink(ones(2), -0.5) | lambda must be in range [0, the largest number] for input dtype float32, bu
RuntimeError | F.max_pool2d(ones(2, 3), 2) | non-empty 3D or 4D (batch mode) tensor expected for input
RuntimeError | F.cross_entropy(ones(2, 3), ones(2, 3).long()) | Expected floating point type for target with class proba
RuntimeError | F.cross_entropy(ones(2, 3, 4), ones(2, 5).long()) | Expected target size [2, 4], got [2, 5]
ValueError | F.cross_entropy(ones(4, 2), ones(5, 2)) | Expected input batch_size (4) to match target batch_size (5).
RuntimeError | F.multi_margin_loss(ones(5, 4), ones(3).long()) | Expected target size [5], but got [3]
RuntimeError | F.multi_margin_loss(ones(5, 0), ones(5).long()) | Expected non-empty vector or matrix with optional 0-dim
RuntimeError | F.multi_margin_loss(ones(5, 4), ones(5)) | expected scalar type Long but found float32
RuntimeError | F.multilabel_margin_loss(ones(5, 4), ones(4).long()) | inconsistent target size: [4] for input of size: [
ValueError | F.batch_norm(ones(2, 3), ones(3), ones(3), eps=-1.0) | batch_norm eps must be non-negative, but got -1.0
RuntimeError | nn.RNNCell(10, 20)(ones(3, 11)) | input has inconsistent input_size: got 11 expected 10
RuntimeError | nn.GRUCell(10, 20)(ones(3, 10), ones(3, 21)) | has inconsistent hidden_size: got 21, expected 20
RuntimeError | nn.RNNCell(10, 20)(ones(3, 10), ones(5, 20)) | Input batch size 3 doesn't match hidden batch size 5
ValueError | tw.optim.Adam(None, betas=(1.0, 0.0)) | Invalid beta parameter at index 0: 1.0
ValueError | tw.optim.Adam(None, lr=tw.ones(2)) | Tensor lr must be 1-element
ValueError | named(tw).add_param_group({"params": [nn.Parameter(ones(2))]}) | cannot add param group without names to th
"""
ROWS = [line.split(" | ") for line in BAD.strip().splitlines()]


@pytest.mark.filterwarnings("ignore:Using a target size")  # which does not broadcast either
@pytest.mark.parametrize("tw", [dynamic, static], ids=["dynamic", "static"])
@pytest.mark.parametrize(("kind", "call", "words"), ROWS, ids=[row[1] for row in ROWS])
def test_the_class_is_pytorchs_and_the_words_say_what_is_wrong(tw, kind, call, words):
    space = {"tw": tw, "nn": tw.nn, "F": tw.nn.functional, "ones": tw.ones, "tensor": tw.tensor}
    space |= {"line": lambda: tw.nn.Linear(3, 2)}
    with pytest.raises(getattr(builtins, kind)) as caught:
        eval(call, globals() | space)
    assert words in str(caught.value)
