"""Who may ask: random keys, of which only a hash is kept, and how often each may ask.

A key is 256 random bits, `hw_…`; its file holds a name and the SHA-256 of the key a line (a hash
made to be slow protects words that people choose, and would let strangers keep the server busy). A
key is read from the `Authorization: Bearer` or `X-API-Key` header, never from an address, and
compared with all that are known in a time that does not depend on it.

    tokens ← min(rate, tokens + rate · minutes since);  a request takes one, or is told how long to wait

Tested: making, checking, wrong files, no key in any log; the bucket by hand-worked times.
"""

import hashlib
import hmac
import math
import os
import re
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path

from headwise.errors import DataError, UsageError
from headwise.serving.http.errors import Refusal

PREFIX = "hw_"
MAX_FILE_BYTES = 1_048_576
MAX_KEY_CHARACTERS = 200
MAX_CALLERS = 10_000
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def hash_key(key: str) -> str:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()


def check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a key; use letters, digits, '.', '_', '-', at most 64",
            f"{name!r} 不能用作密钥名；请用字母、数字、'.'、'_'、'-'，最多 64 个",
        )


def add_key(file: Path, name: str) -> str:
    """A new key under a name; the key itself is returned and nowhere kept."""
    check_name(name)
    known = read_keys(file) if file.exists() else {}
    if name in known:
        raise UsageError(
            f"{file} has a key called {name!r}; take another name, or delete its line first",
            f"{file} 中已有名为 {name!r} 的密钥；请换一个名称，或先删除该行",
        )
    file.parent.mkdir(parents=True, exist_ok=True)
    key = PREFIX + secrets.token_urlsafe(32)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    with os.fdopen(descriptor, "a", encoding="utf-8") as writer:
        writer.write(f"{name} {hash_key(key)}\n")
    return key


def read_keys(file: Path) -> dict[str, str]:
    """Hashes by name."""
    if not file.is_file():
        raise UsageError(
            f"{file} is not a file of keys; make one: headwise key NAME --keys {file}",
            f"{file} 不是密钥文件；请生成：headwise key NAME --keys {file}",
        )
    if os.name == "posix" and file.stat().st_mode & 0o022:
        raise UsageError(
            f"{file} can be written by others, who could let themselves in; run: chmod 600 {file}",
            f"{file} 可被他人写入，他人可借此进入；请运行：chmod 600 {file}",
        )
    if file.stat().st_size > MAX_FILE_BYTES:
        raise DataError("is too large for a file of keys", "作为密钥文件过大", file=file)
    keys: dict[str, str] = {}
    for number, line in enumerate(
        file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1
    ):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, digest = line.strip().partition(" ")
        if not NAME.fullmatch(name) or not re.fullmatch(r"[0-9a-f]{64}", digest.strip()):
            # The line itself is not shown: somebody may have put a key there.
            raise DataError(
                "is not a name and the hash of a key; make lines with `headwise key NAME --keys "
                "FILE`",
                "不是“名称 密钥散列”；请用 `headwise key NAME --keys FILE` 生成",
                file=file,
                line=number,
            )
        keys[name] = digest.strip()
    return keys


class KeyRing:
    """The keys a server knows."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = dict(hashes)

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def find(self, key: str | None, *, in_body: bool = False) -> str:
        """The name of a key; refuses what is missing or unknown. `in_body`: it may also stand
        there.
        """
        if not key:
            field, field_zh = (
                ("as `api_key` in the body, or ", "请求体的 `api_key` 字段或 ")
                if in_body
                else ("", "")
            )
            raise Refusal(
                401,
                "no_key",
                en=(
                    f"this server asks for a key; send it {field}in the header `Authorization: "
                    "Bearer KEY`"
                ),
                zh=f"此服务器需要密钥；请放在{field_zh or ' '}`Authorization: Bearer KEY` 头中",
            )
        given = hash_key(key[:MAX_KEY_CHARACTERS])
        found = [name for name, known in self._hashes.items() if hmac.compare_digest(given, known)]
        if not found:
            raise Refusal(
                403, "wrong_key", en="the key is not known here; check it", zh="密钥无效；请检查"
            )
        return found[0]


class RateLimit:
    """A bucket for each caller; full ones are forgotten first."""

    def __init__(self, rate: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate, self._clock = rate, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """One request of a caller, or a refusal that says how long to wait."""
        if not self._rate:
            return
        tokens = self._tokens_of(caller)
        self._buckets[caller] = (tokens - 1 if tokens >= 1 else tokens, self._clock())
        if len(self._buckets) > MAX_CALLERS:
            self._buckets.popitem(last=False)
        if tokens < 1:
            raise self._too_fast(tokens)

    def give_back(self, caller: str) -> None:
        """One that was taken from a caller who turned out to be another."""
        if caller in self._buckets:
            self._buckets[caller] = (
                min(float(self._rate), self._tokens_of(caller) + 1),
                self._clock(),
            )

    def _tokens_of(self, caller: str) -> float:
        """As many as it has now; the caller becomes the last to be forgotten."""
        now = self._clock()
        if caller not in self._buckets:
            return float(self._rate)
        tokens, before = self._buckets[caller]
        self._buckets.move_to_end(caller)
        return min(float(self._rate), tokens + (now - before) * self._rate / 60)

    def _too_fast(self, tokens: float) -> Refusal:
        wait = max(1, math.ceil((1 - tokens) * 60 / self._rate))
        return Refusal(
            429,
            "too_fast",
            en=(
                f"more than {self._rate} requests a minute; wait {wait} s, or send several texts "
                "in one request"
            ),
            zh=f"每分钟超过 {self._rate} 个请求；请等待 {wait} 秒，或在一个请求中发送多个文本",
            retry_after=wait,
        )
