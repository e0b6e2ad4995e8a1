"""The compiled loops over rows: plain functions over flat arrays. Only this file knows Numba.

A *term* is a row ``i`` and a side: side 0 charges positive scores, ``h = max(0, 1/2 + z)``, side 1
negative ones, ``h = max(0, 1/2 - z)``. A term takes part when its bit in ``live[i]`` is set (bit 1
for side 0, bit 2 for side 1) and the ceiling of its dual variable is positive. Ceilings
``T = cost + multipliers @ table`` are the same for all rows of a cell, so tables of shape
``(2, cells)`` are all that a row has to know of goals.

The state of a term in the interior-point method is its hinge ``hinge >= 0``, the slack
``slack = hinge - 1/2 - sign * z >= 0`` and their dual variables ``dual`` (of the slack) and
``codual = T - dual`` (of the hinge), all per unit of row weight; weights enter sums only, so that a
row of weight 2 takes the path of the same row written twice.

Every function works on rows ``first <= i < last`` and writes sums to arrays of its caller, so
blocks of rows can run in threads (``nogil``) and be added in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(function: Function) -> Function:
    """Compile a loop; keep the machine code on disk where some place is writable."""
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no writable place for a cache
        return cast(Function, numba.njit(**options)(function))


#: Positions that are known not to be negative: signed ones would be tested for counting from the
#: end at every access, which takes nearly half of the time of X'DX.
unsigned = np.uint64


@compiled
def csr_scores(indptr, indices, data, coef, intercept, first, last, offset, scores):
    """scores[offset + i] = <x_i, coef> + intercept."""
    for i in range(first, last):
        total = 0.0
        for k in range(unsigned(indptr[i]), unsigned(indptr[i + 1])):
            total += data[k] * coef[unsigned(indices[k])]
        scores[offset + i] = total + intercept


@compiled
def csr_transpose(indptr, indices, data, vectors, first, last, offset, out):
    """out[c] += X' vectors[c]."""
    for c in range(vectors.shape[0]):
        column = out[c]
        for i in range(first, last):
            factor = vectors[c, offset + i]
            if factor != 0.0:
                for k in range(unsigned(indptr[i]), unsigned(indptr[i + 1])):
                    column[unsigned(indices[k])] += factor * data[k]


@compiled
def csr_gram(indptr, indices, data, curvature, negligible, first, last, offset, out, border):
    """Add the upper triangle of X' diag(curvature) X to out, and X' curvature to border."""
    for i in range(first, last):
        weight = curvature[offset + i]
        if weight <= negligible:
            continue
        begin = unsigned(indptr[i])
        end = unsigned(indptr[i + 1])
        for k in range(begin, end):
            row = out[unsigned(indices[k])]
            value = weight * data[k]
            border[unsigned(indices[k])] += value
            for other in range(k, end):
                row[unsigned(indices[other])] += value * data[other]


@compiled
def csr_by_cell(indptr, indices, data, factors, cells, wanted, first, last, offset, out):
    """out[slot] += factor * x over the terms whose (side, cell) has a slot in wanted."""
    for i in range(first, last):
        cell = cells[offset + i]
        if cell < 0:
            continue
        for side in range(2):
            slot = wanted[side, cell]
            factor = factors[side, offset + i]
            if slot >= 0 and factor != 0.0:
                row = out[slot]
                for k in range(unsigned(indptr[i]), unsigned(indptr[i + 1])):
                    row[unsigned(indices[k])] += factor * data[k]


@compiled
def dense_by_cell(X, factors, cells, wanted, first, last, offset, out):
    """The same as `csr_by_cell` for a dense X."""
    features = X.shape[1]
    for i in range(first, last):
        cell = cells[offset + i]
        if cell < 0:
            continue
        for side in range(2):
            slot = wanted[side, cell]
            factor = factors[side, offset + i]
            if slot >= 0 and factor != 0.0:
                row = out[slot]
                for k in range(features):
                    row[k] += factor * X[i, k]


@compiled
def choose_sides(scores, weights, cells, first, last, live, dead):
    """Majorize at the anchor's scores: a side is live where its hinge is tight, not the 1."""
    for i in range(first, last):
        live[i] = 0
        cell = cells[i]
        if cell < 0:
            continue
        if scores[i] <= 0.5:
            live[i] |= 1
        else:
            dead[0, cell] += weights[i]
        if scores[i] >= -0.5:
            live[i] |= 2
        else:
            dead[1, cell] += weights[i]


