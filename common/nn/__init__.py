"""Modules, with PyTorch's names and arguments."""

from typing import TYPE_CHECKING, Any

from common.core.lazy import Late

if TYPE_CHECKING:
    from common.nn.activations import (
        CELU,
        ELU,
        GELU,
        SELU,
        Hardtanh,
        LeakyReLU,
        LogSigmoid,
        LogSoftmax,
        Mish,
        ReLU,
        ReLU6,
        RReLU,
        Sigmoid,
        SiLU,
        Softmax,
        Softmax2d,
        Softplus,
        Softsign,
        Tanh,
    )
    from common.nn.adaptive_softmax import AdaptiveLogSoftmaxWithLoss
    from common.nn.attention import MultiheadAttention
    from common.nn.cells import GRUCell, LSTMCell, RNNCell, RNNCellBase
    from common.nn.containers import ModuleDict, ModuleList, Sequential
    from common.nn.convolution import Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d
    from common.nn.ctc import CTCLoss
    from common.nn.distribution_losses import (
        CosineEmbeddingLoss,
        GaussianNLLLoss,
        MultiLabelSoftMarginLoss,
        PairwiseDistance,
        PoissonNLLLoss,
        TripletMarginLoss,
        TripletMarginWithDistanceLoss,
    )
    from common.nn.embedding import Embedding, EmbeddingBag
    from common.nn.feature_dropout import (
        AlphaDropout,
        Dropout,
        Dropout1d,
        Dropout2d,
        Dropout3d,
        FeatureAlphaDropout,
    )
    from common.nn.fractional_pooling import FractionalMaxPool2d, FractionalMaxPool3d
    from common.nn.images import (
        ChannelShuffle,
        PixelShuffle,
        PixelUnshuffle,
        Upsample,
        UpsamplingBilinear2d,
        UpsamplingNearest2d,
    )
    from common.nn.layers import Bilinear, Flatten, Identity, LayerNorm, Linear, Unflatten
    from common.nn.lazy_modules import (
        LazyBatchNorm1d,
        LazyBatchNorm2d,
        LazyBatchNorm3d,
        LazyConv1d,
        LazyConv2d,
        LazyConv3d,
        LazyConvTranspose1d,
        LazyConvTranspose2d,
        LazyConvTranspose3d,
        LazyInstanceNorm1d,
        LazyInstanceNorm2d,
        LazyInstanceNorm3d,
        LazyLinear,
        UninitializedParameter,
    )
    from common.nn.linear_classes import LinearCrossEntropyLoss
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
        MultiLabelMarginLoss,
        MultiMarginLoss,
        NLLLoss,
        NLLLoss2d,
        SmoothL1Loss,
        SoftMarginLoss,
    )
    from common.nn.module import Module
    from common.nn.normalization import (
        BatchNorm1d,
        BatchNorm2d,
        BatchNorm3d,
        GroupNorm,
        InstanceNorm1d,
        InstanceNorm2d,
        InstanceNorm3d,
        LocalResponseNorm,
        RMSNorm,
    )
    from common.nn.padding import (
        CircularPad1d,
        CircularPad2d,
        CircularPad3d,
        ConstantPad1d,
        ConstantPad2d,
        ConstantPad3d,
        ReflectionPad1d,
        ReflectionPad2d,
        ReflectionPad3d,
        ReplicationPad1d,
        ReplicationPad2d,
        ReplicationPad3d,
        ZeroPad1d,
        ZeroPad2d,
        ZeroPad3d,
    )
    from common.nn.parallel import DataParallel, SyncBatchNorm
    from common.nn.parameter_containers import ParameterDict, ParameterList
    from common.nn.piecewise import (
        GLU,
        Hardshrink,
        Hardsigmoid,
        Hardswish,
        PReLU,
        Softmin,
        Softshrink,
        Tanhshrink,
        Threshold,
    )
    from common.nn.pooling import (
        AdaptiveAvgPool1d,
        AdaptiveAvgPool2d,
        AdaptiveAvgPool3d,
        AdaptiveMaxPool1d,
        AdaptiveMaxPool2d,
        AdaptiveMaxPool3d,
        AvgPool1d,
        AvgPool2d,
        AvgPool3d,
        Fold,
        LPPool1d,
        LPPool2d,
        LPPool3d,
        MaxPool1d,
        MaxPool2d,
        MaxPool3d,
        MaxUnpool1d,
        MaxUnpool2d,
        MaxUnpool3d,
        Unfold,
    )
    from common.nn.recurrent import GRU, LSTM, RNN, RNNBase
    from common.nn.transformer import (
        Transformer,
        TransformerDecoder,
        TransformerDecoderLayer,
        TransformerEncoder,
        TransformerEncoderLayer,
    )
    from common.tensor.leaf import Buffer, Parameter

