"""`tf.image`."""

from tapegen.tf.registered import adjust_contrast

__all__ = ["adjust_contrast"]
