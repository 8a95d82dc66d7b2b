"""Pretraining of an encoder that is interrupted and goes on, in Python and by the command."""

import signal

import keras
import numpy as np
import pytest

from keras_elf import encoders, testing, training
from keras_elf.callbacks import InterruptSafely, ResumableCheckpoint, TrainingLog
from keras_elf.encoders import TransformerEncoder
from keras_elf.training import pretrain
from tests.models import small


@pytest.fixture(autouse=True)
def interruptible():
    """Ctrl-C as in a terminal: a shell has its background processes ignore it."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


class CtrlC(keras.callbacks.Callback):
    def __init__(self, step):
        super().__init__()
        self.left = step

    def on_train_batch_begin(self, batch, logs=None):
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)


def run(callbacks, **kwargs):
    keras.utils.set_random_seed(2)
    encoder = TransformerEncoder(small.VOCABULARY_SIZE, 8, depth=1, num_heads=2)
    report = error = None
    try:
        options = {"batch_size": 6, "verbose": 0, "callbacks": callbacks, **kwargs}
        report = pretrain(encoder, small.rows(24), 3, **options)
    except KeyboardInterrupt as interrupt:
        error = interrupt
    return encoder, report, error


def test_ctrl_c_loses_nothing(tmp_path, capsys):
    whole, expected, _ = run([])
    said = []
    checkpoint = ResumableCheckpoint(tmp_path, resume=True)
    cut, report, error = run([checkpoint, InterruptSafely(said.append), CtrlC(6)])
    assert report is None and "interrupted, and saved" in str(error)
    assert not cut.frozen and said[-1].startswith("Stopped at step 6; saved")
    assert not small.all_equal(small.values(cut.variables), small.values(whole.variables))
    again, report, error = run([ResumableCheckpoint(tmp_path, resume=True)])
    assert error is None and again.frozen
    assert report == expected
    assert small.all_equal(small.values(again.variables), small.values(whole.variables))


@pytest.mark.parametrize(
    "change, message",
    [
        ({"mask_probability": 0.3}, "other settings: mask_probability: 0.15, here 0.3"),
        ({"seed": 1}, "other data: seed: 0, here 1"),
    ],
)
def test_another_run_is_refused(tmp_path, change, message):
    run([ResumableCheckpoint(tmp_path)])
    with pytest.raises(ValueError, match=message):
        run([ResumableCheckpoint(tmp_path, resume=True)], **change)


def test_callbacks_of_generators_alone_say_so(tmp_path):
    with pytest.raises(ValueError, match="`TrainingLog` needs a model with `step_report`"):
        run([TrainingLog(tmp_path / "log.csv")])


def test_names_that_moved_are_found_where_they_were():
    assert encoders.pretrain is training.pretrain
    assert encoders.MaskedTokenModel is training.MaskedTokenModel
    with pytest.raises(AttributeError, match="has no attribute 'pretrained'"):
        encoders.pretrained  # noqa: B018
    assert np.isfinite(run([])[1]["latent_std"])


def read_from_latents(encoder, rows, held_out):
    """Share of held-out tokens that a linear probe reads from their latents."""

    def data(rows):
        valid = rows["is_valid"]
        latents = encoder(rows["token_ids"], attention_mask=valid)
        latents = keras.ops.convert_to_numpy(latents)[valid]
        return np.c_[latents, np.ones(len(latents))], rows["token_ids"][valid]

    x, y = data(rows)
    probe = np.linalg.lstsq(x, np.eye(encoder.vocabulary_size)[y], rcond=None)[0]
    x, y = data(held_out)
    return ((x @ probe).argmax(axis=1) == y).mean()


@pytest.mark.backend_free
def test_latents_keep_the_words_that_stand_there():
    """The masked loss alone lets an encoder forget which of several fitting words it saw."""
    train, held_out = testing.TemplateGrammar().split(800, 100, seed=0)
    preprocessor = testing.dummy_preprocessor()
    train, held_out = dict(preprocessor(train)), dict(preprocessor(held_out))
    shares = {}
    for weight in (0.0, 0.3):
        keras.utils.set_random_seed(0)
        encoder = TransformerEncoder(preprocessor.vocabulary_size, 32, depth=1, num_heads=2)
        pretrain(encoder, train, epochs=8, verbose=0, unmasked_weight=weight)
        shares[weight] = read_from_latents(encoder, train, held_out)
    assert shares[0.3] > 0.85, shares
    assert shares[0.0] < shares[0.3] - 0.1, shares
