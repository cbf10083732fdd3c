"""Parts of native source for small matrices: `common.kernels.linalg.small_systems` puts them together.

A text is what is done with eight small matrices, which `LANES` has copied to lanes of `matrix`, or by LAPACK with one
matrix of a batch, which `LOOP` has copied to it by columns; names in braces are filled in.
"""

from __future__ import annotations

HEAD = """
{names}, eliminate_lanes, substitute_lanes, factor_lanes, take_logarithms_lanes = C

def gathered(lanes, at, rows, columns, first, width, live):
    for i in range(rows):
        for j in range(width):
            for l in range(8):
                place = ((l if l < live else live - 1) * rows + i) * columns + first + j
                float64s(lanes)[(i * width + j) * 8 + l] = to_float64({elements}(at)[place])

def scattered(lanes, at, rows, columns, first, width, live):
    for i in range(rows):
        for j in range(width):
            for l in range(live):
                place = (l * rows + i) * columns + first + j
                {elements}(at)[place] = to_{dtype}(float64s(lanes)[(i * width + j) * 8 + l])

def some(infos):
    for l in range(8):
        if infos[l] != 0:
            return 1

def {name}(status, scratch, bufs, ints):
    matrix = room({words})
    sides = room({words})
    pivots = room({most})
    sizes = room(160)
    n = ints[{rows}]
    count = {count}
    batch = 1
    for d in range({batch}):
        batch *= ints[d]
"""

LANES = """
    if n >= 1 and n <= {small} and count >= 1:
        for s in range(0, batch, 8):
            live = batch - s if batch - s < 8 else 8
            a = bufs[0] + s * n * n * {itemsize}
            gathered(matrix, a, n, n, 0, n, live)
"""
"""Eight matrices at once, in `common.kernels.linalg.elimination_code`; a lane without one has the last one."""

SOLVE_LANES = """
            for first in range(0, count, {small}):
                width = count - first if count - first < {small} else {small}
                if first > 0:
                    gathered(matrix, a, n, n, 0, n, live)
                gathered(sides, bufs[1] + s * n * count * {itemsize}, n, count, first, width, live)
                eliminate_lanes(matrix, sides, sizes, n, width)
                if some(sizes + 128):
                    return invoke({python}, status, scratch, bufs, ints)
                substitute_lanes(matrix, sides, 1, 0, n, width)
                scattered(sides, bufs[2] + s * n * count * {itemsize}, n, count, first, width, live)
            for l in range(live):
                int32s(bufs[3])[s + l] = to_int32(0)
"""

INVERSE_LANES = """
            for i in range(n * n * 8):
                float64s(sides)[i] = to_float64(0)
            for i in range(n):
                for l in range(8):
                    float64s(sides)[(i * n + i) * 8 + l] = to_float64(1)
            eliminate_lanes(matrix, sides, sizes, n, n)
            if some(sizes + 128):
                return invoke({python}, status, scratch, bufs, ints)
            substitute_lanes(matrix, sides, 1, 0, n, n)
"""

INV_LANES = """
            scattered(sides, bufs[1] + s * n * n * {itemsize}, n, n, 0, n, live)
            for l in range(live):
                int32s(bufs[2])[s + l] = to_int32(0)
"""

COFACTORS_LANES = """
            for l in range(live):
                largest = to_float64(0)
                most = to_float64(0)
                for i in range(n * n):
                    size = abs(to_float64({elements}(a)[l * n * n + i]))
                    if size > largest:
                        largest = size
                    size = abs(float64s(sides)[i * 8 + l])
                    if size > most:
                        most = size
                det = float64s(sizes)[l]
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
                        {elements}(x)[j * n + i] = to_{dtype}(det * float64s(sides)[(i * n + j) * 8 + l])
"""

DET_LANES = """
            eliminate_lanes(matrix, sides, sizes, n, 0)
            for l in range(live):
                {elements}(bufs[1])[s + l] = to_{dtype}(float64s(sizes)[l])
"""