@compiled
def hinge_sums(scores, weights, cells, live, first, last, out):
    """out[side, cell] += weight * exact hinge over the live terms."""
    for i in range(unsigned(first), unsigned(last)):
        if live[i] & 1 and scores[i] > -0.5:
            out[0, unsigned(cells[i])] += weights[i] * (0.5 + scores[i])
        if live[i] & 2 and scores[i] < 0.5:
            out[1, unsigned(cells[i])] += weights[i] * (0.5 - scores[i])


@compiled
def central_hinge(u, ceiling, barrier):
    """Hinge h and slack h - u of the central path at u = 1/2 + sign * z.

    h solves ceiling * h * (h - u) = barrier * (2 h - u); of the two ways to write its root and the
    slack, the one that loses no digits is taken on either side of u = 0.
    """
    root = np.sqrt(ceiling * ceiling * u * u + 4.0 * barrier * barrier)
    small = (2.0 * barrier + 4.0 * barrier * barrier / (root + ceiling * abs(u))) / (2.0 * ceiling)
    if u >= 0.0:
        return (ceiling * u + 2.0 * barrier + root) / (2.0 * ceiling), small
    return small, small - u


@compiled
def central_state(scores, cells, live, ceiling, barrier, first, last, hinge, slack, dual, codual):
    """Put every term on the path of its score: dual * slack = codual * hinge = barrier."""
    for i in range(unsigned(first), unsigned(last)):
        for side in range(2):
            if not live[i] & (1 + side):
                continue
            top = ceiling[side, unsigned(cells[i])]
            if top <= 0.0:
                continue
            u = 0.5 + (scores[i] if side == 0 else -scores[i])
            hinge[side, i], slack[side, i] = central_hinge(u, top, barrier)
            dual[side, i] = barrier / slack[side, i]
            codual[side, i] = barrier / hinge[side, i]


@compiled
def term_curvature(
    weights, cells, live, ceiling, first, last, hinge, slack, dual, codual, curvature, factors,
    inverse,
):
    """Curvature of every row in its score, and how a step of the ceiling acts on every term.

    inverse[side, cell] collects weight / (dual/slack + codual/hinge), the curvature of a ceiling.
    """
    for i in range(unsigned(first), unsigned(last)):
        total = 0.0
        for side in range(2):
            factors[side, i] = 0.0
            if not live[i] & (1 + side) or ceiling[side, unsigned(cells[i])] <= 0.0:
                continue
            pull = dual[side, i] / slack[side, i]
            push = codual[side, i] / hinge[side, i]
            both = pull + push
            total += pull * push / both
            factor = weights[i] * pull / both
            factors[side, i] = factor if side == 0 else -factor
            inverse[side, unsigned(cells[i])] += weights[i] / both
        curvature[i] = weights[i] * total


@compiled
def newton_target(
    weights, cells, live, ceiling, target, first, last, hinge, slack, dual, codual,
    first_order, second_order, out, hinges,
):
    """Right-hand side of Newton's system for dual * slack = codual * hinge = target.

    first_order and second_order hold what the products will gain beyond their linear part along the
    step. out[i] becomes weight * sign * (dual + its constant step), hinges collects
    weight * (hinge + its constant step).
    """
    for i in range(unsigned(first), unsigned(last)):
        row = 0.0
        for side in range(2):
            if not live[i] & (1 + side) or ceiling[side, unsigned(cells[i])] <= 0.0:
                continue
            h = hinge[side, i]
            r = slack[side, i]
            p = dual[side, i]
            q = codual[side, i]
            pull = p / r
            push = q / h
            to_slack = (target - first_order[side, i]) / r - p
            to_hinge = (target - second_order[side, i]) / h - q
            step = (push * to_slack - pull * to_hinge) / (pull + push)
            value = weights[i] * (p + step)
            row += value if side == 0 else -value
            moved = h + (to_slack + to_hinge) / (pull + push)
            hinges[side, unsigned(cells[i])] += weights[i] * moved
        out[i] = row


