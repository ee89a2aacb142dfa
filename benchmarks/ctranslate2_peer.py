"""CTranslate2 as a peer, in a process of its own: beside torch's threads in one process it was twice as slow (docs/experiments.md).

    PYTHON benchmarks/ctranslate2_peer.py WEIGHTS.npz THREADS       PYTHON needs ctranslate2 and numpy, nothing else

Reads one request a line, {"type": "float32" | "int8", "sources": [[token, …], …], "beam": 4, "new_tokens": 25}, and answers each
with the tokens, one line. The weights are those of transformers' Marian under their own names; the network is put together from
CTranslate2's parts as its own converter does.
"""

import json
import sys
import tempfile
from collections.abc import Mapping

import ctranslate2
import numpy as np
from ctranslate2.specs import attention_spec, common_spec, transformer_spec

SPECIAL = ["<pad>", "<s>", "</s>", "<unk>"]
Weights = Mapping[str, np.ndarray]


def build_spec(weights: Weights) -> transformer_spec.TransformerSpec:
    num_layers = 1 + max(int(name.split(".")[3]) for name in weights if name.startswith("model.decoder.layers."))
    heads = int(weights["heads"])
    spec = transformer_spec.TransformerSpec.from_config((num_layers, num_layers), heads, pre_norm=False)
    for name, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        table = weights["model.shared.weight"]
        stack.scale_embeddings = float(table.shape[1]) ** 0.5
        stack.position_encodings.encodings = weights[f"model.{name}.embed_positions.weight"]
        embedding = stack.embeddings[0] if isinstance(stack.embeddings, list) else stack.embeddings
        embedding.weight = table
        for number, layer in enumerate(stack.layer):
            fill_layer(layer, weights, f"model.{name}.layers.{number}", crossing=name == "decoder")
    spec.decoder.projection.weight = weights["model.shared.weight"]
    spec.decoder.projection.bias = weights["final_logits_bias"][0]
    vocabulary = [*SPECIAL, *map(str, range(len(SPECIAL), len(weights["model.shared.weight"])))]
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.bos_token, spec.config.eos_token, spec.config.unk_token = "<s>", "</s>", "<unk>"
    spec.config.decoder_start_token = "<s>"
    return spec


def fill_layer(
    layer: transformer_spec.TransformerDecoderLayerSpec, weights: Weights, name: str, *, crossing: bool
) -> None:
    fill_attention(layer.self_attention, weights, f"{name}.self_attn", own=True)
    fill_norm(layer.self_attention.layer_norm, weights, f"{name}.self_attn_layer_norm")
    if crossing:
        fill_attention(layer.attention, weights, f"{name}.encoder_attn", own=False)
        fill_norm(layer.attention.layer_norm, weights, f"{name}.encoder_attn_layer_norm")
    fill_linear(layer.ffn.linear_0, weights, [f"{name}.fc1"])
    fill_linear(layer.ffn.linear_1, weights, [f"{name}.fc2"])
    fill_norm(layer.ffn.layer_norm, weights, f"{name}.final_layer_norm")


def fill_attention(part: attention_spec.MultiHeadAttentionSpec, weights: Weights, name: str, *, own: bool) -> None:
    queries, others = [f"{name}.q_proj"], [f"{name}.k_proj", f"{name}.v_proj"]
    for linear, names in zip(part.linear, [queries + others] if own else [queries, others], strict=False):
        fill_linear(linear, weights, names)
    fill_linear(part.linear[-1], weights, [f"{name}.out_proj"])


def fill_linear(linear: common_spec.LinearSpec, weights: Weights, names: list[str]) -> None:
    linear.weight = np.concatenate([weights[f"{name}.weight"] for name in names])
    linear.bias = np.concatenate([weights[f"{name}.bias"] for name in names])


def fill_norm(norm: common_spec.LayerNormSpec, weights: Weights, name: str) -> None:
    norm.gamma, norm.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]


def main() -> None:
    path, threads = sys.argv[1], int(sys.argv[2])
    translators: dict[str, ctranslate2.Translator] = {}
    for line in sys.stdin:
        request = json.loads(line)
        kind = request["type"]
        if kind not in translators:
            with tempfile.TemporaryDirectory() as directory, np.load(path) as weights:
                spec = build_spec(weights)
                spec.validate()
                spec.optimize(quantization=None if kind == "float32" else kind)
                spec.save(directory)
                translators[kind] = ctranslate2.Translator(directory, compute_type=kind, intra_threads=threads)
        results = translators[kind].translate_batch(
            [[*map(str, source), "</s>"] for source in request["sources"]],
            beam_size=request["beam"],
            max_decoding_length=request["new_tokens"],
            max_batch_size=0,
        )
        print(json.dumps([[int(token) for token in result.hypotheses[0]] for result in results]), flush=True)


if __name__ == "__main__":
    main()
