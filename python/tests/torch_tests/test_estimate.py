"""Estimates: their tensors equal what a run measures, and their plans fit what they are for."""

from __future__ import annotations

import json
import logging
from importlib import resources

import ckplan.torch
import pytest
import torch
from torch import nn
from torch_tests.networks import NETWORKS, Gpt
from torch_tests.schema import faults
from torch_tests.training import loss_of

from ckplan.torch import __main__ as command
from ckplan.torch import private_autograd
from ckplan.torch.estimation import tracing
from ckplan.torch.estimation.events import peak, trace
from ckplan.torch.estimation.sharding import Shard

MIB = 1 << 20
SCHEMA = json.loads(
    resources.files("ckplan.torch.estimation").joinpath("estimate.schema.json").read_text()
)
FP32 = tracing.Precision.named("fp32")


def small_gpt():
    return Gpt(2, 64, 4, 128, 64, dropout=0.0)


def inputs(batch=4, length=32):
    return (torch.zeros(batch, length, dtype=torch.long),)


def many_inputs(batch=128, length=64):
    """Returns a batch whose activations are large beside the segments of the allocator."""
    return inputs(batch, length)


def estimate_small(example_inputs=inputs, **options):
    options = {"precision": "fp32", "loss": loss_of, "context": 0, "memory": 1 << 30} | options
    return ckplan.torch.estimate(small_gpt, example_inputs, device="a100-40g", **options)


@pytest.mark.parametrize("name", NETWORKS)
def test_tensors_are_those_that_a_run_measures(name):
    make, batch = NETWORKS[name]
    example = batch()
    step = tracing.trace_step(make, example, FP32, loss_of, is_on_gpu=False)
    graph = step.graph(arriving=False)
    planned = peak(trace(graph, range(len(graph.operations))).events)[0]

    torch._dynamo.reset()
    model = make()
    compiled = ckplan.torch.compile(lambda x: loss_of(model(x)), budget="100%")
    compiled(example).backward()
    (entry,) = compiled.ckplan.graphs
    assert planned == entry.measured_peak_bytes
    assert graph.parameter_bytes == sum(p.nbytes for p in {*model.parameters(), *model.buffers()})
    assert step.inputs[0].nbytes == example.nbytes


def test_nothing_is_allocated_for_the_model():
    """A model of 64 GiB, on any machine."""

    class Wide(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(1 << 16, 1 << 16, bias=False) for _ in range(4))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x).relu()
            return x.mean()

    step = tracing.trace_step(Wide, torch.zeros(1, 1 << 16), FP32)
    assert step.graph(arriving=False).parameter_bytes == 64 << 30


@pytest.mark.parametrize("deviation", [0.02, 4.0])
def test_initial_values_that_are_drawn_until_they_fit_are_left_out(deviation):
    """Newer versions of PyTorch read the values that trunc_normal_ draws, in one of two ways."""

    def make():
        model = nn.Linear(8, 1)
        nn.init.trunc_normal_(model.weight, std=deviation)
        return model

    step = tracing.trace_step(make, torch.zeros(2, 8), FP32, torch.mean)
    assert step.graph(arriving=False).parameter_bytes == 9 * 4
    assert nn.init.trunc_normal_(torch.zeros(50), std=deviation).count_nonzero() > 40


def test_a_model_that_logs_is_one_graph(monkeypatch):
    """TorchDynamo would divide it there; some libraries add methods of their own to loggers."""
    logger = logging.getLogger("ckplan.test")
    monkeypatch.setattr(
        logging.Logger, "warn_once", lambda self, text: self.warning(text), raising=False
    )

    class Talking(nn.Linear):
        def forward(self, x):
            logger.warning("a batch of %d", len(x))
            logger.warn_once("a batch")
            return super().forward(x)

    step = tracing.trace_step(lambda: Talking(8, 1), torch.zeros(2, 8), FP32, torch.mean)
    assert len(step.graph(arriving=False).operations) > 3


