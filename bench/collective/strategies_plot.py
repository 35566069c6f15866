"""The chart of strategies.py as an SVG: accuracy against seconds, and images/s as bars."""

import math

from plot import STYLES, circle, grid_line, text

WIDTH, HEIGHT = 960, 420
TOP, BOTTOM = 64, 56
# The left and right edges of the two halves.
LINES = (64, 560)
BARS = (640, 940)
LOWEST = 0.5  # accuracy at the lower edge of the chart
DASHES = {"ring": "", "parameter server": "6 3"}


def colour_of(workers):
    return STYLES[int(math.log2(workers))][0]


def down(share):
    """The y coordinate of a share of the height, measured from below."""
    return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def accuracy_lines(curves):
    points = [point for line in curves.values() for point in line]
    first = math.log10(min(seconds for seconds, _ in points))
    last = math.log10(max(seconds for seconds, _ in points))
    left, right = LINES

    def across(seconds):
        return left + (math.log10(seconds) - first) / max(last - first, 1e-9) * (right - left)

    def up(accuracy):
        return down((max(accuracy, LOWEST) - LOWEST) / (1 - LOWEST))

    shapes = [text(left, 24, "Test accuracy against seconds", "start", 'font-weight="bold"')]
    for tenths in range(round(10 * LOWEST), 11):
        shapes += [grid_line(left, up(tenths / 10), right, up(tenths / 10)),
                   text(left - 8, up(tenths / 10) + 4, f"{10 * tenths} %", "end")]
    for mark in (base * 10 ** power for power in range(-3, 3) for base in (1, 2, 5)):
        if first <= math.log10(mark) <= last:
            shapes += [grid_line(across(mark), TOP, across(mark), HEIGHT - BOTTOM),
                       text(across(mark), HEIGHT - BOTTOM + 18, f"{mark:g} s")]
    for (strategy, workers), line in curves.items():
        colour = colour_of(workers)
        path = " ".join(f"{across(seconds):.1f},{up(accuracy):.1f}" for seconds, accuracy in line)
        shapes.append(f'<polyline points="{path}" stroke="{colour}" stroke-width="2" '
                      f'stroke-dasharray="{DASHES[strategy]}" fill="none"/>')
        shapes += [circle(across(seconds), up(accuracy), colour) for seconds, accuracy in line]
    return shapes + legend(list(curves))


def legend(keys):
    shapes = []
    for place, (strategy, workers) in enumerate(keys):
        x = LINES[1] - 210
        y = HEIGHT - BOTTOM - 20 * (len(keys) - place)
        many = "" if workers == 1 else "s"
        shapes += [f'<line x1="{x}" x2="{x + 26}" y1="{y}" y2="{y}" stroke="{colour_of(workers)}" '
                   f'stroke-width="2" stroke-dasharray="{DASHES[strategy]}"/>',
                   text(x + 32, y + 4, f"{strategy}, {workers} worker{many}", "start")]
    return shapes


def speed_bars(speeds):
    left, right = BARS
    most = max(speeds.values())
    wide = (right - left) / len(speeds)
    shapes = [text(left, 24, "Images learned from per second", "start", 'font-weight="bold"')]
    for place, ((strategy, workers), speed) in enumerate(speeds.items()):
        x, y = left + place * wide, down(speed / most)
        dash = f'stroke="{colour_of(workers)}" stroke-width="2" stroke-dasharray="{DASHES[strategy]}"'
        fill = colour_of(workers) if strategy == "ring" else "white"
        shapes += [f'<rect x="{x + 5:.1f}" y="{y:.1f}" width="{wide - 10:.1f}" '
                   f'height="{HEIGHT - BOTTOM - y:.1f}" fill="{fill}" {dash}/>',
                   text(x + wide / 2, y - 6, f"{speed:,.0f}"),
                   text(x + wide / 2, HEIGHT - BOTTOM + 18, "ring" if strategy == "ring" else "ps"),
                   text(x + wide / 2, HEIGHT - BOTTOM + 34, f"{workers}")]
    return shapes


def svg(curves, speeds):
    """`curves`: (strategy, workers) -> [(seconds, accuracy)]; `speeds`: the same -> images/s."""
    body = "\n  ".join(accuracy_lines(curves) + speed_bars(speeds))
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif" font-size="12">\n'
            f"  <style>.grid {{ stroke: #ddd; stroke-width: 1 }}</style>\n"
            f'  <rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n  {body}\n</svg>\n')
