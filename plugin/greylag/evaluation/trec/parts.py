"""Parts of the topics, for work that is divided among machines: ``3/16`` is the third of sixteen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sized
from itertools import islice
from typing import NamedTuple, TypeVar

from greylag.base import ParameterError

T = TypeVar("T")


class Part(NamedTuple):
    """A part of successive topics; the outputs of all parts in order are the output of one run over all topics.

    It has a `number` from 1 to `of`, the number of parts, which differ by one topic at the most.
    """

    number: int = 1
    of: int = 1

    @classmethod
    def parse(cls, text: str | None) -> Part:
        """Parse a part such as ``3/16``; None is all topics. `ParameterError` for a text of another form."""
        if text is None:
            return cls()
        numbers = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", text)
        if numbers is None:
            raise ParameterError(f"--part {text!r:.60} is not of the form NUMBER/PARTS, such as 3/16")
        part = cls(*map(int, numbers.groups()))
        if not 1 <= part.number <= part.of:
            raise ParameterError(f"--part {part.number}/{part.of}: parts are numbered from 1 to {part.of}")
        return part

    def places(self, n: int) -> range:
        """Return the numbers of this part's topics among `n`, from 0: from floor(n (number - 1) / of) on.

        `ParameterError` if there are fewer topics than parts.
        """
        if n < self.of > 1:
            raise ParameterError(f"--part {self.number}/{self.of}: there are {n} topics; make no more parts than that")
        # In integers, so that parts meet without gaps or overlaps.
        return range(n * (self.number - 1) // self.of, n * self.number // self.of)

    def among(self, items: Iterable[T], topics: Sized) -> Iterator[T]:
        """Select the items of this part from `items`, one for each topic of `topics`."""
        places = self.places(len(topics))
        return islice(items, places.start, places.stop)
