"""Parts of native source for small matrices: `common.kernels.linalg.small_systems` puts them together.

A text is what is done with eight matrices or with one, which `ELIMINATION` has copied to `matrix`, or by LAPACK with
one matrix of a batch, which `LAPACK` has copied to it by columns; names in braces are filled in.
"""

from __future__ import annotations

HEAD = """
{names} = C

def gathered(lanes, to, at, rows, columns, first, width, live):
    size = rows * columns
    for i in range(rows):
        of = i * columns + first
        if lanes == 1:
            for j in range(width):
                float64s(to)[i * width + j] = to_float64({elements}(at)[of + j])
        for j in range(width if lanes > 1 else 0):
            lane = to + (i * width + j) * 64
            if live == 8:
                for l in range(8):
                    float64s(lane)[l] = to_float64({elements}(at)[l * size + of + j])
            else:
                for l in range(8):
                    float64s(lane)[l] = to_float64({elements}(at)[(l if l < live else live - 1) * size + of + j])

def scattered(lanes, of, at, rows, columns, first, width, live):
    size = rows * columns
    for i in range(rows):
        to = i * columns + first
        if lanes == 1:
            for j in range(width):
                {elements}(at)[to + j] = to_{dtype}(float64s(of)[i * width + j])
        for j in range(width if lanes > 1 else 0):
            lane = of + (i * width + j) * 64
            if live == 8:
                for l in range(8):
                    {elements}(at)[l * size + to + j] = to_{dtype}(float64s(lane)[l])
            else:
                for l in range(live):
                    {elements}(at)[l * size + to + j] = to_{dtype}(float64s(lane)[l])

def eliminate(lanes, matrix, sides, found, n, width):
    if lanes == 1:
        eliminate_of_1(matrix, sides, found, n, width)
    else:
        eliminate_of_8(matrix, sides, found, n, width)

def substitute(lanes, matrix, sides, upper, unitriangular, n, width):
    if lanes == 1:
        substitute_of_1(matrix, sides, upper, unitriangular, n, width)
    else:
        substitute_of_8(matrix, sides, upper, unitriangular, n, width)

def some(infos, lanes):
    for l in range(lanes):
        if infos[l] != 0:
            return 1

def {name}(status, scratch, bufs, ints):
    matrix = room({words})
    sides = room({words})
    found = room({found})
    n = ints[{rows}]
    count = {count}
    if n < 1 or n > {most} or count < 1:
        return invoke({python}, status, scratch, bufs, ints)
    batch = 1
    for d in range({batch}):
        batch *= ints[d]
"""

ELIMINATION = """
    for s in range(0, batch, 8):
        live = batch - s if batch - s < 8 else 8
        lanes = 1 if live == 1 else 8
        a = bufs[0] + s * n * n * {itemsize}
        gathered(lanes, matrix, a, n, n, 0, n, live)
"""
"""Eight matrices, in `common.kernels.linalg.elimination_code`; a lane without one has the last one."""

SOLVE = """
        for first in range(0, count, {most}):
            width = count - first if count - first < {most} else {most}
            if first > 0:
                gathered(lanes, matrix, a, n, n, 0, n, live)
            gathered(lanes, sides, bufs[1] + s * n * count * {itemsize}, n, count, first, width, live)
            eliminate(lanes, matrix, sides, found, n, width)
            if some(found + 128, lanes):
                return invoke({python}, status, scratch, bufs, ints)
            substitute(lanes, matrix, sides, 1, 0, n, width)
            scattered(lanes, sides, bufs[2] + s * n * count * {itemsize}, n, count, first, width, live)
        for l in range(live):
            int32s(bufs[3])[s + l] = to_int32(0)
"""

INVERSE = """
        for i in range(n * n * lanes):
            float64s(sides)[i] = to_float64(0)
        for i in range(n):
            for l in range(lanes):
                float64s(sides)[(i * n + i) * lanes + l] = to_float64(1)
        eliminate(lanes, matrix, sides, found, n, n)
        if some(found + 128, lanes):
            return invoke({python}, status, scratch, bufs, ints)
        substitute(lanes, matrix, sides, 1, 0, n, n)
"""

INV = """
        scattered(lanes, sides, bufs[1] + s * n * n * {itemsize}, n, n, 0, n, live)
        for l in range(live):
            int32s(bufs[2])[s + l] = to_int32(0)
"""

COFACTORS = """
        for l in range(live):
            largest = to_float64(0)
            most = to_float64(0)
            for i in range(n * n):
                size = abs(to_float64({elements}(a)[l * n * n + i]))
                if size > largest:
                    largest = size
                size = abs(float64s(sides)[i * lanes + l])
                if size > most:
                    most = size
            det = float64s(found)[l]
            size = abs(det)
            bound = to_float64({root})
            for i in range(3):
                bound = bound * bound
            usable = largest * most <= to_float64({spread}) and size * bound >= to_float64(1)
            if not (usable and size * most <= bound):
                return invoke({python}, status, scratch, bufs, ints)
            x = bufs[1] + (s + l) * n * n * {itemsize}
            for i in range(n):
                for j in range(n):
                    {elements}(x)[j * n + i] = to_{dtype}(det * float64s(sides)[(i * n + j) * lanes + l])
"""