@compiled
def newton_step(
    score_step, weights, cells, live, ceiling, ceiling_step, target, first, last,
    hinge, slack, dual, codual, first_order, second_order, hinge_step, dual_step, blocked, sums,
):
    """Steps of every term given the steps of its score and ceiling.

    blocked[k] collects the weight of the terms that leave their domain at a step between
    k / len(blocked) and (k + 1) / len(blocked), sums[0] and sums[1] the linear and the quadratic
    part of the complementarity, and sums[2] becomes 1 / (longest step that keeps all terms inside).
    """
    levels = len(blocked)
    worst = sums[2]
    linear = 0.0
    quadratic = 0.0
    for i in range(unsigned(first), unsigned(last)):
        for side in range(2):
            if not live[i] & (1 + side) or ceiling[side, unsigned(cells[i])] <= 0.0:
                continue
            h = hinge[side, i]
            r = slack[side, i]
            p = dual[side, i]
            q = codual[side, i]
            pull = p / r
            push = q / h
            both = pull + push
            to_slack = (target - first_order[side, i]) / r - p
            to_hinge = (target - second_order[side, i]) / h - q
            signed = score_step[i] if side == 0 else -score_step[i]
            top = ceiling_step[side, unsigned(cells[i])]
            dh = (to_slack + to_hinge + pull * signed - top) / both
            # the smaller of the two duals is the one that must keep its relative accuracy
            dp = (push * to_slack - pull * to_hinge + pull * push * signed + pull * top) / both
            dr = dh - signed
            dq = top - dp
            hinge_step[side, i] = dh
            dual_step[side, i] = dp
            steepest = max(-dh / h, -dr / r, -dp / p, -dq / q)
            if steepest > 1.0:
                worst = max(worst, steepest)
                blocked[int(levels / steepest)] += weights[i]
            linear += weights[i] * (p * dr + r * dp + q * dh + h * dq)
            quadratic += weights[i] * (dp * dr + dq * dh)
    sums[0] += linear
    sums[1] += quadratic
    sums[2] = worst


@compiled
def second_order_terms(
    score_step, cells, live, ceiling, ceiling_step, first, last,
    hinge_step, dual_step, first_order, second_order,
):
    """Mehrotra's correction: what the products gain beyond their linear part."""
    for i in range(unsigned(first), unsigned(last)):
        for side in range(2):
            if not live[i] & (1 + side) or ceiling[side, unsigned(cells[i])] <= 0.0:
                continue
            signed = score_step[i] if side == 0 else -score_step[i]
            dh = hinge_step[side, i]
            dp = dual_step[side, i]
            first_order[side, i] = dp * (dh - signed)
            second_order[side, i] = (ceiling_step[side, unsigned(cells[i])] - dp) * dh


@compiled
def advance_state(
    step, kept, score_step, weights, cells, live, ceiling, ceiling_step, first, last,
    scores, hinge, slack, dual, codual, hinge_step, dual_step, first_order, second_order, sums,
):
    """Move every term by step times its stored direction; sums[0] collects the complementarity.

    The few terms that would keep less than a share `kept` of one of their variables do not shorten
    everyone's step: that variable is held at this share, and its partner moves with it, so that
    hinge - slack = 1/2 ± z and dual + codual = ceiling remain true.
    """
    total = 0.0
    for i in range(unsigned(first), unsigned(last)):
        scores[i] += step * score_step[i]
        for side in range(2):
            if not live[i] & (1 + side) or ceiling[side, unsigned(cells[i])] <= 0.0:
                continue
            signed = score_step[i] if side == 0 else -score_step[i]
            dh = hinge_step[side, i]
            dp = dual_step[side, i]
            dr = dh - signed
            dq = ceiling_step[side, unsigned(cells[i])] - dp
            top = ceiling[side, unsigned(cells[i])] + step * ceiling_step[side, unsigned(cells[i])]
            p = dual[side, i] + step * dp
            q = codual[side, i] + step * dq
            if p < kept * dual[side, i]:
                p = min(kept * dual[side, i], 0.5 * top)
                q = top - p
            elif q < kept * codual[side, i]:
                q = min(kept * codual[side, i], 0.5 * top)
                p = top - q
            dual[side, i] = p
            codual[side, i] = q
            h = hinge[side, i] + step * dh
            r = slack[side, i] + step * dr
            lift = max(0.0, kept * hinge[side, i] - h, kept * slack[side, i] - r)
            hinge[side, i] = h + lift
            slack[side, i] = r + lift
            first_order[side, i] = 0.0
            second_order[side, i] = 0.0
            total += weights[i] * (
                dual[side, i] * slack[side, i] + codual[side, i] * hinge[side, i]
            )
    sums[0] += total


