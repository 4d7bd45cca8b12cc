"""GPU kernels in Triton that read every row once: label it, and add it up in registers.

Rows are cut into chunks, and chunks into tiles. A program takes every n-th chunk, where
n is the number of programs, and reads it tile by tile. Labels and the sums of one chunk
are formed in single precision, moments in double. Every program adds its chunks up in
double precision, in an order that is the same in every run; the caller adds up the
programs.

Rows are read as u = (x - origin) x inverse; columns beyond the last are read as 0.
Arguments in capitals are pointers to arrays, or constants that a kernel is compiled
for:

- X, STRIDE, FEATURES, n_rows: the rows, the distance between them, their columns and
  number
- WEIGHTS, HAS_WEIGHTS: their weights, if there are any
- ORIGIN, INVERSE: origin and inverse scale of every column
- WIDTH, TILE: columns and rows of a tile; columns are padded to a power of two
- TILES, n_chunks: tiles of a chunk, and the number of chunks
- STAGES: tiles that are being loaded at a time
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _columns(ORIGIN, INVERSE, FEATURES: tl.constexpr, WIDTH: tl.constexpr):
    """Return indices of the columns, which exist, origins and inverse scales."""
    cols = tl.arange(0, WIDTH)
    is_col = cols < FEATURES
    origin = tl.load(ORIGIN + cols, mask=is_col, other=0.0)
    inverse = tl.load(INVERSE + cols, mask=is_col, other=0.0)
    return cols, is_col, origin, inverse


@triton.jit
def _tile(
    X,
    WEIGHTS,
    start,
    n_rows,
    cols,
    is_col,
    STRIDE: tl.constexpr,
    TILE: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
):
    """Return (TILE, WIDTH) rows, and (TILE,) weights, 0 beyond the last row."""
    # Rows of the tile, counted from its first one.
    lanes = tl.arange(0, TILE)
    is_row = lanes < n_rows - start
    offsets = lanes[:, None] * STRIDE + cols[None, :]
    x = tl.load(
        X + start * STRIDE + offsets, mask=is_row[:, None] & is_col[None, :], other=0.0
    )
    if HAS_WEIGHTS:
        weight = tl.load(WEIGHTS + start + lanes, mask=is_row, other=0.0)
    else:
        weight = tl.where(is_row, 1.0, 0.0)
    return x, weight


# Without this, multiples of 16 rows are compiled apart from other numbers.
@triton.jit(do_not_specialize=["n_rows", "n_chunks"])
def moments(
    X,
    WEIGHTS,
    ORIGIN,
    INVERSE,
    SUMS,
    SQUARES,
    n_rows,
    n_chunks,
    FEATURES: tl.constexpr,
    STRIDE: tl.constexpr,
    WIDTH: tl.constexpr,
    TILE: tl.constexpr,
    TILES: tl.constexpr,
    STAGES: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
):
    """Add up weighted sums of u and of u u', all in double precision.

    SUMS is (programs, WIDTH), SQUARES (programs, WIDTH, WIDTH); SQUARES must be zeros.
    """
    # Offsets of rows may exceed 32 bits.
    program = tl.program_id(0).to(tl.int64)
    cols, is_col, origin, inverse = _columns(ORIGIN, INVERSE, FEATURES, WIDTH)
    into = SQUARES + program * (WIDTH * WIDTH) + cols[:, None] * WIDTH + cols[None, :]
    # Each row of a tile has sums of its own, which are added up at the end.
    sums = tl.zeros((TILE, WIDTH), tl.float64)
    for chunk in range(program, n_chunks, tl.num_programs(0)):
        squares = tl.zeros((WIDTH, WIDTH), tl.float64)
        for t in tl.range(0, TILES, num_stages=STAGES):
            start = (chunk * TILES + t) * TILE
            x, weight = _tile(
                X, WEIGHTS, start, n_rows, cols, is_col, STRIDE, TILE, HAS_WEIGHTS
            )
            u = (x.to(tl.float64) - origin[None, :]) * inverse[None, :]
            weight = weight.to(tl.float64)
            sums += u * weight[:, None]
            # With roots of the weights in u, the product needs one operand instead of
            # two. Without weights the entries are 0 and 1, which are their own roots.
            u *= (tl.sqrt(weight) if HAS_WEIGHTS else weight)[:, None]
            squares = tl.dot(tl.trans(u), u, squares, out_dtype=tl.float64)
        # The squares of one chunk fill the registers: the total is in memory.
        tl.store(into, tl.load(into) + squares)
    tl.store(SUMS + program * WIDTH + cols, tl.sum(sums, axis=0))


# Without this, multiples of 16 rows are compiled apart from other numbers.
@triton.jit(do_not_specialize=["n_rows", "n_chunks"])
def two_classes(
    X,
    WEIGHTS,
    ORIGIN,
    INVERSE,
    COEF,
    SUMS,
    n_rows,
    n_chunks,
    intercept,
    tie,
    FEATURES: tl.constexpr,
    STRIDE: tl.constexpr,
    WIDTH: tl.constexpr,
    TILE: tl.constexpr,
    TILES: tl.constexpr,
    STAGES: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
    IS_SOFT: tl.constexpr,
):
    """Add up weight and sum of the first of two classes, and the log-sum-exp.

    COEF (d,) and ``intercept`` give the lead of the first class over the second, whose
    score counts as 0. If labels are hard, a row within ``tie`` goes to the first class.
    SUMS is (programs, 2 + WIDTH), in float64: weight, log-sum-exp, sum of u.
    """
    # Offsets of rows may exceed 32 bits.
    program = tl.program_id(0).to(tl.int64)
    cols, is_col, origin, inverse = _columns(ORIGIN, INVERSE, FEATURES, WIDTH)
    coef = tl.load(COEF + cols, mask=is_col, other=0.0)
    all_sums = tl.zeros((WIDTH,), tl.float64)
    all_counts = tl.zeros((TILE,), tl.float64)
    all_logs = tl.zeros((TILE,), tl.float64)
    for chunk in range(program, n_chunks, tl.num_programs(0)):
        # Each row of a tile has sums of its own, which are added up after a chunk.
        sums = tl.zeros((TILE, WIDTH), tl.float32)
        counts = tl.zeros((TILE,), tl.float32)
        logs = tl.zeros((TILE,), tl.float32)
        for t in tl.range(0, TILES, num_stages=STAGES):
            start = (chunk * TILES + t) * TILE
            x, weight = _tile(
                X, WEIGHTS, start, n_rows, cols, is_col, STRIDE, TILE, HAS_WEIGHTS
            )
            u = (x.to(tl.float32) - origin[None, :]) * inverse[None, :]
            lead = tl.sum(u * coef[None, :], axis=1) + intercept
            top = tl.maximum(lead, 0.0)
            if IS_SOFT:
                # The log-sum-exp of the lead and 0 is max(lead, 0) + log(1 + behind).
                # The exponent is never positive, so that nothing overflows.
                behind = tl.exp(-tl.abs(lead))
                larger = 1.0 / (1.0 + behind)
                share = tl.where(lead >= 0, larger, behind * larger) * weight
                top -= tl.log(larger)
            else:
                share = tl.where(lead >= -tie, weight, 0.0)
            sums += u * share[:, None]
            counts += share
            logs += top * weight
        all_sums += tl.sum(sums.to(tl.float64), axis=0)
        all_counts += counts.to(tl.float64)
        all_logs += logs.to(tl.float64)
    out = SUMS + program * (2 + WIDTH)
    tl.store(out, tl.sum(all_counts, axis=0))
    tl.store(out + 1, tl.sum(all_logs, axis=0))
    tl.store(out + 2 + cols, all_sums)


@triton.jit
def _rule(COEF, INTERCEPT, cols, is_col, CLASSES: tl.constexpr, PADDED: tl.constexpr):
    """Return (WIDTH, PADDED) coefficients and (PADDED,) intercepts, and class indices.

    Padding classes have an intercept of minus infinity, and never win.
    """
    classes = tl.arange(0, PADDED)
    is_class = classes < CLASSES
    is_entry = is_col[:, None] & is_class[None, :]
    coef = tl.load(
        COEF + cols[:, None] * CLASSES + classes[None, :], mask=is_entry, other=0.0
    )
    intercept = tl.load(INTERCEPT + classes, mask=is_class, other=float("-inf"))
    return coef, intercept, classes


@triton.jit
def _softmax(scores, top):
    """Return shares of the classes, and log-sum-exp relative to the top score."""
    shares = tl.exp(scores - top[:, None])
    total = tl.sum(shares, axis=1)
    return shares / total[:, None], tl.log(total)


# Without this, multiples of 16 rows are compiled apart from other numbers.
@triton.jit(do_not_specialize=["n_rows", "n_chunks"])
def many_classes(
    X,
    WEIGHTS,
    ORIGIN,
    INVERSE,
    COEF,
    INTERCEPT,
    SUMS,
    COUNTS,
    n_rows,
    n_chunks,
    FEATURES: tl.constexpr,
    STRIDE: tl.constexpr,
    WIDTH: tl.constexpr,
    CLASSES: tl.constexpr,
    PADDED: tl.constexpr,
    TILE: tl.constexpr,
    TILES: tl.constexpr,
    STAGES: tl.constexpr,
    HAS_WEIGHTS: tl.constexpr,
    IS_SOFT: tl.constexpr,
):
    """Add up weights and sums of the rows of every class, and the log-sum-exp.

    COEF is (d, K), INTERCEPT (K,); CLASSES is K, and PADDED the next power of two. SUMS
    is (programs, PADDED, WIDTH), and must be zeros; COUNTS is (programs, 1 + PADDED),
    with the log-sum-exp first. Both are in float64.
    """
    # Offsets of rows may exceed 32 bits.
    program = tl.program_id(0).to(tl.int64)
    cols, is_col, origin, inverse = _columns(ORIGIN, INVERSE, FEATURES, WIDTH)
    coef, intercept, classes = _rule(COEF, INTERCEPT, cols, is_col, CLASSES, PADDED)
    into = SUMS + program * (PADDED * WIDTH) + classes[:, None] * WIDTH + cols[None, :]
    all_counts = tl.zeros((PADDED,), tl.float64)
    all_logs = tl.zeros((TILE,), tl.float64)
    for chunk in range(program, n_chunks, tl.num_programs(0)):
        # The product with the shares adds up the rows of a tile: sums have no rows.
        sums = tl.zeros((PADDED, WIDTH), tl.float32)
        counts = tl.zeros((TILE, PADDED), tl.float32)
        logs = tl.zeros((TILE,), tl.float32)
        for t in tl.range(0, TILES, num_stages=STAGES):
            start = (chunk * TILES + t) * TILE
            x, weight = _tile(
                X, WEIGHTS, start, n_rows, cols, is_col, STRIDE, TILE, HAS_WEIGHTS
            )
            u = (x.to(tl.float32) - origin[None, :]) * inverse[None, :]
            # TF32, the default of products, has 10 bits.
            scores = tl.dot(u, coef, input_precision="ieee") + intercept[None, :]
            top = tl.max(scores, axis=1)
            if IS_SOFT:
                shares, log_sum = _softmax(scores, top)
                shares *= weight[:, None]
                top += log_sum
            else:
                # As everywhere, the first of the classes that tie gets the row.
                best = tl.argmax(scores, axis=1, tie_break_left=True)
                shares = tl.where(
                    classes[None, :] == best[:, None], weight[:, None], 0.0
                )
            sums += tl.dot(tl.trans(shares), u, input_precision="ieee")
            counts += shares
            logs += top * weight
        all_counts += tl.sum(counts.to(tl.float64), axis=0)
        all_logs += logs.to(tl.float64)
        # The sums of one chunk fill the registers: the total is in memory.
        tl.store(into, tl.load(into) + sums.to(tl.float64))
    out = COUNTS + program * (1 + PADDED)
    tl.store(out, tl.sum(all_logs, axis=0))
    tl.store(out + 1 + classes, all_counts)
