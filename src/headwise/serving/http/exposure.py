"""Whether a server may be started as it was asked for: whoever others can reach needs keys."""

from headwise.errors import UsageError
from headwise.serving.http.api_keys import read_keys
from headwise.serving.schemas.limits import ServerSettings


def check_exposure(settings: ServerSettings) -> None:
    """An open door to the world needs a key."""
    if settings.is_public and settings.keys is None:
        raise UsageError(
            f"{settings.host} can be reached by others, and no keys were given; make one "
            "(headwise key NAME --keys keys.txt) and start with --keys keys.txt, or stay on "
            "--host 127.0.0.1",
            f"{settings.host} 可被他人访问，却没有给出密钥；请生成（headwise key NAME --keys "
            "keys.txt）并以 --keys keys.txt 启动，或保持 --host 127.0.0.1",
        )
    if settings.keys is not None and not read_keys(settings.keys):
        raise UsageError(
            f"{settings.keys} holds no key; make one: headwise key NAME --keys {settings.keys}",
            f"{settings.keys} 中没有密钥；请生成：headwise key NAME --keys {settings.keys}",
        )
