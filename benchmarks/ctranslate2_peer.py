"""CTranslate2 as a peer, in a process of its own: beside torch's threads in one process it was
twice as slow (docs/experiments/decoding-speed.md).

    PYTHON benchmarks/ctranslate2_peer.py DIRECTORY THREADS    PYTHON needs ctranslate2 only

Reads one request a line, {"type": "float32" | "int8", "sources": [[token, …], …], "beam": 4,
"new_tokens": 25}, and answers each with the tokens, one line. DIRECTORY has one network for each
type, as `headwise export` writes them; tokens are named by their numbers.
"""

import json
import sys

import ctranslate2


def main() -> None:
    directory, threads = sys.argv[1], int(sys.argv[2])
    translators: dict[str, ctranslate2.Translator] = {}
    for line in sys.stdin:
        request = json.loads(line)
        kind = request["type"]
        if kind not in translators:
            translators[kind] = ctranslate2.Translator(
                f"{directory}/{kind}", compute_type=kind, intra_threads=threads
            )
        results = translators[kind].translate_batch(
            [list(map(str, source)) for source in request["sources"]],
            beam_size=request["beam"],
            max_decoding_length=request["new_tokens"],
            max_batch_size=0,
        )
        print(
            json.dumps([[int(token) for token in result.hypotheses[0]] for result in results]),
            flush=True,
        )


if __name__ == "__main__":
    main()
