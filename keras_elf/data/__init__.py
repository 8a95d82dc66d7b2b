"""Text in, batches out: corpora, data sets, tokenizers, rows of token ids and batches.

Everything here gives Python or NumPy objects, never tensors of a framework, so that the same data
feeds every backend. Importing it costs NumPy and Keras alone.
"""

from keras_elf.data.batches import TokenBatches
from keras_elf.data.bible import king_james_clauses, king_james_verses
from keras_elf.data.dataset import TextDataset
from keras_elf.data.decode import decode_texts
from keras_elf.data.encode import encode_texts, special_token_ids, to_token_ids
from keras_elf.data.loading import load_dataset
from keras_elf.data.packing import pack_documents
from keras_elf.data.resumable import PositionTracker, ResumableDataset
from keras_elf.data.rows import check_token_ids, cut_at_end, make_rows, strip_prefix
from keras_elf.data.tokenizers import train_sentencepiece
from keras_elf.data.wordnet import wordnet_definitions

__all__ = [
    "PositionTracker",
    "ResumableDataset",
    "TextDataset",
    "TokenBatches",
    "check_token_ids",
    "cut_at_end",
    "decode_texts",
    "encode_texts",
    "king_james_clauses",
    "king_james_verses",
    "load_dataset",
    "make_rows",
    "pack_documents",
    "special_token_ids",
    "strip_prefix",
    "to_token_ids",
    "train_sentencepiece",
    "wordnet_definitions",
]
