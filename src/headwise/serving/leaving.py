"""Whether the client of a request leaves before its answer. Tested through the addresses."""

import asyncio
from collections.abc import Callable

from fastapi import Request


class Leaving:
    """Whether the client leaves."""

    def __init__(self, request: Request, settle: Callable[[], None]) -> None:
        self.has_left = False
        self._request, self._settle = request, settle
        self._task = asyncio.ensure_future(self._listen())

    def stop(self) -> None:
        self._task.cancel()

    async def _listen(self) -> None:
        while (await self._request.receive())["type"] != "http.disconnect":
            pass
        self.has_left = True
        self._settle()
