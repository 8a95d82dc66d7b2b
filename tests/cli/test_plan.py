"""Recipes and overrides: what a training is to do, and what is refused."""

import dataclasses

import pytest

from keras_elf.cli.plan import Plan, make_plan

pytestmark = pytest.mark.backend_free


def test_overrides_come_before_the_recipe_and_flags_before_both(tmp_path):
    recipe = tmp_path / "small.yaml"
    recipe.write_text("# a comment\ndata: a.txt\nepochs: 3\nbatch_size: 16\ncondition: null\n")
    plan = make_plan(recipe, ["epochs=5", "learning_rate=2e-3"], data="b.txt", seed=None)
    assert (plan.data, plan.epochs, plan.batch_size) == ("b.txt", 5, 16)
    assert plan.condition is None and plan.peak_learning_rate == 2e-3
    assert plan.seed == Plan.seed


@pytest.mark.parametrize("recipe", ["elf_b_owt", "presets/elf_b_owt"])
def test_a_published_preset_is_a_recipe(recipe):
    plan = make_plan(recipe, ["batch_size=64"], data="corpus.jsonl")
    assert plan.preset == "elf_b_owt" and plan.from_scratch
    assert (plan.epochs, plan.warmup_epochs, plan.decay) == (5, 0.5, "constant")
    assert plan.ema_momentum == 0.9999
    # The published learning rate grows with the batch.
    assert plan.peak_learning_rate == 2.5e-4
    assert make_plan(recipe, data="x").peak_learning_rate == 2e-3


def test_a_plan_is_json_and_back():
    plan = make_plan(None, ["warmup_epochs=0.5"], data="a")
    assert Plan(**dataclasses.asdict(plan)) == plan


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["epoch=3"], "Did you mean 'epochs'"),
        (["learning-rate=3"], "Did you mean 'learning_rate'"),
        (["epochs"], "written name=value"),
        (["=3"], "`setting` must be one of"),
        (["epochs=three"], "`epochs` must be a whole number >= 1. Received: 'three'"),
        (["epochs=0"], "`epochs` must be a whole number >= 1"),
        (["epochs=2.5"], "`epochs` must be a whole number"),
        (["epochs=null"], "`epochs`"),
        (["batch_size=-4"], "`batch_size`"),
        (["batch_size=true"], "`batch_size`"),
        (["learning_rate=fast"], "`learning_rate` must be a finite number"),
        (["learning_rate=.inf"], "`learning_rate` must be a finite number"),
        (["learning_rate=-1"], "`learning_rate`"),
        (["from_scratch=maybe"], "`from_scratch` must be one of"),
        (["from_scratch=true"], "needs a `preset`"),
        (["decay=quick"], "`decay` must be one of"),
        (["dtype=float16"], "`dtype` must be one of"),
        (["output=3"], "`output` must be text"),
        (["epochs=[1, 2"], "not valid YAML"),
        (["target=!!python/object/apply:os.system ['true']"], "not valid YAML"),
    ],
)
def test_wrong_settings(overrides, message):
    with pytest.raises(ValueError) as caught:
        make_plan(None, overrides, data="a.txt")
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"epochs: 3\nepoch: 4\n", "Did you mean 'epochs'"),
        (b"- 1\n- 2\n", "must hold settings"),
        (b"", "must hold settings"),
        (b"just words", "must hold settings"),
        (b"a: [", "not valid YAML"),
        (b"\xff\xfe", "not UTF-8"),
        (b"epochs: !!python/name:os.system\n", "not valid YAML"),
        (b"[" * 300, "not valid YAML"),
        (b"3: 4\n", "`setting` must be one of"),
    ],
)
def test_wrong_recipe_files(tmp_path, content, message):
    path = tmp_path / "recipe.yaml"
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        make_plan(path, data="a.txt")
    assert message in str(caught.value) and "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("recipe", "message"),
    [("nowhere.yaml", "no preset named"), ("elf_b_pd_owt", "distilled"), ("elf_b_ow", "Did you")],
)
def test_recipes_that_are_none(recipe, message):
    with pytest.raises(ValueError, match=message):
        make_plan(recipe, data="a.txt")


def test_something_to_train_on_is_needed():
    with pytest.raises(ValueError, match="`data` must say what to train on"):
        make_plan()
