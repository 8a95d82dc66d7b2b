"""How much of the text the latent space can hold, while a model trains."""

import warnings

import keras

from keras_elf import checks
from keras_elf.training.callbacks.fit_callback import FitCallback

ACCURACY = "reconstruction_accuracy"


# A latent space off by less than this factor trains as well as any.
MOST_SPREAD = 2.5


@keras.saving.register_keras_serializable(package="keras_elf")
class ReconstructionAccuracy(FitCallback):
    """Adds `reconstruction_accuracy` to the logs of each epoch.

    It is the share of tokens that come back when texts are encoded and read off their clean
    latents again (`ELFGenerator.reconstruct`): a model can write no better than this. It
    costs one forward pass of the texts an epoch. A low accuracy at the end is told in a
    warning.

    Args:
        texts: list of str, or rows as the preprocessor makes them. A few dozen are enough.
        warn_below: float in [0, 1]. Accuracy below which the end of `fit` warns. Defaults to
            `0.9`.

    Raises:
        ValueError: for no texts or a number outside [0, 1].
    """

    def __init__(self, texts, warn_below=0.9):
        super().__init__()
        if texts is None or not len(texts):
            raise ValueError("`texts` must hold at least one text. Received none")
        self.texts = texts
        self.warn_below = checks.probability("warn_below", warn_below)
        self.accuracy = None

    def before_fit(self, run):
        run.require(self, "reconstruct")
        latents = run.model.encode(self.texts)
        mean, spread = float(latents.mean()), float(latents.std())
        if not (1 / MOST_SPREAD < spread < MOST_SPREAD and abs(mean) < MOST_SPREAD):
            warnings.warn(
                f"The latents have a mean of {mean:.2g} and a standard deviation of {spread:.2g}; "
                "the noise is made for 0 and 1. Pass `latent_mean` and `latent_std` to "
                "ELFGenerator: `keras_elf.encoders.pretrain` returns them, and "
                "`keras_elf.encoders.latent_statistics(encoder, rows)` measures them.",
                UserWarning,
                stacklevel=2,
            )

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        self.accuracy = self.model.reconstruct(self.texts, return_accuracy=True)
        if logs is not None:
            logs[ACCURACY] = self.accuracy

    def on_train_end(self, logs=None):
        if self.accuracy is not None and self.accuracy < self.warn_below:
            warnings.warn(
                f"Only {100 * self.accuracy:.0f} % of the tokens come back when texts are encoded "
                "and decoded again, so the model cannot write better than that. Train longer; if "
                "it stays, the latents of different words lie too close: give the encoder more "
                "width or more epochs.",
                UserWarning,
                stacklevel=2,
            )

    def get_config(self):
        return {"texts": self.texts, "warn_below": self.warn_below}
