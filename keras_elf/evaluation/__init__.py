"""How good generated text is: figures that can be compared with papers, and reranking.

BLEU and ROUGE need `pip install "keras-elf[eval]"`; importing this module loads neither them nor
a judge.
"""

from keras_elf.evaluation.against_corpus import corpus_figures
from keras_elf.evaluation.collapse import entropy_floor
from keras_elf.evaluation.diversity import distinct_n, looping_texts, repeated_ngrams
from keras_elf.evaluation.entropy import unigram_entropy
from keras_elf.evaluation.evaluating import evaluate_generation
from keras_elf.evaluation.judges import load_judge
from keras_elf.evaluation.overlap import bleu, exact_match, rouge
from keras_elf.evaluation.perplexity import JudgedTexts, generative_perplexity
from keras_elf.evaluation.report import GenerationReport
from keras_elf.evaluation.reranking import RankedTexts, best_of

__all__ = [
    "GenerationReport",
    "JudgedTexts",
    "RankedTexts",
    "best_of",
    "bleu",
    "corpus_figures",
    "distinct_n",
    "entropy_floor",
    "evaluate_generation",
    "exact_match",
    "generative_perplexity",
    "load_judge",
    "looping_texts",
    "repeated_ngrams",
    "rouge",
    "unigram_entropy",
]
