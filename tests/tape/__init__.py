"""The tape: each line of its semantics is a test named after its number."""