CLASSES = Late(
    {
        "common.nn.activations":
            "CELU ELU GELU SELU Hardtanh LeakyReLU LogSigmoid LogSoftmax Mish ReLU ReLU6 RReLU Sigmoid SiLU "
            "Softmax Softmax2d Softplus Softsign Tanh",
        "common.nn.adaptive_softmax": "AdaptiveLogSoftmaxWithLoss",
        "common.nn.attention": "MultiheadAttention",
        "common.nn.cells": "GRUCell LSTMCell RNNCell RNNCellBase",
        "common.nn.containers": "ModuleDict ModuleList Sequential",
        "common.nn.convolution": "Conv1d Conv2d Conv3d ConvTranspose1d ConvTranspose2d ConvTranspose3d",
        "common.nn.ctc": "CTCLoss",
        "common.nn.distribution_losses":
            "CosineEmbeddingLoss GaussianNLLLoss MultiLabelSoftMarginLoss PairwiseDistance PoissonNLLLoss "
            "TripletMarginLoss TripletMarginWithDistanceLoss",
        "common.nn.embedding": "Embedding EmbeddingBag",
        "common.nn.feature_dropout": "AlphaDropout Dropout Dropout1d Dropout2d Dropout3d FeatureAlphaDropout",
        "common.nn.fractional_pooling": "FractionalMaxPool2d FractionalMaxPool3d",
        "common.nn.images":
            "ChannelShuffle PixelShuffle PixelUnshuffle Upsample UpsamplingBilinear2d UpsamplingNearest2d",
        "common.nn.layers": "Bilinear Flatten Identity LayerNorm Linear Unflatten",
        "common.nn.lazy_modules":
            "LazyBatchNorm1d LazyBatchNorm2d LazyBatchNorm3d LazyConv1d LazyConv2d LazyConv3d LazyConvTranspose1d "
            "LazyConvTranspose2d LazyConvTranspose3d LazyInstanceNorm1d LazyInstanceNorm2d LazyInstanceNorm3d "
            "LazyLinear UninitializedParameter",
        "common.nn.linear_classes": "LinearCrossEntropyLoss",
        "common.nn.losses":
            "BCELoss BCEWithLogitsLoss CosineSimilarity CrossEntropyLoss HingeEmbeddingLoss HuberLoss KLDivLoss "
            "L1Loss MarginRankingLoss MSELoss MultiLabelMarginLoss MultiMarginLoss NLLLoss NLLLoss2d SmoothL1Loss "
            "SoftMarginLoss",
        "common.nn.module": "Module",
        "common.nn.normalization":
            "BatchNorm1d BatchNorm2d BatchNorm3d GroupNorm InstanceNorm1d InstanceNorm2d InstanceNorm3d "
            "LocalResponseNorm RMSNorm",
        "common.nn.padding":
            "CircularPad1d CircularPad2d CircularPad3d ConstantPad1d ConstantPad2d ConstantPad3d ReflectionPad1d "
            "ReflectionPad2d ReflectionPad3d ReplicationPad1d ReplicationPad2d ReplicationPad3d ZeroPad1d "
            "ZeroPad2d ZeroPad3d",
        "common.nn.parallel": "DataParallel SyncBatchNorm",
        "common.nn.parameter_containers": "ParameterDict ParameterList",
        "common.nn.piecewise": "GLU Hardshrink Hardsigmoid Hardswish PReLU Softmin Softshrink Tanhshrink Threshold",
        "common.nn.pooling":
            "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveAvgPool3d AdaptiveMaxPool1d AdaptiveMaxPool2d "
            "AdaptiveMaxPool3d AvgPool1d AvgPool2d AvgPool3d Fold LPPool1d LPPool2d LPPool3d MaxPool1d MaxPool2d "
            "MaxPool3d MaxUnpool1d MaxUnpool2d MaxUnpool3d Unfold",
        "common.nn.recurrent": "GRU LSTM RNN RNNBase",
        "common.nn.transformer":
            "Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer",
        "common.tensor.leaf": "Buffer Parameter",
    }
)  # fmt: skip
"""What the imports above say, for programs: each file is loaded when one of its classes is first asked for."""

