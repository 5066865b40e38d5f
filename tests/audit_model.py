"""A model of glassbox audit that knows single bytes and all paths of a graph, but no ranges."""
import itertools

import numpy as np

from audit_support import place
from dump_encoder import row_major


def random_view(rng):
    """A random place in the memory, which has 2048 bytes from 0x4000 on."""
    name = rng.choice(["uint8", "int16", "float32"])
    shape = [int(n) for n in rng.integers(1, 7, rng.integers(1, 4))]
    strides = row_major(shape)
    if rng.random() < 0.7:
        strides = [int(stride * rng.choice([1, 1, 2, -1, 0]) + rng.choice([0, 0, 1])) for stride in strides]
    least = sum(min(0, stride * (count - 1)) for stride, count in zip(strides, shape))
    base = 0x4000 + 4 * int(rng.integers(0, 64))
    return name, shape, strides, int(-least + rng.integers(0, 4)), base


class Memory:
    """A model of the audit: for each byte its value, its expected value, and who wrote it."""

    def __init__(self, rng):
        self.bytes = rng.integers(0, 256, 4096, np.uint8)
        self.thought, self.owner = np.zeros(4096, np.uint8), np.full(4096, -1)
        self.views, self.expected = [], []
        self.writer, self.read_writers, self.writes = np.full(4096, -1), set(), 0

    def write(self, view, rng):
        at = place(view) - 0x4000
        self.bytes[at] = rng.integers(0, 256, at.size, np.uint8)
        self.views.append(None)
        self.thought[at], self.owner[at] = self.bytes[at], len(self.views) - 1
        self.writer[at], self.writes = len(self.views), self.writes + 1
        return self.bytes[at].tobytes()

    def read(self, view):
        at = place(view) - 0x4000
        self.views.append(view)
        self.read_writers.update(self.writer[at][self.writer[at] >= 0].tolist())
        number, width = len(self.views) - 1, np.dtype(view[0]).itemsize
        owner, thought, now = self.owner[at], self.thought[at], self.bytes[at]
        differs = (owner >= 0) & (thought != now)
        for other in dict.fromkeys(owner[differs].tolist()):
            places = np.flatnonzero(differs & (owner == other))
            element = int(places[0]) // width
            inside = slice(element * width, (element + 1) * width)
            left = np.where(owner[inside] >= 0, thought[inside], now[inside])
            values = [np.frombuffer(part.astype(np.uint8).tobytes(), view[0])[0] for part in (left, now[inside])]
            index = [int(i) for i in np.unravel_index(element, view[1])]
            bounds = [(int(at[i]) + 0x4000 - view[4]) // width * width + view[4]
                      for i in (places[at[places].argmin()], places[at[places].argmax()])]
            self.expected.append((other, number, bounds[0], bounds[1] + width, index, *values))
        taken = (owner < 0) | np.isin(owner, owner[differs])
        self.owner[at[taken]], self.thought[at[taken]] = number, now[taken]
        return now.tobytes()


class Argument:
    """An argument of a task, with its bytes before and after the task."""

    def __init__(self, number, view, role):
        self.number, self.view, self.role = number, view, role
        self.at = place(view)
        self.saw = self.left = None


class Tasks:
    """Tasks in the order of the clock: each reads everything when it begins and writes everything when it ends."""

    def __init__(self, rng, count):
        self.times = [tuple(map(int, sorted(pair))) for pair in rng.permutation(np.arange(1, 2 * count + 1)).reshape(-1, 2)]
        if rng.random() < 0.5:  # few at a time
            self.times = [(4 * i + 1, 4 * i + int(rng.choice([3, 3, 6, 10]))) for i in range(count)]
        self.arguments = [[Argument(i, random_view(rng), int(rng.integers(0, 3))) for i in range(int(rng.integers(1, 4)))]
                          for _ in range(count)]
        self.edges = {(a, b) for b in range(count) for a in range(b) if rng.random() < 0.2}
        self.run(rng.integers(0, 256, 4096, np.uint8), rng)

    def run(self, memory, rng):
        # At the same time, ends come before begins.
        moments = sorted([(end, 0, task) for task, (_, end) in enumerate(self.times)] +
                         [(begin, 1, task) for task, (begin, _) in enumerate(self.times)])
        for _, is_begin, task in moments:
            for each in self.arguments[task]:
                if is_begin and each.role != 1:
                    each.saw = memory[each.at - 0x4000].tobytes()
                if not is_begin and each.role != 0:
                    memory[each.at - 0x4000] = rng.integers(0, 256, each.at.size, np.uint8)
            for each in self.arguments[task]:
                if not is_begin and each.role != 0:
                    each.left = memory[each.at - 0x4000].tobytes()

    def conflicts(self):
        """Pairs of arguments that share bytes and of which at least one writes them; the earlier task comes first."""
        for (a, first), (b, second) in itertools.combinations([(task, each) for task, arguments in enumerate(self.arguments)
                                                               for each in arguments], 2):
            if a != b and (first.role or second.role) and np.intersect1d(first.at, second.at).size:
                yield a, first, b, second

    def do_overlap(self, a, b):
        return self.times[a][0] < self.times[b][1] and self.times[b][0] < self.times[a][1]


def all_paths(count, edges):
    paths = np.zeros((count, count), bool)
    for edge in edges:
        paths[edge] = True
    for through in range(count):
        paths |= paths[:, through, None] & paths[None, through]
    return paths


def expected_pair(a, first, b, second):
    """The expected finding for two arguments, without what orders their tasks."""
    is_read_first = first.role == 0
    kind = "read_too_early" if is_read_first or second.role == 0 or (first.role == 1 and second.role == 2) else "overlapping_writes"
    left, holds = (second.left, first.saw) if is_read_first else (first.left, second.saw if kind[0] == "r" else second.left)
    writer, other = (second, first) if is_read_first else (first, second)
    shared = np.intersect1d(first.at, second.at)
    element = None
    known = dict(zip(writer.at.tolist(), left))
    width = np.dtype(other.view[0]).itemsize
    expected = bytes(known.get(address, byte) for address, byte in zip(other.at.tolist(), holds))
    if not is_read_first and expected != holds:
        number = next(i for i in range(len(holds)) if expected[i] != holds[i]) // width
        values = [np.frombuffer(data, other.view[0])[number] for data in (expected, holds)]
        element = ([int(i) for i in np.unravel_index(number, other.view[1])], *map(str, values))
    return kind, is_read_first, int(shared.min()), int(shared.max()) + 1, element
