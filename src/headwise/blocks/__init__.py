"""The layers that models are built from: norms, feed-forward networks, residuals, recurrent cells,
embeddings.
"""

from headwise.blocks.decoder_block import DecoderBlock
from headwise.blocks.embeddings import TokenEmbedding
from headwise.blocks.encoder_block import EncoderBlock
from headwise.blocks.feed_forward import FeedForward, GatedFeedForward
from headwise.blocks.normalization import LayerNorm, RMSNorm
from headwise.blocks.residual import Residual
from headwise.initialization import initialize

__all__ = [
    "DecoderBlock",
    "EncoderBlock",
    "FeedForward",
    "GatedFeedForward",
    "LayerNorm",
    "RMSNorm",
    "Residual",
    "TokenEmbedding",
    "initialize",
]
