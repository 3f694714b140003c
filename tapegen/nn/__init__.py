"""Small neural networks on tapes.

* `module` - objects that know the variables in their attributes
* `functions` - activations
* `layers` - layers, built for the first input they see
* `losses` - losses
* `optimizers` - optimizers
"""

from tapegen.nn.functions import elu, log_softmax, relu, sigmoid, softmax, softplus, tanh
from tapegen.nn.layers import BatchNormalization, Dense, Sequential, set_seed
from tapegen.nn.losses import mean_squared_error, sparse_softmax_cross_entropy
from tapegen.nn.module import Module
from tapegen.nn.optimizers import SGD, Adam, RMSprop

__all__ = [
    "SGD",
    "Adam",
    "BatchNormalization",
    "Dense",
    "Module",
    "RMSprop",
    "Sequential",
    "elu",
    "log_softmax",
    "mean_squared_error",
    "relu",
    "set_seed",
    "sigmoid",
    "softmax",
    "softplus",
    "sparse_softmax_cross_entropy",
    "tanh",
]
