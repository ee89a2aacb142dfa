"""A child that writes down what it hears: it ends when it is asked to, unless its way is to ignore
that.

python -m tests.survival.stubborn_child FILE WAY
"""

import signal
import sys
import time
from pathlib import Path
from types import FrameType

file, way = Path(sys.argv[1]), sys.argv[2]


def hear(number: int, frame: FrameType | None) -> None:
    if way != "ignores":
        file.write_text(signal.Signals(number).name)
        sys.exit(128 + number)


signal.signal(signal.SIGTERM, hear)
file.touch()
while True:
    time.sleep(0.05)
