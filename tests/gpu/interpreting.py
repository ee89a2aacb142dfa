"""Runs programs named as arguments in one process, with TRITON_INTERPRET=1: torch and Triton are
imported once. Each ends with a line `NAME done`; one that fails says why, and the next begins.
"""

import runpy
import sys
import traceback

if __name__ == "__main__":
    failed = False
    for name in sys.argv[1:]:
        try:
            runpy.run_module(name, run_name="__main__")
        except Exception:
            failed = True
            print(name, "failed", traceback.format_exc()[-2000:])
        print(name, "done", flush=True)
    sys.exit(failed)
