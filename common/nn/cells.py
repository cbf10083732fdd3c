"""Recurrent cells: one step of an RNN, a GRU, an LSTM; parameters, their order and gates are PyTorch's."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from common.core.devices import on_cpu
from common.core.errors import ArgumentError, ShapeError
from common.nn import functions as F
from common.nn import init
from common.nn.module import Module
from common.nn.reset import reset_parameters


def activation(name: str) -> Callable[[Any], Any]:
    """The nonlinearity of an RNN.

    Raises
    ------
    ArgumentError : it is not "tanh" or "relu".
    """
    if name not in ("tanh", "relu"):
        raise ArgumentError(f"Unknown nonlinearity: {name}; use 'tanh' or 'relu'")
    found: Callable[[Any], Any] = getattr(F, name)
    return found


def gru_step(a: Any, b: Any, h: Any) -> Any:
    """The next state of a GRU, of the products of input and state with their weights, and the state."""
    (ir, iz, inew), (hr, hz, hnew) = (F.chunk(p, 3, -1) for p in (a, b))
    reset, update = F.sigmoid(ir + hr), F.sigmoid(iz + hz)
    new = F.tanh(inew + reset * hnew)
    return (h - new) * update + new


def lstm_step(a: Any, b: Any, h: Any, c: Any) -> tuple[Any, Any]:
    """The next h and c of an LSTM, of the products of input and h with their weights, and the states."""
    i, f, g, o = F.chunk(a + b, 4, -1)
    c = F.sigmoid(f) * c + F.sigmoid(i) * F.tanh(g)
    return F.sigmoid(o) * F.tanh(c), c


class RNNCellBase(Module):
    """The base of RNNCell, GRUCell and LSTMCell; it has no step of its own.

    Parameters
    ----------
    input_size, hidden_size, bias : see `LSTMCell`.
    num_chunks : how many times `hidden_size` rows the weights have.
    device : the CPU.
    dtype : of the parameters, float32 by default.
    """

    reset_parameters = reset_parameters

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        on_cpu(device, type(self).__name__)
        self.input_size, self.hidden_size, self.bias = input_size, hidden_size, bias
        bound, rows = 1 / math.sqrt(hidden_size) if hidden_size > 0 else 0.0, num_chunks * hidden_size
        self.weight_ih = init.uniform((rows, input_size), bound, dtype)
        self.weight_hh = init.uniform((rows, hidden_size), bound, dtype)
        self.bias_ih = init.uniform((rows,), bound, dtype) if bias else None
        self.bias_hh = init.uniform((rows,), bound, dtype) if bias else None

    def _state(self, x: Any, h: Any) -> Any:
        """The hidden state, zeros at first.

        Raises
        ------
        ShapeError : sizes that do not fit.
        """
        name = type(self).__name__
        if x.ndim not in (1, 2):
            raise ShapeError(f"{name}: Expected input to be 1D or 2D, got {x.ndim}D instead")
        if x.shape[-1] != self.input_size:
            raise ShapeError(f"{name}: input has inconsistent input_size: got {x.shape[-1]} expected {self.input_size}")
        if h is None:
            return F.zeros_like(x[..., :1]) + F.zeros_like(self.weight_hh[: self.hidden_size, 0])
        if h.ndim != x.ndim:
            raise ShapeError(f"{name}: hidden of shape {tuple(h.shape)} does not fit input {tuple(x.shape)}")
        if x.ndim == 2 and h.shape[0] != x.shape[0]:
            raise ShapeError(f"{name}: Input batch size {x.shape[0]} doesn't match hidden batch size {h.shape[0]}")
        if h.shape[-1] != self.hidden_size:
            raise ShapeError(f"{name}: hidden has inconsistent hidden_size: got {h.shape[-1]}, expected "
                             f"{self.hidden_size}")  # fmt: skip
        return h

    def _products(self, x: Any, h: Any) -> tuple[Any, Any]:
        return F.linear(x, self.weight_ih, self.bias_ih), F.linear(h, self.weight_hh, self.bias_hh)

    def extra_repr(self) -> str:
        """The arguments."""
        return f"{self.input_size}, {self.hidden_size}{'' if self.bias else ', bias=False'}"


class RNNCell(RNNCellBase):
    """tanh(W x + b + U h + c).

    Parameters
    ----------
    input_size, hidden_size : last sizes of input and state.
    bias : whether there are b and c.
    nonlinearity : "tanh" or "relu".
    device : the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight_ih, weight_hh, bias_ih, bias_hh : W, U, b and c, drawn from U(-k, k), k = 1 / sqrt(hidden_size).

    Raises
    ------
    ArgumentError : another nonlinearity.
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        activation(nonlinearity)
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next state (batch, hidden_size) of input (batch, input_size) and state `hx`, zeros by default."""
        a, b = self._products(input, self._state(input, hx))
        return activation(self.nonlinearity)(a + b)

    def extra_repr(self) -> str:
        """The arguments."""
        return super().extra_repr() + (f", nonlinearity={self.nonlinearity}" if self.nonlinearity != "tanh" else "")


class GRUCell(RNNCellBase):
    """A gated recurrent unit: r, z = sigmoid; n = tanh(W x + b + r (U h + c)); (1 - z) n + z h.

    Parameters
    ----------
    input_size, hidden_size : last sizes of input and state.
    bias : whether there are biases.
    device : the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight_ih, weight_hh, bias_ih, bias_hh : rows for r, z and n, drawn from U(-k, k), k = 1 / sqrt(hidden_size).

    References
    ----------
    Cho and others, Learning phrase representations using RNN encoder-decoder, 2014.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> Any:
        """The next state (batch, hidden_size) of input (batch, input_size) and state `hx`, zeros by default."""
        h = self._state(input, hx)
        return gru_step(*self._products(input, h), h)


class LSTMCell(RNNCellBase):
    """Long short-term memory: c' = sigmoid(f) c + sigmoid(i) tanh(g), h' = sigmoid(o) tanh(c').

    Parameters
    ----------
    input_size, hidden_size : last sizes of input and state.
    bias : whether there are biases.
    device : the CPU.
    dtype : of the parameters, float32 by default.

    Attributes
    ----------
    weight_ih, weight_hh, bias_ih, bias_hh : rows for i, f, g and o, drawn from U(-k, k), k = 1 / sqrt(hidden_size).

    References
    ----------
    Hochreiter, Schmidhuber, Long short-term memory, 1997; Gers and others, Learning to forget, 2000.
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """The next h and c, (batch, hidden_size) each, of input (batch, input_size) and ``hx = (h, c)``, or zeros."""
        h, c = (None, None) if hx is None else hx
        h, c = self._state(input, h), self._state(input, c)
        return lstm_step(*self._products(input, h), h, c)
