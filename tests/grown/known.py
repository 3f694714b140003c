"""Seeds of the ordinary tests that fail, each with the reason; to be empty."""

KNOWN: dict[int, str] = {}
