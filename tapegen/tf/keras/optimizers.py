"""`tf.keras.optimizers`."""

from typing import NoReturn

from tapegen.nn import SGD, Adam, RMSprop
from tapegen.tf.values import absent


def __getattr__(name: str) -> NoReturn:
    raise absent("tapegen.tf.keras.optimizers", name)


__all__ = ["SGD", "Adam", "RMSprop"]
