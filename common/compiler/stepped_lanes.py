"""Elements that are a few steps apart: vectors of all that lies in between, taken apart into lanes and put together.

What a loop reads at ``x[8 * i]``, ``x[8 * i + 1]``, ... is one *window* for each vector of lanes: the eight vectors
that hold it are loaded once, and sorted into even and odd elements until each has those of one place. What it writes at
all places of a window waits for the last of them, and goes to memory in whole vectors.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator

from common.compiler.close_steps import CLOSE
from common.compiler.far_lanes import FarLanes
from common.compiler.lane_memory import Places, literal_mask, written
from common.compiler.registers import BOOL, INT64, ArrayKind, Register, constant, storage
from common.compiler.syntax_tree import parts

_NO_PLACES = Places((), ())


class SteppedLanes(FarLanes):
    """Reads and writes elements that are a few steps apart."""

    def _load_steps(self, container: Register, kind: ArrayKind, index: ast.expr, base: Register, step: int) -> Register:
        """Elements that are `step` apart: of vectors that hold all in between, as far as the last one."""
        lanes = self._lanes
        assert lanes is not None
        place = written(index, step)
        besides = window(self._places(kind, place.text).read, place.beside, step)
        alone = len(besides) == 1 and 2 * step >= lanes.width > 1
        if step > CLOSE or alone or not self._reaches(kind):
            far = None if self.gathers else self.load_far(container, kind, base, constant(step, INT64))
            return far or self._gather_lanes(container, kind, self._strided(base, step))
        key = kind.slot, place.text, place.beside, lanes.width
        if key not in lanes.taken:
            low, span = besides[0], besides[-1] - besides[0]
            first = self.write("add", INT64, base, constant(low - place.beside, INT64))
            vectors = self._load_window(container, kind, first, step, span)
            found = self._taken_apart(kind, vectors, {beside - low for beside in besides})
            lanes.taken.update({(*key[:2], low + beside, lanes.width): text for beside, text in found.items()})
        text = lanes.taken[key]
        if kind.dtype == BOOL:
            text = self.register(f"icmp ne <{lanes.width} x i8> {text}, zeroinitializer")
        return Register(text, kind.dtype, None, lanes.width)

    def _store_steps(
        self, container: Register, kind: ArrayKind, index: ast.expr, base: Register, step: int, value: Register
    ) -> None:
        """Write elements that are `step` apart: a whole window, parts of its rows, or a place of them under a mask."""
        lanes = self._lanes
        assert lanes is not None
        if kind.dtype == BOOL or step > CLOSE or not self._reaches(kind):
            self._scatter_lanes(container, kind, base, step, value)
            return
        text = (value if value.lanes > 1 else self.spread(value, lanes.width)).text
        place = written(index, step)
        stored = self._places(kind, place.text).stored
        if len(stored) == step:
            late = lanes.late_stores.setdefault(kind.slot, {})
            late[place.beside] = text
            if len(late) == step:
                first = self.write("add", INT64, base, constant(stored[0] - place.beside, INT64))
                vectors = self._put_together(kind, [late[beside] for beside in stored])
                self._store_window(container, kind, first, vectors, step, whole=True)
            return
        lanes.taken.pop((kind.slot, place.text, place.beside, lanes.width), None)
        if lanes.mask:
            vectors = [self._among(kind, text, step, j) for j in range(step)]
            self._store_window(container, kind, base, vectors, step, whole=False)
            return
        self.close += 1
        run, late = _run(stored, place.beside), lanes.late_stores.setdefault(kind.slot, {})
        late[place.beside] = text
        if all(beside in late for beside in run):
            first = self.write("add", INT64, base, constant(run[0] - place.beside, INT64))
            self._store_parts(container, kind, first, [late[beside] for beside in run], step)

    def _store_parts(
        self, container: Register, kind: ArrayKind, first: Register, columns: list[str], step: int
    ) -> None:
        """Write columns that lie side by side, 1, 2, 4 or 8 of them: a part of each row by a store of its own.

        Vectors with masks for what lies in between, one per column, take several times as long.
        """
        assert self._lanes is not None
        width, one, count = self._lanes.width, storage(kind.dtype), len(columns)
        vectors, access = self._put_together(kind, columns), self._access(kind)
        for lane in range(width):
            vector, start = divmod(lane * count, width)
            of = f"<{width} x {one}> {vectors[vector]}"
            if count == 1:
                part = f"{one} {self.register(f'extractelement {of}, i64 {start}')}"
            else:
                chosen = ", ".join(f"i32 {i}" for i in range(start, start + count))
                part = self.register(f"shufflevector {of}, <{width} x {one}> poison, <{count} x i32> <{chosen}>")
                part = f"<{count} x {one}> {part}"
            address = self.element(container, self.write("add", INT64, first, constant(lane * step, INT64)))
            self.line(f"store {part}, ptr {address}{access}")

    def _reaches(self, kind: ArrayKind) -> bool:
        """Whether vectors reach as far as the lanes do; under a mask that has to be one that the processor has."""
        lanes = self._lanes
        assert lanes is not None
        masked = self.has_masks and kind.dtype.itemsize >= 4
        if not lanes.mask:
            self.close += not masked
        return not lanes.mask or (masked and lanes.active is not None)

    def _places(self, kind: ArrayKind, text: str) -> Places:
        """The places with one text that every iteration uses; none if one is read after it is written."""
        lanes = self._lanes
        assert lanes is not None
        if not lanes.by_text:
            found: dict[tuple[int, str], list[tuple[int, int, bool]]] = {}
            for i, node in enumerate(lanes.body):
                for part, stores in _accesses(node):
                    buffer = self.variables.get(part.value.id) if isinstance(part.value, ast.Name) else None
                    if buffer is not None and isinstance(buffer.kind, ArrayKind):
                        place = written(part.slice, 2)
                        found.setdefault((buffer.kind.slot, place.text), []).append((place.beside, i, stores))
            lanes.by_text.update({key: _in_order(accesses) for key, accesses in found.items()})
        return lanes.by_text.get((kind.slot, text), _NO_PLACES)

    def _below(self, count: Register, j: int) -> str:
        """The mask of the vector number `j` that begins with its lanes: those of the first elements, so many."""
        lanes = self._lanes
        assert lanes is not None
        left = self.write("sub", INT64, count, constant(j * lanes.width, INT64))
        key = f"below {left.text}" if left.literal is not None else f"below {count.text} {j}"
        if key not in lanes.wide:
            lanes.wide[key] = self._among_steps("slt", left, lanes.width)
        return lanes.wide[key]

    def _reached(self, step: int, span: int) -> Register:
        """How many elements there are from the first lane's first to the last lane's last."""
        lanes = self._lanes
        assert lanes is not None
        assert lanes.active is not None
        key = f"reached {step} {span}"
        if key not in lanes.counts:
            end = self.write("mul", INT64, lanes.active, constant(step, INT64))
            lanes.counts[key] = self.write("sub", INT64, end, constant(step - 1 - span, INT64))
        return lanes.counts[key]

    def _load_window(self, container: Register, kind: ArrayKind, first: Register, step: int, span: int) -> list[str]:
        """The vectors that hold what lies between the first lane's first element and the last lane's last."""
        lanes = self._lanes
        assert lanes is not None
        width, one, vectors = lanes.width, storage(kind.dtype), list[str]()
        length = (width - 1) * step + span + 1
        for start in range(0, step * width, width):
            if start >= length:
                vectors.append("poison")
                continue
            at = start if lanes.mask else min(start, length - width)
            address = self.element(container, self.write("add", INT64, first, constant(at, INT64)), not lanes.mask)
            if lanes.mask:
                align, _, scopes = self._access(kind).removeprefix(", align ").partition(",")
                mask = self._below(self._reached(step, span), start // width)
                arguments = f"ptr {address}, i32 {align}, <{width} x i1> {mask}, <{width} x {one}> zeroinitializer"
                name = self._masked("load", kind, width)
                vectors.append(self.register(f"call <{width} x {one}> @{name}({arguments}),{scopes}"))
            else:
                loaded = self.register(f"load <{width} x {one}>, ptr {address}{self._access(kind)}")
                moved = [i + start - at if i < length - start else None for i in range(width)]
                vectors.append(loaded if at == start else self._shuffled(kind, loaded, "poison", moved))
        return vectors

    def _store_window(
        self, container: Register, kind: ArrayKind, first: Register, vectors: list[str], step: int, whole: bool
    ) -> None:
        """Write the vectors of a window: `whole`, or under the lanes' mask the elements of one place in them."""
        lanes = self._lanes
        assert lanes is not None
        width, vector = lanes.width, f"<{lanes.width} x {storage(kind.dtype)}>"
        for j, text in enumerate(vectors):
            place = self.write("add", INT64, first, constant(j * width, INT64))
            address = self.element(container, place, not lanes.mask)
            if not lanes.mask:
                self.line(f"store {vector} {text}, ptr {address}{self._access(kind)}")
                continue
            mask = self._below(self._reached(step, step - 1), j)
            if not whole:
                own = literal_mask((j * width + i) % step == 0 for i in range(width))
                mask = self.register(f"and <{width} x i1> {mask}, {own}")
            align, _, scopes = self._access(kind).removeprefix(", align ").partition(",")
            name = self._masked("store", kind, width)
            self.line(f"call void @{name}({vector} {text}, ptr {address}, i32 {align}, <{width} x i1> {mask}),{scopes}")

    def _taken_apart(self, kind: ArrayKind, vectors: list[str], wanted: set[int]) -> dict[int, str]:
        """Of as many vectors, one after the other, the elements so many apart, by the first's place."""
        assert self._lanes is not None
        step, width = len(vectors), self._lanes.width
        if step == 1:
            return dict.fromkeys(wanted, vectors[0])
        found: dict[int, str] = {}
        if step % 2:
            for first in sorted(wanted):
                places = [divmod(i * step + first, width) for i in range(width)]
                found[first] = self._chosen(kind, vectors, places)
            return found
        for odd in (0, 1):
            mine = {place // 2 for place in wanted if place % 2 == odd}
            if mine:
                every_other = range(odd, 2 * width, 2)
                pairs = zip(vectors[::2], vectors[1::2], strict=True)
                halves = [self._shuffled(kind, x, y, every_other) for x, y in pairs]
                found |= {2 * i + odd: text for i, text in self._taken_apart(kind, halves, mine).items()}
        return found

    def _put_together(self, kind: ArrayKind, vectors: list[str]) -> list[str]:
        """The vectors of which `_taken_apart` makes these."""
        assert self._lanes is not None
        step, width = len(vectors), self._lanes.width
        if step == 1:
            return vectors
        if step % 2:
            places = [divmod(i, step)[::-1] for i in range(step * width)]
            return [self._chosen(kind, vectors, places[i : i + width]) for i in range(0, step * width, width)]
        found = []
        even, odd = self._put_together(kind, vectors[::2]), self._put_together(kind, vectors[1::2])
        for x, y in zip(even, odd, strict=True):
            for first in (0, width // 2):
                turns = [i + from_y for i in range(first, first + width // 2) for from_y in (0, width)]
                found.append(self._shuffled(kind, x, y, turns))
        return found

    def _among(self, kind: ArrayKind, text: str, step: int, j: int) -> str:
        """The vector number `j` of a window in which the elements of `text` are `step` apart."""
        assert self._lanes is not None
        width = self._lanes.width
        places = range(j * width, (j + 1) * width)
        return self._shuffled(kind, text, "poison", [None if i % step else i // step for i in places])

    def _chosen(self, kind: ArrayKind, vectors: list[str], places: list[tuple[int, int]]) -> str:
        """The vector of elements at these places, each the number of a vector and a lane of it."""
        width, text = len(places), vectors[0]
        for j, other in enumerate(vectors[1:], 1):
            chosen = [
                width + lane if of == j else (lane if j == 1 else i) if of < j else None
                for i, (of, lane) in enumerate(places)
            ]
            text = self._shuffled(kind, text, other, chosen)
        return text

    def _shuffled(self, kind: ArrayKind, x: str, y: str, chosen: Iterable[int | None]) -> str:
        """Lanes of two vectors by their numbers, those of the second after those of the first; None is any."""
        assert self._lanes is not None
        vector = f"<{self._lanes.width} x {storage(kind.dtype)}>"
        numbers = ["i32 poison" if lane is None else f"i32 {lane}" for lane in chosen]
        return self.register(f"shufflevector {vector} {x}, {vector} {y}, <{len(numbers)} x i32> <{', '.join(numbers)}>")


def _accesses(node: ast.stmt) -> Iterator[tuple[ast.Subscript, bool]]:
    """Elements that a statement uses whatever its conditions say, and whether it writes them."""
    perhaps = {id(x) for part in parts(node) if isinstance(part, ast.IfExp) for x in parts(part)}
    for part in parts(node):
        if isinstance(part, ast.Subscript) and id(part) not in perhaps:
            stores = isinstance(part.ctx, ast.Store)
            yield part, stores
            if stores and isinstance(node, ast.AugAssign):
                yield part, False


def _in_order(accesses: list[tuple[int, int, bool]]) -> Places:
    """Places of (distance, statement, whether it writes); none if one is read after it is written."""
    writes = {beside: i for beside, i, stores in accesses if stores}
    if any(not stores and i > writes.get(beside, i) for beside, i, stores in accesses):
        return _NO_PLACES
    times = Counter(beside for beside, _, stores in accesses if stores)
    stored = sorted(times) if times and max(times.values()) == 1 else []
    return Places(tuple(sorted({beside for beside, _, stores in accesses if not stores})), tuple(stored))


def _run(stored: Iterable[int], beside: int) -> list[int]:
    """The places that follow each other with one of them, as many as a power of two."""
    known = set(stored) | {beside}
    start = beside
    while start - 1 in known:
        start -= 1
    run = [start]
    while run[-1] + 1 in known:
        run.append(run[-1] + 1)
    while beside not in (part := run[: 1 << (len(run).bit_length() - 1)]):
        run = run[len(part) :]
    return part


def window(besides: Iterable[int], beside: int, step: int) -> list[int]:
    """The places, in order, that lie within a window with one of them: windows begin with the first place of all."""
    known = sorted({*besides, beside})
    while True:
        window = [x for x in known if x < known[0] + step]
        if beside in window:
            return window
        known = known[len(window) :]