@compiled
def dual_terms(weights, cells, live, ceiling, first, last, dual, out, totals):
    """The dual point: out[side, i] = weight * dual clipped to [0, ceiling], and their totals."""
    for i in range(unsigned(first), unsigned(last)):
        for side in range(2):
            out[side, i] = 0.0
            if live[i] & (1 + side):
                value = weights[i] * max(0.0, min(dual[side, i], ceiling[side, unsigned(cells[i])]))
                out[side, i] = value
                totals[side] += value


# ---- the smooth hinge: the central path's variables as functions of score and ceiling ----


@compiled
def smooth_terms(
    scores, score_step, step, weights, cells, live, ceiling, barrier, first, last,
    gradient, curvature, factors, hinges, inverse, slope,
):
    """Hinge, dual variable and their derivatives, for every term exactly on the path of its score.

    With T the ceiling, u = 1/2 + sign z and root = sqrt(T^2 u^2 + 4 barrier^2), hinge and dual are
    those of `central_hinge`, and d dual / du = T^2 barrier / (root (2 barrier + root)),
    d dual / dT = d hinge / du = (1 + T u / root) / 2,
    -d hinge / dT = (barrier + 2 barrier^2 / root) / T^2. Sums have the meaning that they have for
    `term_curvature` and `newton_target`; scores are taken at scores + step * score_step, and
    slope[0] collects the derivative by the step.
    """
    along = 0.0
    double = 2.0 * barrier
    for i in range(unsigned(first), unsigned(last)):
        pull = 0.0
        bend = 0.0
        score = scores[i] + step * score_step[i]
        for side in range(2):
            factors[side, i] = 0.0
            if not live[i] & (1 + side) or ceiling[side, unsigned(cells[i])] <= 0.0:
                continue
            top = ceiling[side, unsigned(cells[i])]
            u = 0.5 + (score if side == 0 else -score)
            tilt = top * abs(u)
            root = np.sqrt(tilt * tilt + double * double)
            # written so that no digits are lost on either side of u = 0
            rest = barrier * double / (root + tilt)
            near = barrier + rest
            per_root = 1.0 / root
            per_sum = 1.0 / (double + root)
            hinge = near / top
            if u >= 0.0:
                hinge += u
                dual = 0.5 * top * (1.0 + tilt * per_sum)
                share = 0.5 * (1.0 + tilt * per_root)
            else:
                dual = top * near * per_sum
                share = rest * per_root
            pull += dual if side == 0 else -dual
            bend += top * top * barrier * per_root * per_sum
            factors[side, i] = weights[i] * share if side == 0 else -weights[i] * share
            hinges[side, unsigned(cells[i])] += weights[i] * hinge
            inverse[side, unsigned(cells[i])] += (
                weights[i] * (barrier + barrier * double * per_root) / (top * top)
            )
        gradient[i] = weights[i] * pull
        along += weights[i] * pull * score_step[i]
        curvature[i] = weights[i] * bend
    slope[0] += along


@compiled
def csr_curvature_product(indptr, indices, data, curvature, vector, first, last, offset, out):
    """out[:-1] += X' D (X v + b), out[-1] += 1' D (X v + b) for vector = (v, b)."""
    bias = vector[len(vector) - 1]
    total = 0.0
    for i in range(first, last):
        weight = curvature[offset + i]
        if weight <= 0.0:
            continue
        score = bias
        for k in range(unsigned(indptr[i]), unsigned(indptr[i + 1])):
            score += data[k] * vector[unsigned(indices[k])]
        score *= weight
        total += score
        for k in range(unsigned(indptr[i]), unsigned(indptr[i + 1])):
            out[unsigned(indices[k])] += score * data[k]
    out[len(out) - 1] += total


