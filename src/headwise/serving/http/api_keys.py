"""Makes and checks API keys: they are random, and stored only as hashes.

A key is `hw_` and 256 random bits. Each line of the key file holds a name and the SHA-256 of a key.
Random keys cannot be guessed, so they need no slow password hash, which would only let an attacker
keep the server busy. A key is read from the `Authorization: Bearer` or `X-API-Key` header, never
from the URL, and is compared in constant time. Tested: creating, checking, wrong files, no key in
any log.
"""

import hashlib
import hmac
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path

from headwise.errors import DataError, UsageError
from headwise.serving.http.errors import Refusal
from headwise.serving.http.server_settings import ServerSettings

PREFIX = "hw_"
MAX_FILE_BYTES = 1_048_576
MAX_KEY_CHARACTERS = 200
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
    """Create a key under a name and store its hash. The key itself is only returned."""
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
    """The hashes of a key file, by name."""
    if not file.is_file():
        raise UsageError(
            f"{file} is not a key file; create one: headwise key NAME --keys {file}",
            f"{file} 不是密钥文件；请生成：headwise key NAME --keys {file}",
        )
    if os.name == "posix" and file.stat().st_mode & 0o022:
        raise UsageError(
            f"{file} can be written by others, who could add keys of their own; run: chmod 600 "
            f"{file}",
            f"{file} 可被他人写入，他人可借此加入自己的密钥；请运行：chmod 600 {file}",
        )
    if file.stat().st_size > MAX_FILE_BYTES:
        raise DataError("is too large for a key file", "作为密钥文件过大", file=file)
    keys: dict[str, str] = {}
    for number, line in enumerate(
        file.read_text(encoding="utf-8", errors="replace").splitlines(), start=1
    ):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, digest = line.strip().partition(" ")
        if not NAME.fullmatch(name) or not re.fullmatch(r"[0-9a-f]{64}", digest.strip()):
            # The message does not show the line: it may hold a key.
            raise DataError(
                "is not a name and the hash of a key; create lines with `headwise key NAME --keys "
                "FILE`",
                "不是“名称 密钥哈希”；请用 `headwise key NAME --keys FILE` 生成",
                file=file,
                line=number,
            )
        keys[name] = digest.strip()
    return keys


def check_keys_given(settings: ServerSettings) -> None:
    """A server that other machines can reach must require keys, and its key file must hold one."""
    if settings.is_public and settings.keys is None:
        raise UsageError(
            f"{settings.host} can be reached by others, and no keys were given; create one "
            "(headwise key NAME --keys keys.txt) and start with --keys keys.txt, or stay on "
            "--host 127.0.0.1",
            f"{settings.host} 可被他人访问，却没有给出密钥；请生成（headwise key NAME --keys "
            "keys.txt）并以 --keys keys.txt 启动，或保持 --host 127.0.0.1",
        )
    if settings.keys is not None and not read_keys(settings.keys):
        raise UsageError(
            f"{settings.keys} holds no key; create one: headwise key NAME --keys {settings.keys}",
            f"{settings.keys} 中没有密钥；请生成：headwise key NAME --keys {settings.keys}",
        )


class KeyRing:
    """The keys that a server accepts. An empty one means that no key is required."""

    def __init__(self, hashes: Mapping[str, str]) -> None:
        self._hashes = dict(hashes)

    def __bool__(self) -> bool:
        return bool(self._hashes)

    def find(self, key: str | None, *, in_body: bool = False) -> str:
        """The name of a key; a missing or unknown key is refused.

        `in_body`: the message says that the body may hold the key.
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
                    f"this server requires a key; send it {field}in the header `Authorization: "
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
