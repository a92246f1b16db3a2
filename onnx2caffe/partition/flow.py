"""Minimum cuts of small flow networks, by shortest augmenting paths (Edmonds and Karp)."""

from __future__ import annotations

from collections import deque

__all__ = ["UNBOUNDED", "FlowNetwork"]

UNBOUNDED = 1 << 80
"""The capacity of an edge that no cut may cross."""


class FlowNetwork:
    """A directed network between `source` and `sink`; vertices are numbers, capacities integers."""

    source, sink = 0, 1

    def __init__(self) -> None:
        self._leaving: list[list[int]] = [[], []]
        self._heads: list[int] = []
        self._left: list[int] = []
        """What each edge can still carry; the reverse of edge e is e ^ 1."""

    def vertex(self) -> int:
        """A new vertex."""
        self._leaving.append([])
        return len(self._leaving) - 1

    def edge(self, tail: int, head: int, capacity: int = UNBOUNDED) -> None:
        """A new edge."""
        for start, end, room in ((tail, head, capacity), (head, tail, 0)):
            self._leaving[start].append(len(self._heads))
            self._heads.append(end)
            self._left.append(room)

    def cut(self, greatest: bool) -> set[int]:
        """The source's side of a minimum cut: the greatest such side, or the least."""
        while path := self._path():
            amount = min(self._left[edge] for edge in path)
            for edge in path:
                self._left[edge] -= amount
                self._left[edge ^ 1] += amount
        if not greatest:
            return self._reached(self.source, backward=False)
        return set(range(len(self._leaving))) - self._reached(self.sink, backward=True)

    def _path(self) -> list[int]:
        """The edges of a shortest path that can carry more; empty when there is none."""
        came: dict[int, int] = {self.source: -1}
        queue = deque([self.source])
        while queue and self.sink not in came:
            vertex = queue.popleft()
            for edge in self._leaving[vertex]:
                if self._left[edge] and self._heads[edge] not in came:
                    came[self._heads[edge]] = edge
                    queue.append(self._heads[edge])
        path: list[int] = []
        vertex = self.sink
        while came.get(vertex, -1) >= 0:
            path.append(came[vertex])
            vertex = self._heads[came[vertex] ^ 1]
        return path

    def _reached(self, start: int, backward: bool) -> set[int]:
        """The vertices that edges with room left lead to from `start`, or from which they lead there."""
        seen, stack = {start}, [start]
        while stack:
            for edge in self._leaving[stack.pop()]:
                room = self._left[edge ^ 1] if backward else self._left[edge]
                if room and self._heads[edge] not in seen:
                    seen.add(self._heads[edge])
                    stack.append(self._heads[edge])
        return seen
