"""The sessions of an adapter: one for each conversation or caller."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from .._policies import refuse_model_policies
from ..engine import Engine
from ..errors import UnsupportedError
from ..session import Session

__all__ = ["Sessions"]

#: How many sessions are kept in memory.
MAX_SESSIONS = 10_000


class Sessions:
    """Opens sessions by their keys, and keeps the latest ones.

    Once one had to be forgotten, sessions are opened with an unknown past: conditions that read their state are undecided. A state
    store knows the past of a session with a name.
    """

    def __init__(
        self,
        engine: Engine,
        open_session: Callable[..., Session],
        applied_elsewhere: Sequence[str] = (),
        limit: int = MAX_SESSIONS,
    ) -> None:
        if not isinstance(engine, Engine):
            raise UnsupportedError(f"the adapter needs a `callgate.Engine`, not `{type(engine).__name__}`")
        refuse_model_policies(engine, applied_elsewhere)
        self.engine = engine
        self._open = open_session
        self._limit = limit
        self._sessions: OrderedDict[Any, Session] = OrderedDict()
        self._forgot = False
        self._lock = threading.Lock()

    def get(self, key: Any, *args: Any) -> Session:
        """The session of a key, opened with these arguments if it is new."""
        with self._lock:
            session = self._sessions.get(key)
            if session is not None:
                self._sessions.move_to_end(key)
                return session
            session = self._open(*args, has_unknown_past=self._forgot)
            self._sessions[key] = session
            if len(self._sessions) > self._limit:
                self._sessions.popitem(last=False)
                self._forgot = True
            return session
