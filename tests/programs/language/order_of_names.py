"""Names put in order while lowering, beside numbers that only the run knows; items and attributes read by `operator`."""

from dataclasses import dataclass
from operator import attrgetter, itemgetter


@dataclass
class Peak:
    place: float
    height: float
    label: str = ""


def backwards(pair):
    name, _ = pair
    return name[::-1]


def f(bands, peaks):
    total = 0.0
    for k, (_, (low, high)) in enumerate(sorted(bands.items())):
        total += (k + 1) * low * high
    for k, (name, (low, _)) in enumerate(sorted(bands.items(), key=lambda item: item[0], reverse=True)):
        total += len(name) * low ** (k + 1)
    pairs = sorted(((name, high) for name, (_, high) in bands.items()), key=backwards)
    pairs.sort(key=lambda pair: len(pair[0]))
    for k, (_, high) in enumerate(pairs):
        total += (k + 1) * high**2
    numbered = sorted([(2, peaks[0].place), (1, peaks[1].place), (1.5, peaks[2].place)], key=itemgetter(0))
    total += numbered[0][1] * numbered[1][1] ** 2
    by_label = sorted(peaks, key=attrgetter("label"))
    total += by_label[0].height * by_label[-1].place
    heights = sorted(((p.height * p.place, k) for k, p in enumerate(peaks)), key=itemgetter(0))
    last, first = itemgetter(-1, 0)(heights)
    return total + last[0] ** 2 * first[0] + max(map(attrgetter("height"), peaks))


ARGS = (
    {"vis": (1.0, 2.0), "nir": (3.0, 0.5), "uv": (0.3, 0.2)},
    [Peak(1.0, 0.7, "b"), Peak(2.0, 0.9, "c"), Peak(1.5, 1.6, "a")],
)