@compiled
def csr_diagonal(indptr, indices, data, curvature, first, last, offset, out):
    """Add the diagonal of X' D X to out[0], and X' D 1 to out[1]."""
    for i in range(first, last):
        weight = curvature[offset + i]
        if weight <= 0.0:
            continue
        for k in range(unsigned(indptr[i]), unsigned(indptr[i + 1])):
            value = weight * data[k]
            out[0, unsigned(indices[k])] += value * data[k]
            out[1, unsigned(indices[k])] += value


# ---- dual coordinate ascent: one variable a row, in [low, high] = [-T of side 1, T of side 0] ----


def dot_product(function: Function) -> Function:
    """Compile a sum that may be added in any order, so that it can use vector registers."""
    options: dict[str, Any] = {
        "nogil": True, "error_model": "numpy", "fastmath": {"reassoc", "contract"},
    }
    try:
        return cast(Function, numba.njit(cache=True, **options)(function))
    except RuntimeError:  # no writable place for a cache
        return cast(Function, numba.njit(**options)(function))


@dot_product
def dense_score(X, i, coef):
    """<x_i, coef>."""
    total = 0.0
    for k in range(X.shape[1]):
        total += X[i, k] * coef[k]
    return total


@compiled
def dual_room(dual, score, low, high):
    """How far a score may move before it moves its dual variable; negative: how far it is past.

    A row charged T0 max(0, 1/2 + z) + T1 max(0, 1/2 - z) is at rest with its dual variable at
    low = -T1 for z <= -1/2, at low + high for |z| <= 1/2, at high = T0 for z >= 1/2, and in between
    these at the two breakpoints themselves.
    """
    kink = low + high
    room = np.inf
    if dual > low:
        room = score + 0.5 if dual <= kink else score - 0.5
    if dual < high:
        room = min(room, -0.5 - score if dual < kink else 0.5 - score)
    return room


@compiled
def dual_step(dual, score, curvature, low, high, relaxation):
    """The dual variable that maximises the dual alone, or beyond: its score falls by curvature.

    A step is lengthened `relaxation` times as far as the dual stays one quadratic, where it falls
    by less than it rose on the way to its maximum.
    """
    kink = low + high
    if curvature <= 0.0:  # the score stays where it is
        if score > 0.5:
            return high
        return kink if score >= -0.5 else low
    best = max(min(dual + (score + 0.5) / curvature, kink), dual + (score - 0.5) / curvature)
    best = min(max(best, low), high)
    beyond = dual + relaxation * (best - dual)
    if best < kink:
        return min(max(beyond, low), kink)
    if best > kink:
        return max(min(beyond, high), kink)
    return best


@compiled
def dual_rooms(scores, dual, low, high, rooms):
    """rooms[i] = `dual_room` of every row."""
    for i in range(len(scores)):
        rooms[i] = dual_room(dual[i], scores[i], low[i], high[i])


@compiled
def slope_along(scores, direction, step, low, high):
    """How fast the sum of the hinges rises there along a direction of the scores."""
    total = 0.0
    for i in range(len(scores)):
        score = scores[i] + step * direction[i]
        if score > -0.5:
            total += high[i] * direction[i]
        if score < 0.5:
            total += low[i] * direction[i]
    return total


@compiled
def best_step(scores, direction, low, high, linear, quadratic, tries):
    """About the minimiser over -1 <= step <= 1 of hinges + linear step + quadratic step^2 / 2.

    By the Illinois rule on the slope, which jumps at a hinge but never falls.
    """
    left, right = -1.0, 1.0
    below = slope_along(scores, direction, left, low, high) + linear + quadratic * left
    above = slope_along(scores, direction, right, low, high) + linear + quadratic * right
    if below >= 0.0:
        return left
    if above <= 0.0:
        return right
    last = 0
    step = 0.0
    for _ in range(tries):
        slope = slope_along(scores, direction, step, low, high) + linear + quadratic * step
        if slope < 0.0:
            left, below = step, slope
            if last < 0:
                above *= 0.5
            last = -1
        else:
            right, above = step, slope
            if last > 0:
                below *= 0.5
            last = 1
        step = left - below * (right - left) / (above - below) if above > below else left
    return step


@compiled
def csr_squared_norms(indptr, data, out):
    """out[i] = ||x_i||^2."""
    for i in range(len(out)):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            total += np.float64(data[k]) * data[k]
        out[i] = total


