"""Tests ``ckplan.torch.export``: the file, what the program plans of it, and what is refused."""

from __future__ import annotations

import copy
import importlib.util
import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

import ckplan.torch

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxscript")


class Mixed(nn.Module):
    """Has layers that exporters fold or drop outside training, and a reshape of the batch."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        self.norm, self.dropout = nn.LayerNorm(8 * 8 * 8), nn.Dropout(0.1)
        self.head = nn.Linear(8 * 8 * 8, 10)

    def forward(
        self, images: Tensor, labels: Tensor | None = None, scale: float = 1.0, **more: Tensor
    ) -> Tensor:
        rows = self.body(images).reshape(images.shape[0], -1)
        scores = self.head(self.dropout(self.norm(rows))) * scale
        for tensor in more.values():
            scores = scores + tensor
        return scores if labels is None else F.cross_entropy(scores, labels)


class Rows(nn.Module):
    """Computes something of rows of 12 numbers, by a function of them and of a linear layer."""

    def __init__(self, compute):
        super().__init__()
        self.layer = nn.Linear(12, 12)
        self.compute = compute

    def forward(self, x: Tensor) -> Tensor:
        return self.compute(x, self.layer)


IMAGES = torch.zeros(4, 3, 8, 8)
ROWS = torch.zeros(4, 12)


def read(path: Path) -> onnx.ModelProto:
    return onnx.load(path, load_external_data=False)


def shapes(path: Path) -> dict[str, list[int | str]]:
    return {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in read(path).graph.input
    }


def nodes(path: Path, operator: str) -> list[onnx.NodeProto]:
    return [node for node in read(path).graph.node if node.op_type == operator]


def scopes(node: onnx.NodeProto) -> list[str]:
    (scopes,) = [p.value for p in node.metadata_props if p.key == "pkg.torch.onnx.name_scopes"]
    return json.loads(scopes.replace("'", '"'))


def graph(path: Path) -> onnx.ModelProto:
    """Returns the model without the numbers in it, which are random."""
    model = read(path)
    for tensor in model.graph.initializer:
        tensor.ClearField("raw_data")
    return model


def keep_all_peak(path: Path, size: int) -> int:
    return ckplan.plan(path, dim={"N": size}, algo="keep-all")["result"]["peak_bytes"]


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "model.onnx"
    assert ckplan.torch.export(Mixed(), IMAGES, path) == path
    return path


def test_the_program_plans_the_file_for_any_batch(exported):
    path = exported
    assert shapes(path) == {"images": ["N", 3, 8, 8]}
    listed = ckplan.invocation.run_program("inspect", str(path), "-D", "N=8", "--format=json")
    assert listed.exit_code == 0
    assert json.loads(listed.output)["dims"] == {"N": 8}
    plan = ckplan.plan(path, budget="80%", dim={"N": 8})
    assert plan["result"]["peak_bytes"] <= 0.8 * plan["result"]["baseline_peak_bytes"]
    peaks = [keep_all_peak(path, size) for size in (8, 16, 24)]
    assert peaks[2] - peaks[1] == peaks[1] - peaks[0]
    assert 0 <= 2 * peaks[0] - peaks[1] < 1024  # Only the statistics of 8 channels do not grow.


def test_nothing_of_training_is_missing_and_nodes_have_modules(exported):
    (normalisation,) = nodes(exported, "BatchNormalization")
    assert scopes(normalisation)[1:3] == ["body", "body.1"]
    (dropout,) = nodes(exported, "Dropout")
    assert len(dropout.input) == 3  # The last one says that it is training.
    (layer,) = nodes(exported, "LayerNormalization")
    assert scopes(layer)[1] == "norm"


def test_the_mode_does_not_count_and_nothing_in_the_model_changes(exported, tmp_path):
    model = Mixed()
    state, numbers = copy.deepcopy(model.state_dict()), torch.get_rng_state()
    model.eval()
    path = ckplan.torch.export(model, IMAGES, tmp_path / "model.onnx")
    assert not any(module.training for module in model.modules())
    assert graph(path) == graph(exported)
    assert torch.equal(numbers, torch.get_rng_state())
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, state[name]), name


def test_a_module_in_evaluation_mode_in_a_model_that_trains_stays_so(tmp_path):
    model = Mixed()
    model.dropout.eval()
    path = ckplan.torch.export(model, IMAGES, tmp_path / "model.onnx")
    assert not nodes(path, "Dropout")
    assert model.training
    assert not model.dropout.training


def test_a_refused_model_has_its_mode_again(tmp_path):
    model = Rows(lambda x, layer: layer(x.view(4, -1))).eval()
    with pytest.raises(ckplan.torch.ExportError):
        ckplan.torch.export(model, ROWS, tmp_path / "model.onnx")
    assert not any(module.training for module in model.modules())


def test_arguments_by_name_and_those_that_are_no_tensors(tmp_path):
    labels = torch.zeros(4, dtype=torch.long)
    kwargs = {"bias": torch.zeros(4, 10), "scale": 2.0, "labels": labels}
    path = ckplan.torch.export(Mixed(), (IMAGES,), tmp_path / "m.onnx", kwargs=kwargs, batch="S")
    assert shapes(path) == {"images": ["S", 3, 8, 8], "labels": ["S"], "bias": ["S", 10]}


def test_a_dictionary_may_be_the_last_argument(tmp_path):
    model = Rows(lambda batch, layer: layer(batch["a"]) + batch["b"][0])
    batch = {"a": ROWS[:1], "b": [ROWS[:1], 3, None]}  # A batch of one stays open, too.
    path = ckplan.torch.export(model, (batch,), tmp_path / "model.onnx")
    assert list(shapes(path).values()) == [["N", 12], ["N", 12]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"batch": None}, [4, 3, 8, 8]),
        ({"dims": {"images": {}}}, [4, 3, 8, 8]),
        ({"dims": {"images": {0: "B", 2: "H", 3: "W"}}}, ["B", 3, "H", "W"]),
    ],
)
def test_open_dimensions_can_be_chosen(options, expected, tmp_path):
    model = Rows(lambda images, _: F.relu(images).mean((2, 3)))
    model.forward = lambda images: model.compute(images, None)
    path = ckplan.torch.export(model, IMAGES, tmp_path / "model.onnx", **options)
    assert shapes(path) == {"images": expected}


def test_dims_leave_other_arguments_their_batch(tmp_path):
    kwargs = {"table": torch.zeros(1, 10)}
    options = {"kwargs": kwargs, "dims": {"table": {}}}
    path = ckplan.torch.export(Mixed(), IMAGES, tmp_path / "model.onnx", **options)
    assert shapes(path) == {"images": ["N", 3, 8, 8], "table": [1, 10]}


def test_two_names_of_sizes_that_must_be_equal_are_warned_of(tmp_path):
    options = {"kwargs": {"bias": torch.zeros(4, 10)}, "dims": {"bias": {0: "M"}}}
    with pytest.warns(ckplan.PlanWarning, match='"M" of bias always equals "N"'):
        path = ckplan.torch.export(Mixed(), IMAGES, tmp_path / "model.onnx", **options)
    assert shapes(path)["bias"] == ["N", 10]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dims": {"image": {0: "N"}}}, ValueError, "unknown argument 'image'; .* images, bias"),
        ({"dims": {"images": {4: "N"}}}, ValueError, "no tensor in images has a dimension 4"),
        ({"dims": {"images": {-1: "W"}}}, TypeError, "takes names by dimension"),
        ({"dims": {"images": ["N"]}}, TypeError, "takes names by dimension"),
        ({"dims": {"images": {0: "a b"}}}, ValueError, "'a b' is not a valid name of a dimension"),
        ({"batch": "2N"}, ValueError, "'2N' is not a valid name of a dimension"),
        ({}, ValueError, r'"N" is 4 in images and 1 in bias: .*dims={"bias": {}}'),
        ({"kwargs": {"images": IMAGES}}, TypeError, "do not match Mixed.forward: multiple values"),
    ],
)
def test_names_and_arguments_that_do_not_fit_are_refused(options, error, message, tmp_path):
    options = {"kwargs": {"bias": torch.zeros(1, 10)}, **options}
    with pytest.raises(error, match=message):
        ckplan.torch.export(Mixed(), IMAGES, tmp_path / "model.onnx", **options)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("model", "args", "message"),
    [
        (F.relu, IMAGES, "model must be a torch.nn.Module, not function"),
        (nn.ReLU(), {"input": IMAGES}, "args must be a tuple"),
        (nn.ReLU(), (3,), "no argument of forward contains a tensor"),
        (nn.ReLU(), torch.tensor(3.0), "batch=None"),
    ],
)
def test_what_is_no_model_and_no_arguments_is_refused(model, args, message, tmp_path):
    with pytest.raises((TypeError, ValueError), match=message):
        ckplan.torch.export(model, args, tmp_path / "model.onnx")


@pytest.mark.parametrize(
    ("outputs", "expected"),
    [
        (None, ["linear", "relu", "argmax"]),
        (["scores"], ["linear"]),
        (["more"], ["relu", "argmax"]),
        (["more.0", "scores"], ["linear", "relu"]),
    ],
)
def test_a_step_ends_where_it_is_asked_to(outputs, expected, tmp_path):
    def compute(x: Tensor, layer: nn.Module) -> dict[str, object]:
        scores = layer(x)
        return {"scores": scores, "more": (scores.relu(), scores.argmax(1)), "none": None}

    path = ckplan.torch.export(Rows(compute), ROWS, tmp_path / "model.onnx", outputs=outputs)
    assert [output.name for output in read(path).graph.output] == expected
    trained = [name for name in expected if name != "argmax"]
    graph = json.loads(
        ckplan.invocation.run_program("graph", str(path), "-D", "N=4", "--no-restore").output
    )
    names = {tensor["id"]: tensor["name"] for tensor in graph["tensors"]}
    assert [names[output] for output in graph["outputs"]] == trained


def test_a_tuple_has_positions_and_what_is_not_there_is_refused(tmp_path):
    model = Rows(lambda x, layer: (layer(x), layer(x).relu()))
    path = ckplan.torch.export(model, ROWS, tmp_path / "model.onnx", outputs=[1])
    assert [output.name for output in read(path).graph.output] == ["relu"]
    for outputs, message in (([2], "forward returns no 2, but 0, 1"), ([], "outputs is empty")):
        with pytest.raises(ValueError, match=message):
            ckplan.torch.export(model, ROWS, tmp_path / "other.onnx", outputs=outputs)
    single = Rows(lambda x, layer: layer(x))
    ckplan.torch.export(single, ROWS, tmp_path / "one.onnx", outputs=[0])


@torch.library.custom_op("ckplan_test::pair", mutates_args=())
def pair(x: Tensor, eps: float, other: Tensor | None, axes: list[int]) -> tuple[Tensor, Tensor]:
    return x + eps, x.sum(axes)


@pair.register_fake
def _(x: Tensor, eps: float, other: Tensor | None, axes: list[int]) -> tuple[Tensor, Tensor]:
    return torch.empty_like(x), x.new_empty(x.shape[0])


def test_operators_of_your_own_are_nodes_that_ckplan_plans(tmp_path):
    def compute(x: Tensor, layer: nn.Module) -> Tensor:
        moved, sums = pair(layer(x), 0.5, None, [1])
        return moved.exp() + sums[:, None]

    model = Rows(compute)
    path = tmp_path / "model.onnx"
    ckplan.torch.export(model, ROWS, path, operators=["ckplan_test::pair"])
    (node,) = [node for node in read(path).graph.node if node.domain == "ckplan_test"]
    assert (node.op_type, len(node.output)) == ("pair", 2)
    assert {attribute.name for attribute in node.attribute} == {"eps", "axes"}

    def reads(*flags: str) -> list[int]:
        run = ckplan.invocation.run_program("graph", str(path), "-D", "N=4", "--no-restore", *flags)
        (own,) = [n for n in json.loads(run.output)["nodes"] if n["op"] == "ckplan_test.pair"]
        return own["backward_reads"]

    assert len(reads()) == 3
    assert len(reads("--op-shape", "ckplan_test::pair=like:0|[0.0];reads=x0")) == 1
    with pytest.raises(ckplan.torch.ExportError, match="ckplan_test"):
        ckplan.torch.export(model, ROWS, path)
    for name in ("ckplan_test::none", "pair"):
        with pytest.raises(ValueError, match="PyTorch has no operator"):
            ckplan.torch.export(model, ROWS, path, operators=[name])


def test_a_batch_that_is_a_constant_is_refused_with_the_line(tmp_path):
    model = Rows(lambda x, layer: layer(x.view(4, -1)))
    line = model.compute.__code__.co_firstlineno
    with pytest.raises(ckplan.torch.ExportError) as caught:
        ckplan.torch.export(model, ROWS, tmp_path / "model.onnx")
    assert "only be exported for N=4" in str(caught.value)
    assert f"With N=8 test_exporting.py, line {line}, raises: " in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert not list(tmp_path.iterdir())
    path = ckplan.torch.export(model, ROWS, tmp_path / "model.onnx", batch=None)
    assert shapes(path) == {"x": [4, 12]}


def test_a_loop_over_the_batch_is_refused(tmp_path):
    model = Rows(lambda x, layer: sum(layer(row) for row in x))
    with pytest.raises(ckplan.torch.ExportError, match="only be exported for N=4.*PyTorch says: "):
        ckplan.torch.export(model, ROWS, tmp_path / "model.onnx")


def test_of_several_open_dimensions_pytorch_names_the_constant_one(tmp_path):
    class Pair(nn.Linear):
        def forward(self, a: Tensor, b: Tensor) -> Tensor:
            return super().forward(a if b.shape[0] == 3 else b)

    message = r"only be exported with some of N, M fixed: .*static shape of 3 .*'b'"
    options = {"dims": {"b": {0: "M"}}}
    with pytest.raises(ckplan.torch.ExportError, match=message):
        ckplan.torch.export(Pair(12, 12), (ROWS, ROWS[:3]), tmp_path / "model.onnx", **options)


def test_a_reshape_to_the_batch_of_the_arguments_is_warned_of(tmp_path):
    class Sums(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            return super().forward(x).view(4, -1).sum(1)

    model, line = Sums(12, 12), Sums.forward.__code__.co_firstlineno + 1
    with pytest.warns(ckplan.PlanWarning) as caught:
        ckplan.torch.export(model, ROWS, tmp_path / "model.onnx")
    (warning,) = [str(w.message) for w in caught if w.category is ckplan.PlanWarning]
    assert f"test_exporting.py, line {line}, `return super().forward(x).view(4, -1)" in warning
    assert 'fixes the dimension "N" at 4' in warning


def test_other_reshapes_are_not_warned_of(tmp_path, recwarn):
    class Reshapes(nn.Linear):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            y = super().forward(x)
            rows = y.view(x.shape[0], 3, 4).view(int(x.shape[0]), -1) + y.view(-1, 4, 3).flatten(1)
            return rows, y.t().reshape(4, 3, -1), self.weight.view(4, -1).sum() * x

    path = ckplan.torch.export(Reshapes(12, 12), ROWS, tmp_path / "model.onnx")
    assert shapes(path) == {"x": ["N", 12]}
    assert not [w for w in recwarn if w.category is not DeprecationWarning]


def test_a_model_that_pytorch_cannot_export_is_refused_with_the_line(tmp_path):
    model = Rows(lambda x, layer: torch.linalg.eigvals(layer(x)).real)
    line = model.compute.__code__.co_firstlineno
    message = f"PyTorch cannot export Rows: test_exporting.py, line {line}, raises: .*square"
    with pytest.raises(ckplan.torch.ExportError, match=message):
        ckplan.torch.export(model, ROWS, tmp_path / "model.onnx")
    assert not list(tmp_path.iterdir())


def test_an_operation_that_onnx_does_not_have_is_named(tmp_path):
    @torch.library.custom_op("ckplan_tests::strange", mutates_args=())
    def strange(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    strange.register_fake(torch.empty_like)
    model = Rows(lambda x, layer: strange(layer(x)))
    with pytest.raises(ckplan.torch.ExportError, match="^PyTorch cannot export Rows: .*strange"):
        ckplan.torch.export(model, ROWS, tmp_path / "model.onnx")


def test_weights_are_left_out_unless_they_are_asked_for(exported, tmp_path):
    model, lean = Mixed(), exported
    whole = ckplan.torch.export(model, IMAGES, tmp_path / "whole.onnx", weights=True)
    assert lean.stat().st_size < 28_000 < whole.stat().st_size
    assert [path.name for path in tmp_path.iterdir()] == ["whole.onnx"]
    (weight,) = [t for t in read(whole).graph.initializer if t.name == "head.weight"]
    assert torch.equal(torch.tensor(onnx.numpy_helper.to_array(weight)), model.head.weight)
    plans = [ckplan.plan(path, budget="80%", dim={"N": 8}) for path in (lean, whole)]
    for plan in plans:
        del plan["model"]["name"]
    assert plans[0] == plans[1]


def test_a_model_without_memory_is_exported_however_large(tmp_path):
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(40_000, 40_000), nn.ReLU(), nn.Linear(40_000, 10))
    rows = torch.zeros(2, 40_000)  # On the CPU, as a loader would give them.
    path = ckplan.torch.export(model, rows, tmp_path / "model.onnx")
    plan = ckplan.plan(path, budget="100%", dim={"N": 8})
    assert plan["result"]["constant_bytes"]["parameters"] == 4 * 40_011 * 40_000 + 40
    with pytest.raises(ValueError, match="meta"):
        ckplan.torch.export(model, rows, path, weights=True)


def test_a_compiled_model_is_exported_as_the_model_that_it_is_of(exported, tmp_path):
    model = ckplan.torch.compile(Mixed(), budget="60%")
    assert graph(ckplan.torch.export(model, IMAGES, tmp_path / "model.onnx")) == graph(exported)


def test_a_file_that_cannot_be_written_is_refused_before_the_export(tmp_path):
    with pytest.raises(FileNotFoundError, match="missing does not exist"):
        ckplan.torch.export(Mixed(), IMAGES, tmp_path / "missing" / "model.onnx")
    with pytest.raises(IsADirectoryError, match="pass the path of a file"):
        ckplan.torch.export(Mixed(), IMAGES, tmp_path)


def test_packages_that_are_missing_are_named(monkeypatch, tmp_path):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "onnxscript" else find(name)
    )
    with pytest.raises(ImportError, match="pip install onnxscript$"):
        ckplan.torch.export(Mixed(), IMAGES, tmp_path / "model.onnx")


class Tokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.head = nn.Embedding(50, 16), nn.Linear(16, 50)

    def forward(self, tokens: Tensor, mask: Tensor, labels: Tensor | None = None) -> Tensor:
        scores = self.head(self.embed(tokens) * mask.unsqueeze(-1))
        return scores if labels is None else F.cross_entropy(scores.flatten(0, 1), labels.flatten())


def test_the_recipes_of_the_pages_for_several_inputs(tmp_path, monkeypatch):
    """README.md and docs/python.md export by PyTorch alone, and say what changes with more inputs."""
    monkeypatch.chdir(tmp_path)
    root = Path(__file__).parents[3]
    tokens = torch.zeros(2, 8, dtype=torch.long)
    known = {
        "torch": torch,
        "model": Tokens(),
        "tokens": tokens,
        "mask": torch.ones(2, 8),
        "labels": tokens,
    }
    ckplan.torch.export(
        known["model"], (tokens, known["mask"]), "own.onnx", kwargs={"labels": tokens}
    )
    recipes = []
    text = (root / "README.md").read_text()
    (one,) = [line for line in text.splitlines() if line.startswith("torch.onnx.export(")]
    assert '`[{0: "N"}, {0: "N"}]` for two' in text
    recipes += [
        one.replace("(images,)", "(tokens, mask)").replace('{0: "N"}', '{0: "N"}, {0: "N"}')
    ]
    text = (root / "docs" / "python.md").read_text()
    recipes += [
        "torch.onnx.export(" + part.split("```")[0]
        for part in text.split("torch.onnx.export(")[1:]
        if "kwargs=" in part.split("```")[0]
    ]
    assert len(recipes) == 2
    for recipe in recipes:
        model = OnlyNames() if "kwargs" in recipe else known["model"]
        exec(recipe, known | {"model": model.train()})
        assert {row[0] for row in shapes(Path("model.onnx")).values()} == {"N"}
        assert keep_all_peak(Path("model.onnx"), 4) > keep_all_peak(Path("model.onnx"), 2)


class OnlyNames(Tokens):
    def forward(self, tokens: Tensor, labels: Tensor) -> Tensor:
        return super().forward(tokens, torch.ones_like(tokens), labels)