def test_lines_add_up_and_the_json_fits_its_schema():
    found = estimate_small()
    need = found.keep_all
    lines = {line.name: line for line in need.lines}
    model = small_gpt()
    parameters = sum(p.nbytes for p in model.parameters())
    assert need.bytes == sum(line.bytes for line in need.lines)
    assert lines["parameters"].bytes == parameters
    assert lines["optimizer state"].bytes == 2 * parameters
    assert lines["inputs"].bytes == 4 * 32 * 8
    assert lines["context"].bytes == 0
    assert found.optimizer_bytes == 2 * parameters  # Gradients, and roots of one average.
    assert need.verdict(found.memory_bytes) == "fits" and need.unknown == []
    assert lines["workspaces"].least == 0
    assert sum(size for _, size in found.peak.modules) == found.backward_bytes
    content = json.loads(json.dumps(found.to_json()))
    assert faults(content, SCHEMA, SCHEMA) == []
    content["keep_all"]["verdict"] = "perhaps"
    assert faults(content, SCHEMA, SCHEMA) != []


PARAMETERS = sum(parameter.numel() for parameter in small_gpt().parameters())


@pytest.mark.parametrize(
    ("options", "line", "size"),
    [
        ({"shard": "ddp:2"}, "DDP's buckets", 4 * PARAMETERS),
        ({"precision": "bf16", "master_weights": True}, "optimizer state", 12 * PARAMETERS),
        ({"optimizer": lambda rows: torch.optim.RMSprop(rows)}, "optimizer state", 4 * PARAMETERS),
        ({"context": "7MiB"}, "context", 7 * MIB),
        ({"memory": None}, "driver", (40 << 30) // 100),
        ({"expandable_segments": True, "optimizer": "sgd"}, "parameters", 4 * PARAMETERS),
    ],
)
def test_other_ways_to_train_by_hand(options, line, size):
    found = estimate_small(**options)
    assert {row.name: row.bytes for row in found.keep_all.lines}[line] == size
    assert found.keep_all.bytes == sum(row.bytes for row in found.keep_all.lines)
    assert faults(json.loads(json.dumps(found.to_json())), SCHEMA, SCHEMA) == []


def test_a_model_that_does_not_fit_gets_a_plan_that_does():
    everything = estimate_small(many_inputs, optimizer="sgd")
    assert everything.planned is None
    allocator = next(line for line in everything.keep_all.lines if line.name == "allocator")
    memory = everything.keep_all.bytes - allocator.bytes - everything.backward_bytes // 5
    found = estimate_small(many_inputs, optimizer="sgd", memory=memory)
    assert not found.fits
    assert found.planned is not None and found.planned.bytes <= memory
    assert found.plan is not None
    assert found.plan["result"]["peak_bytes"] < found.backward_bytes
    assert found.curve[-1].peak_bytes == found.backward_bytes
    text = str(found)
    assert "does not fit" in text
    # Where that is the total, ckplan.torch plans the same step within the same peak.
    total = int(found.arguments().removeprefix("total=").removesuffix(', returns="loss"'))
    assert f'ckplan.torch.compile(model, total={total}, returns="loss")' in text
    torch._dynamo.reset()
    model = small_gpt()
    compiled = ckplan.torch.compile(lambda x: loss_of(model(x)), total=total, returns="loss")
    compiled(many_inputs()[0]).backward()
    (entry,) = compiled.ckplan.graphs
    assert entry.plan.keep_all_peak_bytes == found.backward_bytes
    assert entry.measured_peak_bytes <= found.plan["result"]["peak_bytes"]


def test_where_the_optimizer_alone_needs_more_no_plan_is_made():
    found = estimate_small(memory=2 * MIB)
    assert found.planned is None
    assert any('shard="fsdp:8"' in note for note in found.notes)


@pytest.mark.parametrize("added_times", [(0,), (-10,), (2.5,), ("10%",), (True,)])
def test_what_is_no_added_time_is_an_error(added_times):
    with pytest.raises(ValueError, match="added_times must be percentages above 0, or None, not"):
        estimate_small(largest="batch", added_times=added_times)


def test_the_added_times_of_the_largest_sizes_are_those_asked_for():
    found = estimate_small(memory=2 * MIB, largest="batch", added_times=(20, None))
    assert [(row.added_percent, row.value) for row in found.largest] == [(None, None), (20, None)]


def test_the_largest_batch_fits_and_the_next_does_not():
    memory = estimate_small(optimizer="sgd").keep_all.bytes * 3
    found = estimate_small(optimizer="sgd", memory=memory, largest="batch")
    keep_all, *planned = found.largest
    assert (keep_all.size, keep_all.added_percent) == ("batch", None)
    needs = [
        ckplan.torch.estimate(
            small_gpt,
            inputs(batch),
            device="a100-40g",
            optimizer="sgd",
            precision="fp32",
            loss=loss_of,
            context=0,
            memory=memory,
        ).keep_all.bytes
        for batch in (keep_all.value, keep_all.value + 1)
    ]
    assert needs[0] == keep_all.need_bytes
    assert needs[0] <= memory < needs[1]
    assert all(row.value >= keep_all.value for row in planned)


def test_a_size_that_the_inputs_lack_is_refused():
    with pytest.raises(ValueError, match="no size 'sequence'; they have batch, length"):
        estimate_small(largest="sequence")


def test_precision_is_that_of_parameters_and_of_activations():
    whole, half = estimate_small(), estimate_small(precision="bf16")
    mixed = estimate_small(precision="bf16-mixed")
    bytes_of = [
        {line.name: line.bytes for line in found.keep_all.lines}["parameters"]
        for found in (whole, half, mixed)
    ]
    assert bytes_of[0] == 2 * bytes_of[1] == bytes_of[2]
    assert half.backward_bytes < whole.backward_bytes


#   A matrix of 10 x 3 and a bias of 7, as docs/parallelism.md works it out.
def test_parts_of_parameters_by_hand():
    shard = Shard.named("fsdp:4")
    assert shard.part(torch.empty(10, 3)).numel() == 9
    assert shard.part(torch.empty(7)).numel() == 2
    assert shard.part(torch.empty(1, 5)).numel() == 5
    assert Shard.named("ddp:4").part(torch.empty(10, 3)).numel() == 30
    for text in ("fsdp", "fsdp:0", "zero3:8", "fsdp:x"):
        with pytest.raises(ValueError, match='shard must be "fsdp:N" or "ddp:N"'):
            Shard.named(text)


def test_units_are_gathered_in_pairs_by_hand():
    """Three layers of 8 x 8 floats and a head of 8 x 4, on two devices."""

    class Layers(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(8, 8, bias=False) for _ in range(3))
            self.head = nn.Linear(8, 4, bias=False)

    found = Shard.named("fsdp:2").at_a_time(Layers(), None)
    assert found["parameters gathered"].bytes == 128 + 2 * 256
    assert found["gradients of units"].bytes == 2 * 256
    assert Shard.named("ddp:2").at_a_time(Layers(), None)["DDP's buckets"].bytes == 128 + 3 * 256


def test_a_divided_model_needs_less():
    alone, divided = estimate_small(), estimate_small(shard="fsdp:8")
    names = [line.name for line in divided.keep_all.lines]
    assert {"parameters gathered", "gradients of units", "NCCL's buffers"} <= set(names)
    state = [
        {line.name: line.bytes for line in found.keep_all.lines}["optimizer state"]
        for found in (alone, divided)
    ]
    assert state[1] * 8 == state[0]


def test_what_cannot_be_estimated_is_said():
    model = small_gpt()
    with pytest.raises(TypeError, match="write lambda: Model"):
        ckplan.torch.estimate(model, inputs)
    with pytest.raises(ckplan.torch.EstimateError, match="has no loss to train by"):
        ckplan.torch.estimate(lambda: nn.Linear(4, 4), torch.zeros(2, 4))
    with pytest.raises(ValueError, match="precision must be one of fp32"):
        estimate_small(precision="int8")
    with pytest.raises(ValueError, match="device must be a GPU"):
        ckplan.torch.estimate(small_gpt, inputs, device="cpu")
    for amount in ("abc", "min", "60%"):
        with pytest.raises(ValueError, match="memory must be a number of bytes(,| or) a size such as"):
            estimate_small(memory=amount)
    with pytest.raises(ValueError, match="no device preset"):
        ckplan.torch.estimate(small_gpt, inputs, device="abacus")


MODULE = """
import torch
from torch import nn

def make_model():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))

def inputs(batch=4):
    return torch.zeros(batch, 64)

def loss(output):
    return output.mean()
"""


def test_the_command_line(tmp_path, capsys):
    path = tmp_path / "train_small.py"
    path.write_text(MODULE)
    page = tmp_path / "plan.html"
    asked = ["estimate", f"{path}:make_model", "--loss", "loss", "--device", "t4"]
    assert command.main([*asked, "--format", "json", "--report", str(page)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["device"] == "t4-16g" and found["sizes"] == {"batch": 4}
    assert page.read_text().startswith("<!")
    assert command.main(["estimate", f"{path}:make_model", "--loss", "loss", "--memory=9GiB"]) == 0
    said = capsys.readouterr().out
    assert "a100-40g, 9.00 GiB" in said and "keep all   fits" in said
    # Each table chooses its own unit, since small models would otherwise show only zeros.
    heads = [line.split() for line in said.splitlines()]
    assert ["keep", "all", "MiB", "kind", "error", "source"] in heads
    assert ["by", "module", "KiB"] in heads


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["{}:make_model"], 3, "has no loss to train by"),
        (["{}:make"], 3, "has no 'make'"),
        (["{}"], 2, "is not a function: write MODULE:FUNCTION"),
        (["{}:make_model", "--loss", "loss", "--shard", "zero"], 2, "shard must be"),
        (["none.py:make_model"], 3, "none.py does not exist"),
    ],
)
def test_refusals_of_the_command_line(tmp_path, capsys, arguments, code, said):
    path = tmp_path / "train_refused.py"
    path.write_text(MODULE)
    given = [argument.format(path) for argument in arguments]
    assert command.main(["estimate", *given]) == code
    assert said in capsys.readouterr().err


