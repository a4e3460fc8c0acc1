"""Progress on standard error: a live bar on a terminal, a plain line every few seconds elsewhere.

Shows what the ledger counts, never a counter of its own. Failing to draw must not disturb a run: a terminal that goes away
ends the drawing only.
"""

from __future__ import annotations

import re
import sys
import time
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final

from payonce.cli.common import Common
from payonce.cli.words import ITEM_STATES, seconds
from payonce.core.model import Status
from payonce.core.money import format_minor
from payonce.core.states import ItemState
from payonce.service.report import currencies, planned_minor

if TYPE_CHECKING:
    from rich.live import Live

_WINDOW_S = 15.0
_PLAIN_EVERY_S = 5.0
_DRAW_EVERY_S = 0.1
_BAR_WIDTH = 28


class Meter:
    """The pace over the last quarter of a minute, from readings of the ledger's counts."""

    def __init__(self) -> None:
        self._readings: deque[tuple[float, int]] = deque()

    def add(self, *, at_s: float, done: int) -> None:
        """A reading at a monotonic time."""
        self._readings.append((at_s, done))
        while at_s - self._readings[0][0] > _WINDOW_S and len(self._readings) > 2:
            self._readings.popleft()

    @property
    def per_s(self) -> float | None:
        """Items done a second, None until two readings differ in time."""
        if len(self._readings) < 2:
            return None
        (first_s, first), (last_s, last) = self._readings[0], self._readings[-1]
        return (last - first) / (last_s - first_s) if last_s > first_s else None

    def left_s(self, left: int) -> float | None:
        """Seconds for what is left at this pace."""
        pace = self.per_s
        return left / pace if pace else None


class Progress:
    """What the engine tells about a running batch, shown. A context manager: leaving it leaves the terminal clean."""

    def __init__(self, common: Common) -> None:
        self._silent = common.quiet
        self._color = common.color is not False
        self._live: Live | None = None
        self._meter = Meter()
        self._shown_s = 0.0
        self.last: Status | None = None
        self._first = True
        self._terminal = sys.stderr.isatty()
        if not self._terminal:
            self._shown_s = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._live is not None:
            if self.last is not None:
                self._draw(self.last)
            self._live.stop()
            self._live = None

    def __call__(self, status: Status, *_: Any, **__: Any) -> None:
        """A new reading; shown if the last one is long enough ago."""
        if not self._first:  # the first reading is of before the run's first call: no news of how it ended
            self.last = status
        self._first = False
        if self._silent:
            return
        now = time.monotonic()
        done = sum(status.count(state) for state in ItemState if not state.is_open)
        self._meter.add(at_s=now, done=done)
        if now - self._shown_s < (_DRAW_EVERY_S if self._terminal else _PLAIN_EVERY_S):
            return
        self._shown_s = now
        try:
            if self._terminal:
                self._draw(status)
            else:
                sys.stderr.write(line(status, self._meter) + "\n")
                sys.stderr.flush()
        except (OSError, ValueError):
            self._silent = True  # nobody can see it any more; the run goes on

    def _draw(self, status: Status) -> None:
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        if self._live is None:
            console = Console(stderr=True, no_color=not self._color, highlight=False)
            self._live = Live(console=console, auto_refresh=False, transient=False)
            self._live.start()
        pace, money = parts(status, self._meter)
        text = Text(bar(status), style="cyan", overflow="ellipsis", no_wrap=True)
        text.append(f" {pace}\n  {money}", style="default")
        if status.trouble:
            text.append(f"\n  {trouble_words(status.trouble)}", style="yellow")
        self._live.update(text, refresh=True)

    def finish(self, status: Status | None) -> None:
        """The counts at the end, which the engine does not report while it runs."""
        if status is not None:
            self.last = status


def bar(status: Status) -> str:
    """The share of items that are done as a bar of fixed width."""
    done = sum(status.count(state) for state in ItemState if not state.is_open)
    full = done * _BAR_WIDTH // status.batch.items if status.batch.items else _BAR_WIDTH
    return "━" * full + "╌" * (_BAR_WIDTH - full)


def line(status: Status, meter: Meter) -> str:
    """``420/1000 done, 80.1/s, 7s left; 5040.00 of 12000.00 USD, 64 pending, 2 refused``."""
    pace, money = parts(status, meter)
    told = f"{pace}; {money}" if money else pace
    return f"{told}; {trouble_words(status.trouble)}" if status.trouble else told


# What the system says of a connection that does not come up is for programmers; these words are for everybody.
_ADDRESS: Final = re.compile(r"(?:[\w.-]+|\[[0-9a-fA-F:]+\]):\d{1,5}\b")
_TROUBLES: Final = {
    "connect_refused": "nothing accepts connections at its address",
    "connect_timeout": "no connection came up in time",
    "connect_failed": "the connection did not come up",
    "dns_failed": "its name is not found",
    "tls_failed": "the encrypted connection did not come up",
    "proxy_failed": "the proxy did not connect",
}


def trouble_words(trouble: str) -> str:
    """Why nothing moves, while it is tried again."""
    code, _, text = trouble.partition(": ")
    if code == "rate_limited":
        return f"the provider wants fewer calls, trying again: {text or code}"
    address = _ADDRESS.search(text)
    where = f"{code}, {address[0]}" if address else code
    return f"cannot reach the provider, trying again: {_TROUBLES.get(code) or text or code} ({where})"


def parts(status: Status, meter: Meter) -> tuple[str, str]:
    """What is done and how fast; and money with the counts that a person may have to look at."""
    total = status.batch.items
    left = sum(status.count(state) for state in ItemState if state.is_open)
    pace = [f"{total - left}/{total} done"]
    if meter.per_s and left:
        pace += [f"{meter.per_s:.1f}/s", f"{seconds(meter.left_s(left))} left"]
    elif left and left == status.count(ItemState.PENDING):
        pace.append("waiting until what is pending can be looked up")
    money = [_money(status, currency) for currency in currencies(status)]
    money += [f"{status.count(ItemState(name))} {name}" for name in ITEM_STATES if _worth_saying(status, name)]
    return ", ".join(pace), ", ".join(money)


def _worth_saying(status: Status, name: str) -> bool:
    return name in ("pending", "unknown", "refused", "skipped") and status.count(ItemState(name)) > 0


def _money(status: Status, currency: str) -> str:
    done = format_minor(status.minor(currency, ItemState.COMMITTED), currency)
    return f"{done} of {format_minor(planned_minor(status, currency), currency)} {currency}"
