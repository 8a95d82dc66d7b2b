"""From a bare name to text, against a hub that serves the reference checkpoints."""

import json
import os
import pathlib
import runpy
import types

import huggingface_hub
import pytest
from huggingface_hub import constants

import keras_elf.hub
from keras_elf.hub import HubError
from keras_elf.models import ELFBackbone, ELFGenerator, ELFPreprocessor
from keras_elf.presets import bundled
from tests.checkpoints import toy_preset
from tests.hub.client import fresh_session, pointed_at
from tests.hub.server import loopback_hub
from tests.models import small

NAME = toy_preset.NAME
EXAMPLES = pathlib.Path(__file__).parents[2] / "examples"


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served")
    toy_preset.write_toy_preset(folder / NAME)
    with loopback_hub(toy_preset.served_files(folder)) as hub, fresh_session():
        yield hub, folder / NAME


@pytest.fixture
def hub(served, tmp_path, monkeypatch):
    """The hub, with empty caches, and the toy among the published models."""
    server, directory = served
    server.behave()
    server.requests.clear()
    known = {**bundled.directories(), NAME: directory}
    monkeypatch.setattr(bundled, "directories", lambda: known)
    monkeypatch.setenv("KERAS_HOME", str(tmp_path / "keras"))
    with pointed_at(server, tmp_path / "hf", monkeypatch):
        yield server


def cached(tmp_path):
    """Names of the finished presets in Keras's home."""
    root = tmp_path / "keras/keras_elf/presets" / NAME
    return sorted(p.name for p in root.iterdir() if p.is_dir()) if root.is_dir() else []


def test_from_a_name_to_text(hub, tmp_path, monkeypatch):
    model = ELFGenerator.from_preset(NAME)
    text = model.generate(num_samples=2, seed=0, verbose=False)
    assert len(text) == 2 and all(isinstance(t, str) for t in text)
    assert model.sampling.num_steps == 2 and model.sampling.sampler.gamma == 1.5
    assert model.backbone.count_params() == ELFGenerator.presets[NAME]["parameters"]
    asked = {request.path for request in hub.requests}
    assert any(path.endswith("/checkpoint_3") for path in asked)
    # An older checkpoint, of no use, is not downloaded.
    assert not any("checkpoint_2" in path or "README" in path for path in asked)
    assert cached(tmp_path) == ["main-ema"]
    manifest = json.loads(
        (tmp_path / f"keras/keras_elf/presets/{NAME}/main-ema/manifest.json").read_text()
    )
    assert (manifest["preset"], manifest["repository"]) == (NAME, toy_preset.WEIGHTS)
    assert len(manifest["commit"]) == 40
    assert "spiece.model" in manifest["encoder"]["sha256"]
    # Text is written without an encoder, so none was downloaded.
    assert not any("safetensors" in path for path in asked)
    assert model.latent_encoder.deferred is not None

    # From now on nothing is asked of the hub, whatever it would say.
    hub.requests.clear()
    hub.fail_with(500)
    again = ELFGenerator.from_preset(NAME)
    assert again.generate(num_samples=2, seed=0, verbose=False) == text
    backbone = ELFBackbone.from_preset(NAME)
    assert small.all_equal(backbone.get_weights(), model.backbone.get_weights())
    assert hub.requests == []

    # The encoder comes when it is needed, and the message says what to do where it cannot.
    with pytest.raises(HubError, match="again"):
        again.encoder  # noqa: B018
    hub.behave()
    latents = again.encoder.variables
    assert any("model.safetensors" in request.path for request in hub.requests)
    hub.requests.clear()
    assert small.all_equal(small.values(model.encoder.variables), small.values(latents))
    assert not any("/resolve/" in request.path for request in hub.requests)
    model.save_to_preset(tmp_path / "whole")
    ELFGenerator.from_preset(NAME).save_to_preset(tmp_path / "named")
    hub.requests.clear()
    hub.fail_with(500)
    for name in ("whole", "named"):
        saved = ELFGenerator.from_preset(tmp_path / name)
        assert saved.generate(num_samples=2, seed=0, verbose=False) == text
    assert (tmp_path / "named/encoder.json").is_file()
    assert not (tmp_path / "whole/encoder.json").exists()
    values = small.values(ELFGenerator.from_preset(tmp_path / "whole").encoder.variables)
    assert hub.requests == [] and small.all_equal(values, small.values(latents))

    # Another kind of weights is made offline from what the client keeps.
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    raw = ELFGenerator.from_preset(NAME, weights="raw")
    assert hub.requests == [] and cached(tmp_path) == ["main-ema", "main-raw"]
    assert small.error_between(raw.backbone.get_weights(), model.backbone.get_weights()) > 1e-3