def test_the_schema_is_printed(capsys):
    assert command.main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out)["$id"] == "urn:ckplan:schema:estimate:1"


def test_without_a_precision_a_model_keeps_its_types():
    def parameters(make, **options):
        found = ckplan.torch.estimate(
            make, inputs, loss=loss_of, device="a100-40g", context=0, memory=1 << 30, **options
        )
        return found.keep_all.line("parameters").bytes, found.precision

    whole = sum(parameter.nbytes for parameter in small_gpt().parameters())
    assert parameters(small_gpt) == (whole, "fp32")
    assert parameters(lambda: small_gpt().bfloat16()) == (whole // 2, "bf16")
    converted = small_gpt().bfloat16()  # This runs before the estimate sees the model.
    assert parameters(lambda: converted) == (whole // 2, "bf16")
    assert parameters(small_gpt, precision="bf16-mixed") == (whole, "bf16-mixed")


def test_memory_may_be_a_device_and_a_reserve_replaces_what_is_outside():
    found = ckplan.torch.estimate(small_gpt, inputs, memory="rtx3060-8g", loss=loss_of)
    assert (found.device, found.memory_bytes) == ("rtx3060-8g", 8 << 30)
    assert found.keep_all.line("driver").bytes == (8 << 30) // 100
    reserved = estimate_small(reserve="7MiB")
    assert [(line.name, line.bytes) for line in reserved.keep_all.outside] == [("reserve", 7 * MIB)]
    assert reserved.keep_all.bytes == reserved.keep_all.tensor_bytes + 7 * MIB
    with pytest.raises(ValueError, match="pass only one"):
        ckplan.torch.estimate(small_gpt, inputs, device="t4", memory="rtx3060-8g", loss=loss_of)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--memory", "60%"], "--memory must be a number of bytes"),
        (["--precision", "int8"], "--precision must be one of"),
        (["--largest", "depth"], "--largest: the inputs have no size 'depth'"),
        (["--size", "depth=3"], "--size depth=3: unknown size 'depth'; the inputs have batch"),
        (["--size", "batch=no"], "--size batch=no: a size must be a whole number"),
    ],
)
def test_messages_of_the_command_line_name_flags(tmp_path, capsys, given, said):
    path = tmp_path / "train_flags.py"
    path.write_text(MODULE)
    assert command.main(["estimate", f"{path}:make_model", "--loss", "loss", *given]) == 2
    assert said in capsys.readouterr().err


