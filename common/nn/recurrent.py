"""Recurrent networks over whole sequences: layers of a cell's step, each a scan over time in one or both directions.

Parameters, their names and order are PyTorch's, so its state dicts fit. The products of the input with its weights are
one product for all steps; the others are made step by step.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from common.control.iterate import scan
from common.core.devices import on_cpu
from common.core.errors import ArgumentError, DTypeError, NotDefinedError, ShapeError
from common.core.int_arguments import copies
from common.core.sizes import same
from common.nn import functions as F
from common.nn import init, recurrent_kernel
from common.nn.cells import activation, gru_step, lstm_step
from common.nn.module import Module
from common.nn.reset import reset_parameters
from common.nn.sequences import PackedSequence, numbers, packed, padded
from common.random.generator import dropout
from common.tensor.create import lift


class RNNBase(Module):
    """The base of RNN, GRU and LSTM; it has no step of its own.

    Parameters
    ----------
    input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional : see `LSTM`.
    device, dtype, proj_size : see `LSTM`.

    Raises
    ------
    ArgumentError : sizes that are not positive, a dropout outside of [0, 1), a projection but in `LSTM`.
    NotDefinedError : a class that has no step, such as this one.
    """

    gates = 1
    states = 1

    reset_parameters = reset_parameters

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: Any = None,
        dtype: Any = None,
        proj_size: int = 0,
    ) -> None:
        super().__init__()
        name = type(self).__name__
        if self.step.__func__ is RNNBase.step:  # type: ignore[attr-defined]
            raise NotDefinedError(f"{name} has no step: RNN, LSTM and GRU have one")
        on_cpu(device, name)
        if proj_size and self.states == 1:
            raise ArgumentError("proj_size argument is only supported for LSTM, not RNN or GRU")
        if not 0 <= proj_size < max(hidden_size, 1):
            raise ArgumentError(f"{name}: proj_size has to be 0 or positive, and smaller than hidden_size: {proj_size}")
        if not 0 <= dropout < 1:
            raise ArgumentError(f"{name}: dropout should be a number in range [0, 1), got {dropout}")
        for argument, given in (("bias", bias), ("batch_first", batch_first)):
            if not isinstance(given, (bool, np.bool_)):
                raise ArgumentError(f"{name}: {argument} should be of type bool, got: {type(given).__name__}")
        if copies(num_layers, name, "num_layers") < 1 or hidden_size < 1 or input_size < 1:
            sizes = f"{input_size}, {hidden_size}, {num_layers}"
            raise ArgumentError(f"{name}: input_size, hidden_size and num_layers must be greater than zero: {sizes}")
        self.input_size, self.hidden_size, self.num_layers, self.bias = input_size, hidden_size, num_layers, bias
        self.batch_first, self.dropout, self.bidirectional = batch_first, dropout, bidirectional
        self.proj_size = proj_size
        rows, bound, shown = self.gates * hidden_size, 1 / math.sqrt(hidden_size), proj_size or hidden_size
        for layer in range(num_layers):
            columns = (1 + bidirectional) * shown if layer else input_size
            for suffix in self._suffixes(layer):
                setattr(self, f"weight_ih{suffix}", init.uniform((rows, columns), bound, dtype))
                setattr(self, f"weight_hh{suffix}", init.uniform((rows, shown), bound, dtype))
                for part in ("bias_ih", "bias_hh") if bias else ():
                    setattr(self, f"{part}{suffix}", init.uniform((rows,), bound, dtype))
                if proj_size:
                    setattr(self, f"weight_hr{suffix}", init.uniform((proj_size, hidden_size), bound, dtype))

    def step(self, a: Any, b: Any, *states: Any) -> tuple[Any, ...]:
        """The next states, of the products of input and hidden state with their weights, and the states."""
        raise NotDefinedError(f"{type(self).__name__} does not define step(), which makes the next states")

    def _suffixes(self, layer: int) -> list[str]:
        """How the names of a layer's parameters end, per direction."""
        return [f"_l{layer}", f"_l{layer}_reverse"][: 1 + self.bidirectional]

    @property
    def _all_weights(self) -> list[list[str]]:
        parts = ["weight_ih", "weight_hh", *(["bias_ih", "bias_hh"] if self.bias else [])]
        parts += ["weight_hr"] if self.proj_size else []
        return [[part + x for part in parts] for layer in range(self.num_layers) for x in self._suffixes(layer)]

    _flat_weights_names = property(lambda self: [name for names in self._all_weights for name in names])

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Nothing to do: products read the weights where they lie."""

    def forward(self, input: Any, hx: Any = None) -> Any:
        """Run over a sequence.

        Parameters
        ----------
        input : (time, batch, input_size), (batch, time, input_size) if `batch_first`, or (time, input_size); or a
            `PackedSequence`, each sequence of which ends where it ends.
        hx : (directions * num_layers, batch, hidden_size), the first states, zeros by default; without a batch if
            `input` has none. Of an LSTM a pair of them, (h, c).

        Returns
        -------
        output : (time, batch, directions * hidden_size), the last layer's h of each step; laid out as `input`.
        hx : as `hx`, the last states.

        Raises
        ------
        ShapeError : sizes that do not fit.
        DTypeError : `input` has another dtype than the parameters.
        """
        if isinstance(input, PackedSequence):
            return self._packed(input, hx)
        x, batched = input, input.ndim == 3
        if x.ndim not in (2, 3) or x.shape[-1] != self.input_size:
            wanted = f"2 or 3 dimensions, the last of size {self.input_size}"
            raise ShapeError(f"{type(self).__name__}: Expected input of {wanted}, got shape {tuple(x.shape)}")
        self._require_dtype(x)
        x = x.unsqueeze(1) if not batched else x.transpose(0, 1) if self.batch_first else x
        x, finals = self._layers(x, self._starts(x, hx, batched), None)
        last = tuple(F.stack(h) if batched else F.stack(h).squeeze(1) for h in zip(*finals))
        output = x.squeeze(1) if not batched else x.transpose(0, 1) if self.batch_first else x
        return output, last if self.states > 1 else last[0]

    def _packed(self, given: PackedSequence, hx: Any) -> Any:
        """Run `forward` on a packed sequence: while a sequence takes a step, ended ones keep their states."""
        data, sizes = lift(given.data), numbers(given.batch_sizes, "batch_sizes")
        if data.ndim != 2 or data.shape[-1] != self.input_size:
            wanted = f"2 dimensions, the last of size {self.input_size}"
            raise ShapeError(f"{type(self).__name__}: Expected packed data of {wanted}, got shape {tuple(data.shape)}")
        self._require_dtype(data)
        x, valid = padded(data, sizes)
        if hx is not None and given.sorted_indices is not None:
            hx = tuple(F.index_select(lift(h), 1, given.sorted_indices) for h in self._pair(hx))
            hx = hx if self.states > 1 else hx[0]
        x, finals = self._layers(x, self._starts(x, hx, True), lift(valid[..., None]))
        last = tuple(F.stack(h) for h in zip(*finals))
        if given.unsorted_indices is not None:
            last = tuple(F.index_select(h, 1, given.unsorted_indices) for h in last)
        return given._replace(data=packed(x, sizes)), last if self.states > 1 else last[0]

    def _require_dtype(self, x: Any) -> None:
        """Refuse an input of another dtype than the parameters'."""
        own = self.weight_ih_l0.dtype
        if x.dtype != own:
            raise DTypeError(f"{type(self).__name__}: RNN input dtype ({x.dtype}) does not match weight dtype ({own}). "
                             f"Convert input: input.to({own}), or convert model: model.to({x.dtype})")  # fmt: skip

    def _layers(self, x: Any, starts: list[list[Any]], valid: Any) -> tuple[Any, list[Any]]:
        """The last layer's h of each step, and the last states of each layer and direction.

        Parameters
        ----------
        x : (time, batch, input_size)
        starts : see `_starts`.
        valid : (time, batch, 1), whether a sequence has a step, or None.
        """
        finals: list[Any] = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = dropout(x, self.dropout, self.training)
            outputs = []
            for reverse, suffix in enumerate(self._suffixes(layer)):
                final, output = self._scan(x, tuple(starts[len(finals)]), suffix, bool(reverse), valid)
                finals.append(final)
                outputs.append(output)
            x = F.cat(outputs, -1) if self.bidirectional else outputs[0]
        return x, finals

    def _starts(self, x: Any, hx: Any, batched: bool) -> list[list[Any]]:
        """The first states (batch, hidden_size), per layer and direction; x is (time, batch, input_size)."""
        count = self.num_layers * (1 + self.bidirectional)
        if hx is None:
            rows = F.zeros_like(x[0, :, :1])
            return [[rows + F.zeros_like(self.weight_hh_l0[:n, 0]) for n in self._widths()]] * count
        given = [lift(h) if batched else lift(h).unsqueeze(1) for h in self._pair(hx)]
        for h, width in zip(given, self._widths(), strict=True):
            wanted = (count, x.shape[1], width)
            if h.ndim != 3 or any(not same(m, n) and m != n for m, n in zip(h.shape, wanted)):
                shown = wanted if batched else wanted[::2]
                got = tuple(h.shape) if batched else (*h.shape[:1], *h.shape[2:])
                raise ShapeError(f"{type(self).__name__}: Expected hidden size {shown}, got {got}")
        return [[h[k] for h in given] for k in range(count)]

    def _pair(self, hx: Any) -> Any:
        """The given states, one per kind.

        Raises
        ------
        ArgumentError : not as many as there are kinds.
        """
        if self.states == 1:
            return (hx,)
        if not isinstance(hx, (tuple, list)) or len(hx) != self.states:
            raise ArgumentError(f"{type(self).__name__}: hx is a pair (h_0, c_0), got {type(hx).__name__}")
        return hx

    def _widths(self) -> list[int]:
        """Sizes of the states: h, which may be projected, and the others."""
        return [self.proj_size or self.hidden_size, *[self.hidden_size] * (self.states - 1)]

    def _scan(self, x: Any, start: tuple[Any, ...], suffix: str, reverse: bool, valid: Any) -> Any:
        """One layer in one direction: its final states, and the first kind of state at all steps."""
        w, u, b, d = (getattr(self, f"{part}{suffix}", None) for part in _PARTS)

        projection = getattr(self, f"weight_hr{suffix}", None)

        def run(start: tuple[Any, ...], rows: Any, weights: Any, bias: Any) -> Any:
            def step(states: Any, row: Any) -> Any:
                product, here = row if valid is not None else (row, None)
                new = self.step(product, F.linear(states[0], weights, bias), *states)
                if projection is not None:
                    new = (F.linear(new[0], projection), *new[1:])
                if here is not None:
                    new = tuple(F.where(here, x, old) for x, old in zip(new, states, strict=True))
                return new, new[0]

            return scan(step, start, rows if valid is None else (rows, valid), reverse=reverse)

        products = F.linear(x, w, b)
        if projection is None and recurrent_kernel.is_one_kernel(products, start, u, d):
            counts: Any = None if valid is None else np.count_nonzero(valid.payload, (1, 2))
            return recurrent_kernel.run_layer(self.mode, reverse, [*start, products, u, d], counts, run)
        return run(start, products, u, d)

    def extra_repr(self) -> str:
        """The arguments that differ from the defaults."""
        text = f"{self.input_size}, {self.hidden_size}{f', proj_size={self.proj_size}' if self.proj_size else ''}"
        defaults = {"num_layers": 1, "bias": True, "batch_first": False, "dropout": 0.0, "bidirectional": False}
        return text + "".join(f", {n}={getattr(self, n)}" for n, v in defaults.items() if getattr(self, n) != v)


