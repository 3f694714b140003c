"""`tf.keras`, as far as `tapegen.nn` goes."""

from typing import NoReturn

from tapegen.tf.keras import layers, losses, optimizers
from tapegen.tf.keras.layers import Layer as Model
from tapegen.tf.keras.layers import Sequential
from tapegen.tf.values import absent


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.keras", name)


__all__ = ["Model", "Sequential", "layers", "losses", "optimizers"]