def test_a_size_is_a_flag(tmp_path, capsys):
    path = tmp_path / "train_size.py"
    path.write_text(MODULE)
    asked = ["estimate", f"{path}:make_model", "--loss", "loss", "--size", "batch=16"]
    assert command.main([*asked, "--format", "json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["sizes"] == {"batch": 16}
    inputs_line = next(row for row in found["keep_all"]["lines"] if row["name"] == "inputs")
    assert inputs_line["bytes"] == 4 * 16 * 64


class Grouped(nn.Module):
    """An attention whose keys and values are repeated for all heads, with dropout."""

    def __init__(self, repeats: bool = True):
        super().__init__()
        self.q, self.kv, self.repeats = nn.Linear(32, 32), nn.Linear(32, 16), repeats

    def forward(self, x):
        queries = self.q(x).view(2, 8, 4, 8).transpose(1, 2)
        keys = self.kv(x).view(2, 8, 2, 8).transpose(1, 2)
        if self.repeats:
            keys = keys[:, :, None].expand(2, 2, 2, 8, 8).reshape(2, 4, 8, 8)
        dropped = 0.1 if self.repeats else 0.0
        mixed = nn.functional.scaled_dot_product_attention(
            queries, keys, keys, dropout_p=dropped, enable_gqa=not self.repeats
        )
        return nn.functional.dropout(mixed, dropped).sum()


class Biased(nn.Module):
    """An attention with dropout, and with a trained bias or a mask that hides some keys."""

    def __init__(self, kind):
        super().__init__()
        self.enter, self.kind = nn.Linear(32, 32), kind
        self.bias = nn.Parameter(torch.zeros(1, 4, 48, 48))

    def forward(self, x):
        heads = self.enter(x).view(2, 48, 4, 8).transpose(1, 2)
        mask = self.bias.expand(2, 4, 48, 48) if self.kind == "bias" else None
        if self.kind == "mask":
            mask = (x.sum(-1) > 0)[:, None, None, :]
        mixed = nn.functional.scaled_dot_product_attention(heads, heads, heads, mask, dropout_p=0.1)
        return mixed.sum() + 0 * self.bias.sum()


@pytest.mark.parametrize("kind", ["none", "bias", "mask"])
def test_attention_with_dropout_or_a_trained_bias_keeps_no_probabilities(kind):
    step = tracing.trace_step(lambda: Biased(kind), torch.zeros(2, 48, 32), FP32)
    graph = step.graph(arriving=True)
    targets = [str(row.node.target) for row in graph.operations if row.node is not None]
    assert not any("softmax" in target or "native_dropout" in target for target in targets)
    assert sum("efficient_attention_backward" in target for target in targets) == 1
    probabilities = 4 * 2 * 4 * 48 * 48
    large = [row for row in graph.values if row.kind == "value" and row.bytes >= probabilities]
    assert len(large) == (kind == "bias")  # Its gradient.
    on_cpu = tracing.trace_step(lambda: Biased(kind), torch.zeros(2, 48, 32), FP32, is_on_gpu=False)
    assert any(
        "softmax" in str(row.node and row.node.target) for row in on_cpu.graph(True).operations
    )


def test_an_estimate_says_what_eager_pytorch_does_otherwise():
    def estimated(make):
        torch._dynamo.reset()
        return ckplan.torch.estimate(make, torch.zeros(2, 8, 32), memory="8GiB")

    same = estimated(lambda: Grouped(repeats=False))
    assert (same.step, same.eager_differs) == ("traced", [])
    assert "no difference from eager PyTorch is known" in str(same)
    other = estimated(Grouped)
    heads, dropout = other.eager_differs
    assert heads.startswith("keys and values are repeated for all heads before attention")
    assert dropout.startswith("dropout keeps masks of one byte for each element")
    assert f"eager PyTorch may need other memory:\n             - {heads}" in str(other)
    document = other.to_json()
    assert not faults(document, SCHEMA, SCHEMA)
    assert (document["step"], document["eager_differs"]) == ("traced", [heads, dropout])


class Resized(nn.Module):
    def __init__(self, mode):
        super().__init__()
        self.mode = mode
        self.enter, self.leave = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1)

    def forward(self, x):
        x = nn.functional.interpolate(self.enter(x).relu(), scale_factor=2, mode=self.mode)
        return self.leave(x).square().mean()


@pytest.mark.parametrize("mode", ["nearest", "nearest-exact", "bilinear", "bicubic"])
def test_resizing_is_one_operator_as_in_eager_mode(mode):
    torch._dynamo.reset()
    model, x = Resized(mode), torch.rand(2, 3, 24, 24)
    graph = tracing.trace_step(lambda: model, x, FP32).graph(arriving=True)
    targets = [str(row.node.target) for row in graph.operations if row.node is not None]
    assert sum("upsample" in target and "backward" in target for target in targets) == 1
    assert not any("index" in target for target in targets)
    model(x).backward()

    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    compiled = ckplan.torch.compile(model, total="1GiB")
    compiled(x).backward()
    for parameter, gradient in zip(model.parameters(), expected):
        torch.testing.assert_close(parameter.grad, gradient)


def test_resizing_stays_as_it_is_for_other_compilers():
    """It also stays while a step is traced, because other compilers may run in other threads."""
    operators = (torch.ops.aten.upsample_bilinear2d.vec, torch.ops.aten.upsample_nearest2d.vec)
    before = [dict(operator.py_kernels) for operator in operators]
    graphs = []

    def seen(module, inputs):
        assert [dict(operator.py_kernels) for operator in operators] == before
        graphs.append(module)
        return module.forward

    calls = []

    def backend(module, inputs):
        calls.extend(node.target for node in module.graph.nodes)
        compiler = private_autograd.aot_autograd(fw_compiler=seen, bw_compiler=seen)
        compiled = compiler(module, inputs)
        assert [node.target for node in module.graph.nodes] == calls
        return compiled

    torch._dynamo.reset()
    model = Resized("bilinear")
    torch.compile(model, backend=backend)(torch.rand(2, 3, 24, 24)).backward()
    assert nn.functional.interpolate in calls
    targets = [str(node.target) for graph in graphs for node in graph.graph.nodes]
    assert "aten.upsample_bilinear2d.default" in targets


@pytest.mark.parametrize(
    ("norm", "is_in_place"),
    [(nn.InstanceNorm2d, True), (nn.InstanceNorm2d, False), (nn.BatchNorm2d, True)],
)
def test_what_writes_a_view_is_named_as_what_eager_pytorch_does_otherwise(norm, is_in_place):
    layers = [nn.Conv2d(3, 8, 3), norm(8), nn.LeakyReLU(0.1, inplace=is_in_place)]
    make = lambda: nn.Sequential(*layers, nn.Conv2d(8, 1, 1))
    x = torch.zeros(2, 3, 8, 8)
    found = ckplan.torch.estimate(make, x, loss=torch.mean, memory="8GiB").eager_differs
    expected = ["an in-place operation on a view"] * (norm is nn.InstanceNorm2d and is_in_place)
    assert [row[:31] for row in found] == expected


def test_a_scan_is_named_as_what_eager_pytorch_may_do_otherwise():
    from torch._higher_order_ops.associative_scan import associative_scan
    from ckplan.torch.estimation import eager

    found = []

    def backend(module, _):
        found.extend(eager.differences(module))
        return module

    def scanned(x):
        return associative_scan(torch.add, x, 0, combine_mode="generic").sum()

    torch._dynamo.reset()
    torch.compile(scanned, backend=backend)(torch.ones(4, 3))
    (row,) = found
    assert row.startswith("associative_scan runs as one operation of whole sequences")