_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class RNN(RNNBase):
    """Layers of tanh(W x + b + U h + c) over a sequence, see `RNNCell`.

    Parameters
    ----------
    input_size, hidden_size : last sizes of input and state.
    num_layers : layers, each of which reads the h of the one before.
    nonlinearity : "tanh" or "relu".
    bias : whether there are b and c.
    batch_first : whether input and output are (batch, time, ...) instead of (time, batch, ...).
    dropout : probability with which elements between two layers are dropped in training.
    bidirectional : whether each layer also goes from the last step to the first.
    device : the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 : W, U, b and c of the first layer, drawn from U(-k, k),
        k = 1 / sqrt(hidden_size); so for each layer, and with ``_reverse`` for the other direction.

    Raises
    ------
    ArgumentError : another nonlinearity, a probability outside [0, 1), no layer or no state.

    Examples
    --------
    >>> import numpy as np, dynamic as tw
    >>> y, h = tw.nn.RNN(3, 4, num_layers=2)(np.ones((5, 2, 3), np.float32))
    >>> y.shape, h.shape
    (torch.Size([5, 2, 4]), torch.Size([2, 2, 4]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        *,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        activation(nonlinearity)  # refuses others
        super().__init__(input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, dtype=dtype)
        on_cpu(device, type(self).__name__)
        self.nonlinearity, self.mode = nonlinearity, f"RNN_{nonlinearity.upper()}"

    def step(self, a: Any, b: Any, *states: Any) -> tuple[Any, ...]:
        """See `RNNCell`."""
        return (activation(self.nonlinearity)(a + b),)


class GRU(RNNBase):
    """Layers of gated recurrent units over a sequence, see `GRUCell`.

    Parameters
    ----------
    input_size, hidden_size : last sizes of input and state.
    num_layers : layers, each of which reads the h of the one before.
    bias : whether there are b and c.
    batch_first : whether input and output are (batch, time, ...) instead of (time, batch, ...).
    dropout : probability with which elements between two layers are dropped in training.
    bidirectional : whether each layer also goes from the last step to the first.
    device : the CPU.
    dtype : of the parameters, float32 by default.
    proj_size : 0; only an LSTM projects its state.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 : rows for r, z and n of the first layer, drawn from U(-k, k),
        k = 1 / sqrt(hidden_size); so for each layer, and with ``_reverse`` for the other direction.

    Raises
    ------
    ArgumentError : a probability outside [0, 1), no layer or no state.

    Examples
    --------
    >>> import numpy as np, dynamic as tw
    >>> y, h = tw.nn.GRU(3, 4, bidirectional=True)(np.ones((5, 2, 3), np.float32))
    >>> y.shape, h.shape
    (torch.Size([5, 2, 8]), torch.Size([2, 2, 4]))
    """

    mode = "GRU"
    gates = 3

    def step(self, a: Any, b: Any, *states: Any) -> tuple[Any, ...]:
        """See `GRUCell`."""
        return (gru_step(a, b, *states),)


class LSTM(RNNBase):
    """Layers of long short-term memory over a sequence, see `LSTMCell`.

    Parameters
    ----------
    input_size, hidden_size : last sizes of input and state.
    num_layers : layers, each of which reads the h of the one before.
    bias : whether there are b and c.
    batch_first : whether input and output are (batch, time, ...) instead of (time, batch, ...).
    dropout : probability with which elements between two layers are dropped in training.
    bidirectional : whether each layer also goes from the last step to the first.
    device : the CPU.
    dtype : of the parameters, float32 by default.
    proj_size : if not 0, h is multiplied with a weight of (proj_size, hidden_size) after each step, and has that size.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0 : rows for i, f, g and o of the first layer, drawn from U(-k, k),
        k = 1 / sqrt(hidden_size); so for each layer, and with ``_reverse`` for the other direction.
    weight_hr_l0 : what h is projected with, only with `proj_size`.

    Raises
    ------
    ArgumentError : a probability outside [0, 1), no layer or no state, a `proj_size` that is not below `hidden_size`.

    Examples
    --------
    >>> import numpy as np, dynamic as tw
    >>> y, (h, c) = tw.nn.LSTM(3, 4, batch_first=True)(np.ones((2, 5, 3), np.float32))
    >>> y.shape, h.shape, c.shape
    (torch.Size([2, 5, 4]), torch.Size([1, 2, 4]), torch.Size([1, 2, 4]))
    """

    mode = "LSTM"
    gates, states = 4, 2

    def step(self, a: Any, b: Any, *states: Any) -> tuple[Any, ...]:
        """See `LSTMCell`."""
        return lstm_step(a, b, *states)
