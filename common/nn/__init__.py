"""Modules: parameters and the functions that use them, the same objects for both engines."""

from common.leaf import Buffer, Parameter
from common.nn.activations import GELU, LogSoftmax, ReLU, Sigmoid, Softmax, Tanh
from common.nn.containers import Sequential
from common.nn.layers import Dropout, Embedding, Flatten, Identity, LayerNorm, Linear
from common.nn.losses import (
    BCELoss,
    BCEWithLogitsLoss,
    CosineSimilarity,
    CrossEntropyLoss,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    NLLLoss,
    SmoothL1Loss,
    SoftMarginLoss,
)
from common.nn.module import Module

__all__ = [
    "BCELoss",
    "BCEWithLogitsLoss",
    "Buffer",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Embedding",
    "Flatten",
    "GELU",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "Identity",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "Linear",
    "LogSoftmax",
    "MSELoss",
    "MarginRankingLoss",
    "Module",
    "NLLLoss",
    "Parameter",
    "ReLU",
    "Sequential",
    "Sigmoid",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "Softmax",
    "Tanh",
]