SLOGDET_LANES = """
            eliminate_lanes(matrix, sides, sizes, n, 0)
            take_logarithms_lanes(matrix, sizes, n)
            for l in range(live):
                {elements}(bufs[1])[s + l] = to_{dtype}(float64s(sizes)[8 + l])
                {elements}(bufs[2])[s + l] = to_{dtype}(float64s(sizes)[24 + l])
"""

CHOLESKY_LANES = """
            factor_lanes(matrix, sizes, n)
            if {told} and some(sizes):
                return invoke({python}, status, scratch, bufs, ints)
            for i in range(n):
                for j in range(i + 1, n):
                    for l in range(8):
                        float64s(matrix)[(i * n + j) * 8 + l] = to_float64(0)
            scattered(matrix, bufs[1] + s * n * n * {itemsize}, n, n, 0, n, live)
            for l in range(live):
                int32s(bufs[2])[s + l] = to_int32(sizes[l])
"""

LU_LANES = """
            eliminate_lanes(matrix, sides, sizes, n, 0)
            if {told} and some(sizes + 128):
                return invoke({python}, status, scratch, bufs, ints)
            scattered(matrix, bufs[1] + s * n * n * {itemsize}, n, n, 0, n, live)
            for l in range(live):
                for i in range(n):
                    int32s(bufs[2])[(s + l) * n + i] = to_int32(sizes[32 + i * 8 + l])
                int32s(bufs[3])[s + l] = to_int32(sizes[16 + l])
"""

TRIANGULAR_LANES = """
            for first in range(0, count, {small}):
                width = count - first if count - first < {small} else {small}
                gathered(sides, bufs[1] + s * n * count * {itemsize}, n, count, first, width, live)
                substitute_lanes(matrix, sides, {upper}, {unitriangular}, n, width)
                scattered(sides, bufs[2] + s * n * count * {itemsize}, n, count, first, width, live)
"""

DONE = """
        status[0] = 0
        return 0
"""

REST = """
    return invoke({python}, status, scratch, bufs, ints)
"""
"""Of larger matrices, where there is no routine."""

LOOP = """
    if n < 1 or n > {least} or count < 1 or count > {most}:
        return invoke({python}, status, scratch, bufs, ints)
    sizes[0] = n
    sizes[1] = count
    for s in range(batch):
        a = bufs[0] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                {wide}s(matrix)[j * n + i] = to_{wide}({elements}(a)[i * n + j])
        sizes[2] = 0
"""

SOLVE = """
        b = bufs[1] + s * n * count * {itemsize}
        for i in range(n):
            for j in range(count):
                float64s(sides)[j * n + i] = to_float64({elements}(b)[i * count + j])
        dgesv(sizes, sizes + 8, matrix, sizes, pivots, sides, sizes, sizes + 16)
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
        x = bufs[2] + s * n * count * {itemsize}
        for i in range(n):
            for j in range(count):
                {elements}(x)[i * count + j] = to_{dtype}(float64s(sides)[j * n + i])
        int32s(bufs[3])[s] = to_int32(0)
"""

INVERSE = """
        for i in range(n):
            for j in range(n):
                float64s(sides)[j * n + i] = to_float64(0)
            float64s(sides)[i * n + i] = to_float64(1)
        dgesv(sizes, sizes + 8, matrix, sizes, pivots, sides, sizes, sizes + 16)
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
"""

INV = """
        x = bufs[1] + s * n * n * {itemsize}
        for i in range(n):
            for j in range(n):
                {elements}(x)[i * n + j] = to_{dtype}(float64s(sides)[j * n + i])
        int32s(bufs[2])[s] = to_int32(0)
"""

COFACTORS = """
        largest = to_float64(0)
        most = to_float64(0)
        for i in range(n * n):
            size = abs(to_float64({elements}(a)[i]))
            if size > largest:
                largest = size
            size = abs(float64s(sides)[i])
            if size > most:
                most = size
        float64s(matrix)[0] = total
        twingrad_exp(matrix)
        size = float64s(matrix)[0]
        bound = to_float64({root})
        for i in range(3):
            bound = bound * bound
        if not (largest * most <= to_float64({spread}) and size * bound >= to_float64(1) and size * most <= bound):
            return invoke({python}, status, scratch, bufs, ints)
        det = sign * size
        x = bufs[1] + s * n * n * {itemsize}
        for i in range(n * n):
            {elements}(x)[i] = to_{dtype}(det * float64s(sides)[i])
"""
"""The inverse lies by columns, so in this order it is transposed."""

