"""How far the runs are: one line that is drawn anew in a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType

WIDTH = 30
EVERY = 1.0  # seconds at which the line is drawn anew


class Progress:
    """Counts finished runs on stderr while it is entered.

    Parameters
    ----------
    name : str
    total : int
    done : int
        Runs that were there before, which say nothing of the time left.
    """

    def __init__(self, name: str, total: int, done: int = 0) -> None:
        self.name, self.total, self.done = name, total, done
        self.before = done
        self.in_terminal = sys.stderr.isatty()
        self._over = threading.Event()
        self._clock = threading.Thread(target=self._tick, daemon=True)

    def __enter__(self) -> Progress:
        self.began = time.monotonic()
        self._show()
        if self.in_terminal:
            self._clock.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        if self.in_terminal:
            self._clock.join()
            print(file=sys.stderr)

    def one_more(self) -> None:
        """Count one run more."""
        self.done += 1
        self._show()

    def line(self) -> str:
        """Done of all, elapsed, and time left by the mean of the runs made."""
        elapsed = time.monotonic() - self.began
        text = f"{self.done}/{self.total} runs, {clock(elapsed)} elapsed"
        made = self.done - self.before
        if made and self.done < self.total:
            text += f", about {clock(elapsed / made * (self.total - self.done))} left"
        return text

    def _show(self) -> None:
        if not self.in_terminal:
            print(f"{self.name}: {self.line()}", file=sys.stderr, flush=True)
            return
        full = WIDTH * self.done // max(self.total, 1)
        bar = "#" * full + "-" * (WIDTH - full)
        # \033[K: to the end of the line, where an earlier line was longer
        print(f"\r{self.name} [{bar}] {self.line()}\033[K", end="", file=sys.stderr, flush=True)

    def _tick(self) -> None:
        while not self._over.wait(EVERY):
            self._show()


def clock(seconds: float) -> str:
    """Return seconds as people say them: 42 s, 3 min 05 s, 2 h 07 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