@compiled
def csr_ascent(
    indptr, indices, data, order, low, high, squared_norms, alpha, bias_step, relaxation, far,
    dual, coef, intercept,
):
    """Maximise the dual over each variable of `order` in turn, coef and intercept following.

    The intercept moves by -bias_step a unit of dual variable (0: it is held). Steps are lengthened
    as in `dual_step`, for which 1 asks for exact ones. Rows at rest by more than `far` are left out
    of order. Returns the intercept, how many rows order still holds (they come first), and the
    largest distance that a score was past its row's rest.
    """
    count = 0
    worst = 0.0
    for position in range(len(order)):
        i = order[position]
        first, last = unsigned(indptr[i]), unsigned(indptr[i + 1])
        score = intercept
        for k in range(first, last):
            score += data[k] * coef[unsigned(indices[k])]
        room = dual_room(dual[i], score, low[i], high[i])
        if room > far:
            continue
        order[count] = i
        count += 1
        if room >= 0.0:
            continue
        worst = max(worst, -room)
        curvature = squared_norms[i] / alpha + bias_step
        moved = dual_step(dual[i], score, curvature, low[i], high[i], relaxation)
        change = moved - dual[i]
        dual[i] = moved
        intercept -= bias_step * change
        factor = -change / alpha
        for k in range(first, last):
            coef[unsigned(indices[k])] += factor * data[k]
    return intercept, count, worst


@compiled
def dense_ascent(
    X, order, low, high, squared_norms, alpha, bias_step, relaxation, far, dual, coef,
    intercept,
):
    """The same as `csr_ascent` for a dense X."""
    count = 0
    worst = 0.0
    for position in range(len(order)):
        i = order[position]
        score = intercept + dense_score(X, i, coef)
        room = dual_room(dual[i], score, low[i], high[i])
        if room > far:
            continue
        order[count] = i
        count += 1
        if room >= 0.0:
            continue
        worst = max(worst, -room)
        curvature = squared_norms[i] / alpha + bias_step
        moved = dual_step(dual[i], score, curvature, low[i], high[i], relaxation)
        change = moved - dual[i]
        dual[i] = moved
        intercept -= bias_step * change
        factor = -change / alpha
        for k in range(X.shape[1]):
            coef[k] += factor * X[i, k]
    return intercept, count, worst


@compiled
def gram_ascent(
    gram, order, low, high, squared_norms, alpha, bias_step, relaxation, far, dual, scores,
    intercept,
):
    """The same as `csr_ascent` for inner products of rows, kept with all scores but the intercept.

    What is read of a row then is one number, and what is written when it moves are n.
    """
    count = 0
    worst = 0.0
    for position in range(len(order)):
        i = order[position]
        score = scores[i] + intercept
        room = dual_room(dual[i], score, low[i], high[i])
        if room > far:
            continue
        order[count] = i
        count += 1
        if room >= 0.0:
            continue
        worst = max(worst, -room)
        curvature = squared_norms[i] / alpha + bias_step
        moved = dual_step(dual[i], score, curvature, low[i], high[i], relaxation)
        change = moved - dual[i]
        dual[i] = moved
        intercept -= bias_step * change
        factor = -change / alpha
        for k in range(len(scores)):
            scores[k] += factor * gram[i, k]
    return intercept, count, worst


@dot_product
def pair_of_dots(row, first, second):
    """Products of a row with two vectors."""
    one = 0.0
    other = 0.0
    for k in range(len(row)):
        one += row[k] * first[k]
        other += row[k] * second[k]
    return one, other


@compiled
def gram_products(gram, first, second, out):
    """Products of a Gram matrix with two vectors."""
    for i in range(len(first)):
        out[0, i], out[1, i] = pair_of_dots(gram[i], first, second)


@compiled
def gram_part(gram, chosen, out):
    """The rows and columns of a Gram matrix that are chosen."""
    for i in range(len(chosen)):
        row = chosen[i]
        for k in range(len(chosen)):
            out[i, k] = gram[row, chosen[k]]


# ---- the proximal hinge: max over 0 <= share <= 1 of share * u - width/2 (share - centre)^2 ----