__all__ = [
    "LazyBatchNorm1d", "LazyBatchNorm2d", "LazyBatchNorm3d", "LazyConv1d", "LazyConv2d", "LazyConv3d",
    "LazyConvTranspose1d", "LazyConvTranspose2d", "LazyConvTranspose3d", "LazyInstanceNorm1d", "LazyInstanceNorm2d",
    "LazyInstanceNorm3d", "LazyLinear", "UninitializedParameter", "AdaptiveAvgPool1d", "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d", "AdaptiveLogSoftmaxWithLoss", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "AdaptiveMaxPool3d",
    "AlphaDropout", "AvgPool1d", "AvgPool2d", "AvgPool3d", "BatchNorm1d", "BatchNorm2d", "BatchNorm3d", "BCELoss",
    "BCEWithLogitsLoss", "Bilinear", "Buffer", "CELU", "ChannelShuffle", "CircularPad1d", "CircularPad2d",
    "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d", "Conv1d", "Conv2d", "Conv3d",
    "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d", "CosineEmbeddingLoss", "CosineSimilarity",
    "CrossEntropyLoss", "CTCLoss", "DataParallel", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "ELU",
    "Embedding", "EmbeddingBag", "FeatureAlphaDropout", "Flatten", "Fold", "FractionalMaxPool2d",
    "FractionalMaxPool3d", "GaussianNLLLoss", "GELU", "GLU", "GroupNorm", "GRU", "GRUCell", "Hardshrink",
    "Hardsigmoid", "Hardswish", "Hardtanh", "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1d",
    "InstanceNorm2d", "InstanceNorm3d", "KLDivLoss", "L1Loss", "LayerNorm", "LeakyReLU", "Linear",
    "LinearCrossEntropyLoss", "LocalResponseNorm", "LogSigmoid", "LogSoftmax", "LPPool1d", "LPPool2d", "LPPool3d",
    "LSTM", "LSTMCell", "MarginRankingLoss", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d", "Mish", "Module", "ModuleDict", "ModuleList", "MSELoss", "MultiheadAttention",
    "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "NLLLoss2d", "PairwiseDistance",
    "Parameter", "ParameterDict", "ParameterList", "PixelShuffle", "PixelUnshuffle", "PoissonNLLLoss", "PReLU",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReLU", "ReLU6", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "RMSNorm", "RNN", "RNNBase", "RNNCell", "RNNCellBase", "RReLU", "SELU", "Sequential", "Sigmoid",
    "SiLU", "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softmax2d", "Softmin", "Softplus", "Softshrink", "Softsign",
    "SyncBatchNorm", "Tanh", "Tanhshrink", "Threshold",
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer",
    "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten", "Unfold", "Upsample", "UpsamplingBilinear2d",
    "UpsamplingNearest2d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in CLASSES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return CLASSES[name]