DET = """
        eliminate(lanes, matrix, sides, found, n, 0)
        for l in range(live):
            {elements}(bufs[1])[s + l] = to_{dtype}(float64s(found)[l])
"""

SLOGDET = """
        eliminate(lanes, matrix, sides, found, n, 0)
        if lanes == 1:
            take_logarithms_of_1(matrix, found, n)
        else:
            take_logarithms_of_8(matrix, found, n)
        for l in range(live):
            {elements}(bufs[1])[s + l] = to_{dtype}(float64s(found)[8 + l])
            {elements}(bufs[2])[s + l] = to_{dtype}(float64s(found)[24 + l])
"""

LU = """
        eliminate(lanes, matrix, sides, found, n, 0)
        if {told} and some(found + 128, lanes):
            return invoke({python}, status, scratch, bufs, ints)
        scattered(lanes, matrix, bufs[1] + s * n * n * {itemsize}, n, n, 0, n, live)
        for l in range(live):
            for i in range(n):
                int32s(bufs[2])[(s + l) * n + i] = to_int32(found[32 + i * 8 + l])
            int32s(bufs[3])[s + l] = to_int32(found[16 + l])
"""

CHOLESKY = """
        if lanes == 1:
            factor_of_1(matrix, found, n)
        else:
            factor_of_8(matrix, found, n)
        if {told} and some(found, lanes):
            return invoke({python}, status, scratch, bufs, ints)
        for i in range(n):
            for j in range(i + 1, n):
                for l in range(lanes):
                    float64s(matrix)[(i * n + j) * lanes + l] = to_float64(0)
        scattered(lanes, matrix, bufs[1] + s * n * n * {itemsize}, n, n, 0, n, live)
        for l in range(live):
            int32s(bufs[2])[s + l] = to_int32(found[l])
"""

TRIANGULAR = """
        for first in range(0, count, {most}):
            width = count - first if count - first < {most} else {most}
            gathered(lanes, sides, bufs[1] + s * n * count * {itemsize}, n, count, first, width, live)
            substitute(lanes, matrix, sides, {upper}, {unitriangular}, n, width)
            scattered(lanes, sides, bufs[2] + s * n * count * {itemsize}, n, count, first, width, live)
"""

EIGENVALUES = """
        for i in range(n * n * lanes):
            if float64s(matrix)[i] - float64s(matrix)[i] != to_float64(0):
                return invoke({python}, status, scratch, bufs, ints)
        if lanes == 1:
            diagonalize_of_1(matrix, sides, found, {upper}, {vectors}, n)
        else:
            diagonalize_of_8(matrix, sides, found, {upper}, {vectors}, n)
        if some(found + 4 * n * lanes * 8, lanes):
            return invoke({python}, status, scratch, bufs, ints)
        for l in range(live):
            for i in range(n):
                {elements}(bufs[1])[(s + l) * n + i] = to_{dtype}(float64s(found)[i * lanes + l])
"""

EIGENVECTORS = """
        for l in range(live):
            for i in range(n):
                for j in range(n):
                    place = ((s + l) * n + j) * n + i
                    {elements}(bufs[2])[place] = to_{dtype}(float64s(sides)[(i * n + j) * lanes + l])
"""

LAPACK = """
    if count > {most}:
        return invoke({python}, status, scratch, bufs, ints)
    pivots = found + 64
    sizes = found
    sizes[0] = n
    sizes[1] = count
    for s in range(batch):
        a = bufs[0] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                float64s(matrix)[j * n + i] = to_float64({elements}(a)[i * n + j])
        sizes[2] = 0
"""

FINITE = """
        for i in range(n * n):
            if float64s(matrix)[i] - float64s(matrix)[i] != to_float64(0):
                return invoke({python}, status, scratch, bufs, ints)
        sizes[3] = 78
        sizes[5] = {work}
        values = sides + {work} * 8
"""

SINGULAR_VALUES = """
        of = sizes + 8
        whole = values + {most} * 8
        info = sizes + 16
        dgesdd(sizes + 24, sizes, sizes, matrix, sizes, values, sides, of, sides, of, sides, sizes + 40, whole, info)
"""

VALUES = """
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
        for i in range(n):
            {elements}(bufs[1] + s * n * {itemsize})[i] = to_{dtype}(float64s(values)[i])
"""

QR = """
        sizes[3] = n * {most}
        dgeqrf(sizes, sizes, matrix, sizes, pivots, sides, sizes + 24, sizes + 16)
        x = bufs[2] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                value = float64s(matrix)[j * n + i] if j >= i else to_float64(0)
                {elements}(x)[i * n + j] = to_{dtype}(value)
        dorgqr(sizes, sizes, sizes, matrix, sizes, pivots, sides, sizes + 24, sizes + 16)
        x = bufs[1] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                {elements}(x)[i * n + j] = to_{dtype}(float64s(matrix)[j * n + i])
"""

END = """
    status[0] = 0
    return 0
"""
