"""Page of a function and its sweeps side by side, whose lines are linked by statement."""

from __future__ import annotations

import html

from tapegen.errors import printable
from tapegen.pipeline.inspection import Inspection

_STYLE = ":root { color-scheme: light dark; } body { margin: 1.5rem; }"


def page(inspection: Inspection) -> str:
    """The complete page, which loads nothing and runs nothing."""
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(printable(inspection.report.function))}</title>
<style>{_STYLE}</style>
</head>
<body>
{inspection.html(legend=True)}
</body>
</html>
"""