FINITE = """
        for i in range(n * n):
            if float64s(matrix)[i] - float64s(matrix)[i] != to_float64(0):
                return invoke({python}, status, scratch, bufs, ints)
        sizes[3] = 78
        sizes[5] = {work}
        values = sides + {work} * 8
"""
"""78 is the letter N: no vectors."""

EIGENVALUES = """
        sizes[4] = {triangle}
        dsyevd(sizes + 24, sizes + 32, sizes, matrix, sizes, values, sides, sizes + 40, pivots, sizes + 8, sizes + 16)
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

CHOLESKY = """
        sizes[3] = 76
        dpotrf(sizes + 24, sizes, matrix, sizes, sizes + 16)
        x = bufs[1] + s * n * n * {itemsize}
        failed = sizes[2]
        if failed != 0:
            {failed}
        for i in range(n):
            for j in range(i + 1):
                if failed != 0:
                    {elements}(x)[i * n + j] = {elements}(sides)[i * n + j]
                else:
                    {elements}(x)[i * n + j] = to_{dtype}(float64s(matrix)[j * n + i])
            for j in range(i + 1, n):
                {elements}(x)[i * n + j] = to_{dtype}(0)
        int32s(bufs[2])[s] = to_int32(sizes[2])
"""
"""76 is the letter L: the lower triangle."""

FAILED = """
            for i in range(n * n):
                {elements}(sides)[i] = {elements}(a)[i]
            sizes[2] = 0
            sizes[3] = 85
            {potrf}(sizes + 24, sizes, sides, sizes, sizes + 16)
"""
"""What is left of a matrix that is not positive-definite, by SciPy's routine: by columns it is transposed, so the upper
triangle (U) is factored.
"""
RAISED = "return invoke({python}, status, scratch, bufs, ints)"

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

FACTORS = """
        dgetrf(sizes, sizes, matrix, sizes, pivots, sizes + 16)
        if sizes[2] != 0:
            return invoke({python}, status, scratch, bufs, ints)
"""

DIAGONAL = """
        sign = to_float64(1)
        for i in range(n):
            if {pivots}(pivots)[i] != i + 1:
                sign = to_float64(0) - sign
        total = to_float64(0)
        for i in range(n):
            place = matrix + (i * n + i) * 8
            if float64s(place)[0] < to_float64(0):
                sign = to_float64(0) - sign
                float64s(place)[0] = to_float64(0) - float64s(place)[0]
            twingrad_log(place)
            total = total + float64s(place)[0]
"""

SLOGDET = """
        {elements}(bufs[1])[s] = to_{dtype}(sign)
        {elements}(bufs[2])[s] = to_{dtype}(total)
"""

DET = """
        float64s(matrix)[0] = total
        twingrad_exp(matrix)
        {elements}(bufs[1])[s] = to_{dtype}(sign * float64s(matrix)[0])
"""

TRIANGULAR = """
        b = bufs[1] + s * n * count * {itemsize}
        x = bufs[2] + s * n * count * {itemsize}
        for i in range(n * count):
            {elements}(sides)[i] = {elements}(b)[i]
        for i in range(n):
            for j in range(n):
                {elements}(matrix)[i * n + j] = {elements}(a)[i * n + j]
        sizes[2] = 82
        sizes[3] = {triangle}
        sizes[4] = 78
        sizes[5] = {diagonal}
        {elements}(pivots)[0] = to_{dtype}(1)
        of = sizes + 8
        {trsm}(sizes + 16, sizes + 24, sizes + 32, sizes + 40, of, sizes, pivots, matrix, sizes, sides, of)
        for i in range(n * count):
            {elements}(x)[i] = {elements}(sides)[i]
"""
"""By columns x is its transpose, so the matrix stands at the right (R) and is not transposed (N)."""

END = """
    status[0] = 0
    return 0
"""
