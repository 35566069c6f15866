"""Draws time over size as an SVG, both axes logarithmic. Lines end with their last measured size."""

import math
from xml.sax.saxutils import escape

WIDTH, HEIGHT = 860, 520
LEFT, RIGHT, TOP, BOTTOM = 74, 200, 40, 56
# Distinguishable without red and green (Okabe and Ito), and by their dashes.
STYLES = [("#0072b2", ""), ("#d55e00", ""), ("#009e73", "6 3"), ("#cc79a7", "6 3"),
          ("#e69f00", "2 3"), ("#56b4e9", "2 3"), ("#555555", "8 3 2 3"), ("#999933", "1 2")]


def size_label(bytes_):
    for power, unit in ((20, "Mi"), (10, "Ki")):
        if bytes_ >= 1 << power:
            return f"{bytes_ >> power} {unit}"
    return str(bytes_)


def time_label(exponent):
    number, unit = [(1, "ns"), (10, "ns"), (100, "ns"), (1, "\u00b5s"), (10, "\u00b5s"),
                    (100, "\u00b5s"), (1, "ms"), (10, "ms"), (100, "ms"), (1, "s"),
                    (10, "s"), (100, "s")][exponent + 3]
    return f"{number} {unit}"


class Axes:
    def __init__(self, lines):
        sizes = [size for _, points in lines for size, _ in points]
        times = [time for _, points in lines for _, time in points]
        self.sizes = sorted(set(sizes))
        self.low, self.high = math.log(min(sizes)), math.log(max(sizes))
        self.bottom = math.floor(math.log10(min(times)))
        self.top = max(math.ceil(math.log10(max(times))), self.bottom + 1)

    def x(self, size):
        share = (math.log(size) - self.low) / max(self.high - self.low, 1e-9)
        return LEFT + share * (WIDTH - LEFT - RIGHT)

    def y(self, time):
        share = (math.log10(time) - self.bottom) / (self.top - self.bottom)
        return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM)


def text(x, y, words, anchor="middle", more=""):
    return f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'


def grid_line(x1, y1, x2, y2):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="grid"/>'


def circle(x, y, colour):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>'


def grid(axes):
    shapes = []
    for exponent in range(axes.bottom, axes.top + 1):
        y = axes.y(10.0 ** exponent)
        shapes.append(grid_line(LEFT, y, WIDTH - RIGHT, y))
        shapes.append(text(LEFT - 8, y + 4, time_label(exponent), "end"))
    for size in axes.sizes:
        x = axes.x(size)
        shapes.append(grid_line(x, TOP, x, HEIGHT - BOTTOM))
        shapes.append(text(x, HEIGHT - BOTTOM + 18, size_label(size)))
    return shapes


def svg(title, lines):
    """`lines`: (name, [(bytes, microseconds), ...]), in the order of the legend."""
    lines = [(name, points) for name, points in lines if points]
    axes = Axes(lines)
    shapes = [text(LEFT, 24, title, "start", 'font-weight="bold"'), *grid(axes)]
    for place, (name, points) in enumerate(lines):
        colour, dash = STYLES[place % len(STYLES)]
        stroke = f'stroke="{colour}" stroke-width="2" stroke-dasharray="{dash}" fill="none"'
        path = " ".join(f"{axes.x(size):.1f},{axes.y(time):.1f}" for size, time in points)
        shapes.append(f'<polyline points="{path}" {stroke}/>')
        shapes += [circle(axes.x(size), axes.y(time), colour) for size, time in points]
        y = TOP + 12 + 20 * place
        x = WIDTH - RIGHT + 14
        shapes.append(f'<line x1="{x}" x2="{x + 26}" y1="{y}" y2="{y}" {stroke}/>')
        shapes.append(text(x + 32, y + 4, name, "start"))
    shapes.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, "bytes of each rank's buffer"))
    body = "\n  ".join(shapes)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" '
            f'font-family="sans-serif" font-size="12">\n'
            f"  <style>.grid {{ stroke: #ddd; stroke-width: 1 }}</style>\n"
            f'  <rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>\n  {body}\n</svg>\n')
