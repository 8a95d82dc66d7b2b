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
        (["epochs=three"], "`epochs` must be a whole number in [1, 2147483647]. Received: 'three'"),
        (["epochs=0"], "`epochs` must be a whole number in [1,"),
        (["epochs=2.5"], "`epochs` must be a whole number"),
        (["num_steps=null"], "`num_steps`"),
        (["packing=rows"], "`packing` must be one of"),
        (["tokenizer=words"], "`tokenizer` must be one of"),
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
        (["epochs=3", "epochs=4"], "`epochs` is given twice"),
        (["data=b.txt"], "`data` is given twice"),
        (["epochs=99999999999999999999"], "`epochs` must be a whole number in"),
        (["batch_size=2147483648"], "`batch_size` must be"),
        (["depth=100000"], "`depth` must be a whole number in [1, 1000]"),
        (["num_heads=0"], "`num_heads` must be"),
        (["encoder_depth=0"], "`encoder_depth` must be"),
        (["encoder_steps=0"], "`encoder_steps` must be"),
        (["vocabulary_size=9223372036854775808"], "`vocabulary_size` must be"),
        (["seed=-1"], "`seed` must be"),
        (["seed=4294967296"], "`seed` must be"),
        (["ema_momentum=1.5"], "`ema_momentum` must be"),
        (["ema_momentum=1"], "the averages would never move"),
        (["global_clipnorm=0"], "no weight would ever move"),
        (["label_drop_probability=2"], "`label_drop_probability` must be"),
        (["encoder=t5-small"], "`encoder` is for `from_scratch`"),
        (["preset=my_elf", "depth=3", "num_heads=2"], "my_elf has its own depth, num_heads"),
        (["epochs=[1, 2]"], "`epochs` must be one value. Received a list"),
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
        (b"epochs: 3\nepochs: 4\n", "sets epochs twice"),
        (b"epochs: 3\n\tdepth: 4\n", "not valid YAML"),
        (b"target: &a [*a]\n", "`target` must be one value"),
        # Each line stands for nine of the one before: shown, it would fill the memory.
        (
            b"target: [&a [x], "
            + b", ".join(
                b"&%c [%s]" % (c, b", ".join([b"*%c" % (c - 1)] * 9)) for c in b"bcdefghij"
            )
            + b"]\n",
            "`target` must be one value",
        ),
        (b"target: 2020-01-01\n", "`target` must be text"),
        (b"target: !!set {a, b}\n", "`target` must be one value"),
        (b"target: !!binary aGVsbG8=\n", "`target` must be text"),
        (b"target: a\0b\n", "not valid YAML"),
        (b"target: *nope\n", "not valid YAML"),
        (b"? [a, b]\n: 3\n", "not valid YAML"),
        (b"data: a\n---\ndata: b\n", "not valid YAML"),
        (b"model:\n  depth: 3\n", "`setting` must be one of"),
        (b"\x89PNG\r\n\x1a\n\0", "not UTF-8"),
        (b"# only a comment\n", "must hold settings"),
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
