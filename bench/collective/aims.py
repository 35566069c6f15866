"""The tables: figures compared with those of the best peer and the limit, with the aims.

An aim is a ratio: the speed relative to the best peer, or the share of the limit.
"""

from measure import verdict

KIB, MIB = 1 << 10, 1 << 20


def ordinary(bytes_, place):
    """Aims for two ranks over shared memory."""
    return 2 if bytes_ >= 64 * KIB else 1


def arena(bytes_, place):
    if bytes_ == 64 * KIB:
        return 2.5
    return 4 if bytes_ >= 4 * MIB and place == "out" else None


def arena_of_limit(bytes_, place):
    return 0.6 if bytes_ >= 16 * MIB else None


def crowded(bytes_, place):
    return 1


def network(bytes_, place):
    return 1 if bytes_ >= 64 * KIB else None


def network_of_limit(bytes_, place):
    return 0.85 if bytes_ >= MIB else None


def none(bytes_, place):
    return None


def size_text(bytes_):
    for unit, name in ((MIB, "Mi"), (KIB, "Ki")):
        if bytes_ >= unit and bytes_ % unit == 0:
            return f"{bytes_ // unit} {name}"
    return f"{bytes_ / 1e6:.0f} MB" if bytes_ > 1e6 else str(bytes_)


def time_text(microseconds):
    if microseconds is None:
        return "-"
    if microseconds < 10:
        return f"{microseconds:.2f}"
    return f"{microseconds:.1f}" if microseconds < 100 else f"{microseconds:,.0f}"


def judged(ratio, aim):
    """The last cells of a row: the ratio, the aim and the verdict."""
    if ratio is None:
        return ["-", "", ""]
    if aim is None:
        return [f"{ratio:.2f}", "", ""]
    return [f"{ratio:.2f}", f"at least {aim:g}", verdict(ratio >= aim)]


def print_columns(rows, left=1):
    """Prints columns as wide as necessary; the first `left` columns left-aligned, the others right-aligned."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        cells = [cell.ljust(width) if column < left else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        print("    " + "  ".join(cells).rstrip())


class Section:
    """The contents of one table. `subjects`: names of our subjects -> (aim against the best peer, aim against
    the limit), each a function of bytes and place that may return None. `limit(state, bytes)`: microseconds, or
    None."""

    def __init__(self, figures, name, subjects, peers, limit=lambda state, bytes_: None):
        self.figures = figures
        self.name = name
        self.subjects = subjects
        self.peers = peers
        self.limit = limit

    def best_peer(self, state, bytes_, place, type_):
        """(median, name), or None. Also None if a peer that is the best in the other state of the cores was not
        measured in this state, since the best peer is unknown then."""
        # Peers have no bfloat16, so they are measured with float16, which has the same length.
        peer_type = "float16" if type_ == "bfloat16" else type_
        found = {seen: self.medians(seen, bytes_, place, peer_type)
                 for seen in self.figures.states(self.name)}
        leaders = {min(medians)[1] for medians in found.values() if medians}
        here = found[state]
        return min(here) if leaders and leaders <= {peer for _, peer in here} else None

    def medians(self, state, bytes_, place, type_):
        figures = [(self.figures.figure(self.name, peer, state, bytes_, place, type_), peer)
                   for peer in self.peers]
        return [(figure.median, peer) for figure, peer in figures if figure]

    def print(self, title, sizes, places, type_="float32"):
        for state in self.figures.states(self.name):
            for place in places:
                rows = self.rows(state, sizes, place, type_)
                if not rows and type_ != "float32":
                    continue
                where = {"in": "in place", "out": "out of place"}[place]
                print(f"\n  {title}, {type_}, {where}, cores {state}; microseconds\n")
                if rows:
                    print_columns([["bytes", "", "median", "p10", "limit", "best peer", "",
                                    "of limit", "aim", "", "to peer", "aim", ""], *rows], left=2)
                if type_ == "float32":
                    self.print_peers(state, sizes, place)

    def rows(self, state, sizes, place, type_):
        rows = []
        for bytes_ in sizes:
            peer = self.best_peer(state, bytes_, place, type_)
            limit = self.limit(state, bytes_)
            for subject, (of_peer, of_limit) in self.subjects.items():
                figure = self.figures.figure(self.name, subject, state, bytes_, place, type_)
                if not figure:
                    continue
                share = judged(limit and limit / figure.median, of_limit(bytes_, place))
                ratio = judged(peer and peer[0] / figure.median, of_peer(bytes_, place))
                rows.append([size_text(bytes_), subject, time_text(figure.median),
                             time_text(figure.p10), time_text(limit), time_text(peer and peer[0]),
                             peer[1] if peer else "", *share, *ratio])
        return rows

    def print_peers(self, state, sizes, place):
        rows = [["bytes", *self.peers]]
        for bytes_ in sizes:
            row = [size_text(bytes_)]
            for peer in self.peers:
                figure = self.figures.figure(self.name, peer, state, bytes_, place)
                row.append(f"{time_text(figure.median)} ({time_text(figure.p10)})"
                           if figure else "-")
            if any(cell != "-" for cell in row[1:]):
                rows.append(row)
        if len(rows) > 1:
            print("\n  the peers, median (p10)\n")
            print_columns(rows)
        else:
            print("    no peer's figure")
