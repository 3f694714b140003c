"""Functions of published packages, unmodified, called as their documentation calls them."""