def test_without_weights_only_the_vocabulary_is_downloaded(hub, tmp_path):
    model = ELFGenerator.from_preset(NAME, load_weights=False, preprocessor=None)
    assert hub.requests == [] and model.preprocessor is None
    model = ELFGenerator.from_preset(NAME, load_weights=False)
    preprocessor = ELFPreprocessor.from_preset(NAME)
    assert model.preprocessor.get_config() == preprocessor.get_config()
    assert preprocessor(["the heaven"])["token_ids"].shape == (1, 12)
    paths = {request.path for request in hub.requests if "/resolve/" in request.path}
    assert {path.rsplit("/", 1)[1] for path in paths} <= {"spiece.model", "tokenizer_config.json"}
    assert cached(tmp_path) == ["tokenizer"]


@pytest.mark.slow
def test_an_interrupted_download_goes_on(hub, tmp_path):
    hub.cut_after(200_000, times=1)
    ELFGenerator.from_preset(NAME)
    resumed = [r.headers.get("range") or r.headers.get("Range") for r in hub.requests]
    assert any(r and r.startswith("bytes=") and not r.startswith("bytes=0-") for r in resumed)


@pytest.mark.slow
def test_a_corrupted_file_is_refused(hub, tmp_path):
    hub.corrupt("checkpoint_3")
    with pytest.raises(HubError, match="checkpoint_3.*(sha256|hash)"):
        ELFGenerator.from_preset(NAME)
    assert cached(tmp_path) == []
    hub.behave()
    assert ELFGenerator.from_preset(NAME).backbone.depth == 4


@pytest.mark.parametrize(
    ("status", "message"),
    [(401, "HF_TOKEN"), (403, "access"), (404, "not a repository"), (429, "Wait"), (500, "again")],
)
def test_refusals_say_what_to_do(hub, tmp_path, status, message):
    hub.fail_with(status)
    with pytest.raises(HubError, match=message):
        ELFGenerator.from_preset(NAME)
    assert cached(tmp_path) == []


def test_no_network_and_no_cache_names_two_ways_out(hub, tmp_path, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    for name in (NAME, "elf_b_owt"):
        with pytest.raises(HubError) as caught:
            ELFGenerator.from_preset(name)
        assert "import_checkpoint" in str(caught.value) and "elf_nano_kjv" in str(caught.value)
    with pytest.raises(HubError, match="`preprocessor=None`"):
        ELFGenerator.from_preset(NAME, load_weights=False)
    assert hub.requests == [] and cached(tmp_path) == []


@pytest.mark.slow
def test_a_full_disk_leaves_no_broken_preset(hub, tmp_path, monkeypatch):
    """The conversion fails in the middle of writing; the next call succeeds."""
    from keras_elf.checkpoints import manifest

    def full(*args, **kwargs):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(manifest, "write", full)
        with pytest.raises((HubError, ValueError), match="[Nn]o space"):
            ELFGenerator.from_preset(NAME)
    assert cached(tmp_path) == []
    leftovers = list((tmp_path / "keras").rglob("*.h5"))
    assert leftovers == []
    assert ELFGenerator.from_preset(NAME).backbone.depth == 4


@pytest.mark.slow
def test_published_and_loaded_by_handle(hub, tmp_path, monkeypatch):
    """The example uploads through keras_hub; `hf://` loads under a local directory's checks."""
    ELFGenerator.from_preset(NAME).save_to_preset(tmp_path / "mine")
    content = {}

    def upload_folder(repo_id, folder_path):
        files = [p for p in pathlib.Path(folder_path).rglob("*") if p.is_file()]
        content.update({str(p.relative_to(folder_path)): p.read_bytes() for p in files})
        hub.update(repo_id, content)

    # The writing half of the hub's protocol is not spoken on loopback.
    url = types.SimpleNamespace(repo_id="user/mine")
    monkeypatch.setattr(huggingface_hub, "create_repo", lambda repo_id, exist_ok: url)
    monkeypatch.setattr(huggingface_hub, "file_exists", lambda repo_id, filename: True)
    monkeypatch.setattr(huggingface_hub, "upload_folder", upload_folder)
    example = runpy.run_path(str(EXAMPLES / "publish_to_a_hub.py"))
    assert example["main"]([str(tmp_path / "mine"), "hf://user/mine"]) == 0
    assert b"72,269 parameters" in content["README.md"]

    model = ELFGenerator.from_preset("hf://user/mine")
    assert model.backbone.depth == 4
    with pytest.raises(HubError, match="elf_b_owt|checkpoint"):
        ELFGenerator.from_preset(f"hf://{toy_preset.WEIGHTS}")
    bomb = json.loads(content["task.json"])
    bomb["config"]["sampler"] = {"module": "os", "class_name": "system", "config": "true"}
    hub.update("user/bomb", {**content, "task.json": json.dumps(bomb).encode()})
    with pytest.raises(ValueError, match="not a registered class"):
        ELFGenerator.from_preset("hf://user/bomb")


def test_revisions_are_kept_apart(hub, tmp_path):
    with pytest.raises(HubError, match="revision 'v9'"):
        ELFGenerator.from_preset(NAME, revision="v9")
    with pytest.raises(ValueError, match="`revision` and `weights` are for presets"):
        ELFGenerator.from_preset(os.fspath(tmp_path), revision="v9")
    assert keras_elf.hub.keras_home_directory().startswith(str(tmp_path))
