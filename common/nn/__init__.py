"""Modules: parameters and the functions that use them, the same objects for both engines."""

from common.leaf import Buffer, Parameter
from common.nn.activations import (
    GELU,
    CrossEntropyLoss,
    LogSoftmax,
    MSELoss,
    NLLLoss,
    ReLU,
    Sigmoid,
    Softmax,
    Tanh,
)
from common.nn.containers import Sequential
from common.nn.layers import Dropout, Embedding, Flatten, LayerNorm, Linear
from common.nn.module import Module

__all__ = [
    "GELU", "Buffer", "CrossEntropyLoss", "Dropout", "Embedding", "Flatten", "LayerNorm", "Linear", "LogSoftmax",
    "MSELoss", "Module", "NLLLoss", "Parameter", "ReLU", "Sequential", "Sigmoid", "Softmax", "Tanh",
]  # fmt: skip
