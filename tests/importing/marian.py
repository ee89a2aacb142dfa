"""Small random Marian models in the format of transformers, with tokenizers of pocket sentences."""

import io
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from transformers import MarianConfig, MarianMTModel, MarianTokenizer

from headwise.pocket import sentences
from headwise.randomness import torch_generator

UNLISTED = 3
"""Pieces of each sentencepiece model that the list leaves out, so that they are unknown."""
LENGTH = 23
PAD = 2


def pieces_of(lines: Iterable[str], size: int) -> bytes:
    """A sentencepiece model with Marian's special pieces."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines), model_writer=written, vocab_size=size, model_type="unigram",
        pad_id=-1, bos_id=-1, eos_id=0, unk_id=1, minloglevel=2, num_threads=1,
    )  # fmt: skip
    return written.getvalue()


def entries_of(model: bytes) -> list[str]:
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(number) for number in range(2, processor.get_piece_size())]


def write_marian(directory: Path, *, separate: bool = False, **changes: Any) -> Path:
    """A directory as transformers writes it. The random weights have loud attention and positions,
    so that translations depend on the source and end at different lengths."""
    directory.mkdir(parents=True)
    spoken = list(sentences("train", 400))
    models = {
        "source": pieces_of((one.text("zh") for one in spoken), 640),
        "target": pieces_of((one.text("en") for one in spoken), 300),
    }
    entries = {side: entries_of(model)[:-UNLISTED] for side, model in models.items()}
    for side, model in models.items():
        (directory / f"{side}.spm").write_bytes(model)
    joint = [*dict.fromkeys([*entries["source"], *entries["target"]]), ">>eng<<", ">>deu<<"]
    lists = {"vocab.json": entries["source"] if separate else joint}
    if separate:
        lists["target_vocab.json"] = entries["target"]
    sizes = []
    for name, listed in lists.items():
        whole = ["</s>", "<unk>", *listed]
        # Two lists need one number for padding.
        whole.insert(PAD if separate else len(whole), "<pad>")
        sizes.append(len(whole))
        numbers = {entry: number for number, entry in enumerate(whole)}
        (directory / name).write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    languages = {"source_lang": "zh", "target_lang": "en", "separate_vocabs": separate}
    (directory / "tokenizer_config.json").write_text(json.dumps(languages), encoding="utf-8")
    model = random_marian(sizes[0], sizes[-1], separate=separate, **changes)
    model.save_pretrained(directory)
    return directory


def random_marian(
    size: int, target_size: int, *, separate: bool = False, **changes: Any
) -> MarianMTModel:
    settings = {
        "vocab_size": size,
        "decoder_vocab_size": target_size,
        "d_model": 24,
        "encoder_layers": 2,
        "decoder_layers": 3,
        "encoder_attention_heads": 3,
        "decoder_attention_heads": 2,
        "encoder_ffn_dim": 37,
        "decoder_ffn_dim": 37,
        "max_position_embeddings": 64,
        "activation_function": "swish",
        "scale_embedding": True,
        "share_encoder_decoder_embeddings": not separate,
        "pad_token_id": PAD if separate else size - 1,
        "decoder_start_token_id": PAD if separate else size - 1,
        "eos_token_id": 0,
        "bos_token_id": 0,
        "forced_eos_token_id": 0,
    }
    config = MarianConfig(**settings | changes)
    model = MarianMTModel(config).eval()
    generator = torch_generator("marian", size)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            loud = "encoder_attn." in name
            if "embed_positions" not in name:
                noise = torch.randn(parameter.shape, generator=generator)
                around = 1.0 if "layer_norm.weight" in name else 0.0
                parameter.copy_(around + noise * (1.0 if loud else 0.3))
        model.final_logits_bias.copy_(
            torch.randn(model.final_logits_bias.shape, generator=generator)
        )
        model.final_logits_bias[0, 0] = 5.0
    generation = model.generation_config
    generation.num_beams, generation.max_length = 4, LENGTH + 1
    generation.bad_words_ids = [[config.pad_token_id]]
    generation.forced_eos_token_id, generation.no_repeat_ngram_size = 0, 1
    return model


Peer = tuple[MarianMTModel, MarianTokenizer]


def load_peer(directory: Path) -> Peer:
    model = MarianMTModel.from_pretrained(directory).eval()
    tokenizer = MarianTokenizer.from_pretrained(directory)
    return model, tokenizer
