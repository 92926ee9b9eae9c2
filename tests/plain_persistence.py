"""Persistent H1 by the textbook reduction of the boundary matrix, for small complexes."""

from itertools import combinations

import numpy as np


def loops(value, n_vertices, top=np.inf):
    """Return the bars of H1 of a filtered complex; `value` maps a tuple to when it enters."""
    simplices = [
        (value(s), len(s), s) for k in (1, 2, 3) for s in combinations(range(n_vertices), k)
    ]
    simplices = sorted(s for s in simplices if s[0] <= top)
    position = {s[2]: i for i, s in enumerate(simplices)}
    owner, columns, paired, bars = {}, {}, set(), []
    for i, (time, size, simplex) in enumerate(simplices):
        faces = combinations(simplex, size - 1) if size > 1 else ()
        column = {position[face] for face in faces}
        while column and max(column) in owner:
            column ^= columns[owner[max(column)]]
        columns[i] = column
        if column:
            low = max(column)
            owner[low] = i
            paired |= {low, i}
            if size == 3 and time > simplices[low][0]:
                bars.append((simplices[low][0], time))
    endless = [s[0] for i, s in enumerate(simplices) if s[1] == 2 and i not in paired]
    return np.array(bars + [(birth, np.inf) for birth in endless]).reshape(-1, 2)