@compiled
def proximal_sums(
    scores, score_step, step, width, weights, cells, live, centre, first, last, hinges, slopes
):
    """Sums of the proximal hinge at scores + step * score_step, and of its derivative by step."""
    for i in range(first, last):
        bits = live[i]
        if bits == 0:
            continue
        cell = cells[i]
        weight = weights[i]
        change = score_step[i]
        z = scores[i] + step * change
        for side in range(2):
            if not bits & (1 + side):
                continue
            u = 0.5 + (z if side == 0 else -z)
            middle = centre[side, i]
            share = min(max(middle + u / width, 0.0), 1.0)
            if share == 0.0 and middle == 0.0:
                continue
            away = share - middle
            hinges[side, cell] += weight * (share * u - 0.5 * width * away * away)
            slopes[side, cell] += weight * share * (change if side == 0 else -change)


@compiled
def proximal_terms(
    scores, width, weights, cells, live, ceiling, centre, first, last,
    gradient, curvature, factors, sums,
):
    """Slope and curvature of every row's charge in its score, and the slope of every hinge.

    Of the terms of every (side, cell), sums[0] collects the weighted shares and sums[1] the exact
    hinges.
    """
    for i in range(first, last):
        slope = 0.0
        bend = 0.0
        factors[0, i] = 0.0
        factors[1, i] = 0.0
        bits = live[i]
        for side in range(2):
            if not bits & (1 + side):
                continue
            u = 0.5 + (scores[i] if side == 0 else -scores[i])
            share = centre[side, i] + u / width
            top = ceiling[side, cells[i]]
            if u > 0.0:
                sums[1, side, cells[i]] += weights[i] * u
            if share <= 0.0:
                continue
            if share < 1.0:
                bend += top / width
            else:
                share = 1.0
            factor = weights[i] * share
            factors[side, i] = factor if side == 0 else -factor
            sums[0, side, cells[i]] += factor
            slope += top * factors[side, i]
        gradient[i] = slope
        curvature[i] = weights[i] * bend


@compiled
def csr_products(indptr, indices, data, starts, owners, values, seen, out):
    """Lower triangle of X X', from X by rows and by columns (starts, owners, values).

    `seen`, zeros, counts the entries of every column in the rows so far: those that a row meets.
    """
    for i in range(len(indptr) - 1):
        row = out[i]
        for k in range(unsigned(indptr[i]), unsigned(indptr[i + 1])):
            column = unsigned(indices[k])
            value = data[k]
            seen[column] += 1
            first = unsigned(starts[column])
            for other in range(first, first + unsigned(seen[column])):
                row[unsigned(owners[other])] += value * values[other]


@compiled
def split_terms(targets, stiffness, weights, cells, live, ceiling, places, hinges, bends):
    """Put every score where charge and pull balance: argmin of charge(z) + stiffness/2 (z - t)^2.

    Adds the hinge sums there to hinges[side, cell], and to bends[zone, cell] the sums of
    weight^2 / stiffness over the rows below both kinks, between them and above both, of which the
    hinge sums' derivatives by the ceilings are made. Returns the sum of the minima.
    """
    total = 0.0
    for i in range(len(targets)):
        target = targets[i]
        bits = live[i]
        if bits == 0:
            places[i] = target
            continue
        cell = cells[i]
        weight = weights[i]
        pull = stiffness[i]
        high = weight * ceiling[0, cell] if bits & 1 else 0.0
        low = weight * ceiling[1, cell] if bits & 2 else 0.0
        zone = -1
        if target < -0.5 - low / pull:
            z = target + low / pull
            zone = 0
        elif target <= -0.5 + (high - low) / pull:
            z = -0.5
        elif target < 0.5 + (high - low) / pull:
            z = target - (high - low) / pull
            zone = 1
        elif target <= 0.5 + high / pull:
            z = 0.5
        else:
            z = target - high / pull
            zone = 2
        places[i] = z
        if zone >= 0:
            bends[zone, cell] += weight * weight / pull
        above = max(0.5 + z, 0.0) if bits & 1 else 0.0
        below = max(0.5 - z, 0.0) if bits & 2 else 0.0
        hinges[0, cell] += weight * above
        hinges[1, cell] += weight * below
        total += high * above + low * below + 0.5 * pull * (z - target) * (z - target)
    return total
