"""`tf.image`."""

from tapegen.tf.gradient_registry import adjust_contrast

__all__ = ["adjust_contrast"]
