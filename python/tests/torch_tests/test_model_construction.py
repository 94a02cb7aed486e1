"""Estimates of models whose constructors convert, move, copy, load and wrap them."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable
from typing import Any

import accelerate
import ckplan.torch
import numpy
import peft
import pytest
import safetensors.torch
import torch
from torch import nn
from torch.nn.utils import parametrizations, parametrize, prune

from ckplan.torch.errors import EstimateError
from ckplan.torch.estimation import tracing

BF16 = tracing.Precision.named("bf16")
TOKENS = (torch.zeros(2, 12, dtype=torch.long),)
IMAGES = (torch.zeros(2, 3, 8, 8),)


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed, self.norm, self.head = (
            nn.Embedding(100, 16),
            nn.LayerNorm(16),
            nn.Linear(16, 100),
        )
        self.register_buffer("scale", torch.ones(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        embedded = (self.embed(x) * self.scale).to(self.norm.weight.dtype)
        return self.head(self.norm(embedded).to(self.head.weight.dtype)).float().square().mean()


class Images(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.conv(x)).mean((2, 3))).float().square().mean()


class Wrapped(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, *args: Any) -> Any:
        return self.inner(*args)


def tied(model: Any) -> Any:
    model.head.weight = model.embed.weight
    return model


def loaded(model: nn.Module, type: torch.dtype, assign: bool) -> nn.Module:
    state = {name: row.to(type) for name, row in Words().state_dict().items()}
    model.load_state_dict(state, assign=assign)
    return model


def adapted(model: Any, **options: Any) -> Any:
    return peft.get_peft_model(model, peft.LoraConfig(target_modules=["head"], r=2, **options))


def changed(change: Callable[[Any], Any], model: Any = None) -> Any:
    model = Words() if model is None else model
    change(model)
    return model


def frozen() -> nn.Module:
    model = Words()
    model.requires_grad_(False)
    model.head.requires_grad_(True)
    return model


def on_meta() -> nn.Module:
    with torch.device("meta"):
        model = Words()
    return model.to_empty(device="cpu")


def without_memory() -> nn.Module:
    with accelerate.init_empty_weights():
        return Words()


def on_default_device() -> nn.Module:
    torch.set_default_device("cuda")
    try:
        return Words()
    finally:
        torch.set_default_device(None)


def rates(read: Callable[[torch.Tensor], list[float]]) -> nn.Module:
    """Returns a model with rates of dropout, as ConvNeXt and Swin compute them."""
    values = read(torch.linspace(0, 0.5, 3))
    assert [round(value, 2) for value in values] == [0, 0.25, 0.5]
    return nn.Sequential(Words(), nn.Dropout(values[-1]))


def weight_norm(model: Any) -> Any:
    return changed(lambda m: parametrizations.weight_norm(m.head), model)


def plain_weight_norm() -> Any:
    return changed(
        lambda m: (
            parametrizations.weight_norm(m.head),
            parametrize.remove_parametrizations(m.head, "weight"),
        )
    )


MODELS: dict[str, Callable[[], nn.Module]] = {
    "plain": Words,
    "bfloat16": lambda: Words().bfloat16(),
    "half": lambda: Words().half(),
    "to a type": lambda: Words().to(torch.bfloat16),
    "double": lambda: Words().double(),
    "float": lambda: Words().float(),
    "to another's type": lambda: Words().to(torch.zeros(1, dtype=torch.half)),
    "a layer in 32 bits": lambda: changed(lambda m: m.norm.float(), Words().bfloat16()),
    "data": lambda: changed(lambda m: setattr(m.head, "weight", nn.Parameter(m.head.weight.data))),
    "tied": lambda: tied(Words()),
    "tied, converted": lambda: tied(Words()).half(),
    "converted, tied": lambda: tied(Words().half()),
    "loaded": lambda: loaded(Words(), torch.float32, assign=False),
    "converted, loaded": lambda: loaded(Words().half(), torch.float32, assign=False),
    "assigned": lambda: loaded(Words(), torch.bfloat16, assign=True),
    "assigned in 16 bits": lambda: loaded(Words(), torch.half, assign=True),
    "LoRA": lambda: adapted(Words()),
    "LoRA of bf16": lambda: adapted(Words().bfloat16()),
    "LoRA, converted": lambda: adapted(Words()).half(),
    "DoRA": lambda: adapted(Words().bfloat16(), use_dora=True),
    "wrapped": lambda: Wrapped(Wrapped(Words().half())),
    "wrapped, converted": lambda: Wrapped(Wrapped(Words())).half(),
    "weight_norm": lambda: weight_norm(Words()),
    "weight_norm, converted": lambda: weight_norm(Words()).half(),
    "converted, weight_norm": lambda: weight_norm(Words().half()),
    "weight_norm removed, converted": lambda: plain_weight_norm().half(),
    "spectral_norm": lambda: changed(
        lambda m: parametrizations.spectral_norm(m.head), Words().float()
    ),
    "one layer converted, weight_norm": lambda: weight_norm(changed(lambda m: m.head.half())),
    "orthogonal": lambda: changed(lambda m: parametrizations.orthogonal(m.head), Words().float()),
    "init_empty_weights": without_memory,
    "init_empty_weights, converted": lambda: without_memory().half(),
    "made in 32 bits, converted": lambda: changed(
        lambda m: setattr(m, "norm", nn.LayerNorm(16, dtype=torch.float32)), Words().half()
    ),
    "pruned": lambda: changed(lambda m: prune.random_unstructured(m.head, "weight", 0.3)),
    "frozen": frozen,
    "frozen, converted": lambda: frozen().half(),
    "copied": lambda: copy.deepcopy(Words()),
    "converted, copied": lambda: copy.deepcopy(Words().half()),
    "copied, converted": lambda: copy.deepcopy(Words()).half(),
    "on meta": on_meta,
    "skip_init": lambda: changed(
        lambda m: setattr(m, "head", nn.utils.skip_init(nn.Linear, 16, 100))
    ),
    "shared": lambda: Words().share_memory(),
    "rates by item": lambda: rates(lambda row: [value.item() for value in row]),
    "rates by tolist": lambda: rates(lambda row: row.tolist()),
    "rates by parts": lambda: rates(
        lambda row: [part.tolist()[0] for part in row.split([1, 1, 1])]
    ),
    "images, converted": lambda: Images().half(),
    "images, channels last": lambda: Images().to(memory_format=torch.channels_last),
    "convert_conv2d": lambda: nn.utils.convert_conv2d_weight_memory_format(
        Images(), torch.channels_last
    ),
    "SyncBatchNorm": lambda: nn.SyncBatchNorm.convert_sync_batchnorm(Images()).half(),
}


def array() -> Any:
    return numpy.ones((100, 16), dtype=numpy.float32)


def with_values(row: torch.Tensor) -> nn.Module:
    return changed(lambda m: m.head.weight.data.copy_(row))


MODELS |= {
    "from_numpy": lambda: with_values(torch.from_numpy(array())),
    "as_tensor": lambda: with_values(torch.as_tensor(array())),
    "FloatTensor": lambda: with_values(torch.FloatTensor(array())),
    "frombuffer": lambda: with_values(torch.frombuffer(array(), dtype=torch.float32).view(100, 16)),
    "a buffer of NumPy": lambda: changed(
        lambda m: m.register_buffer("positions", torch.from_numpy(numpy.ones((3, 3))))
    ),
    "an order by randperm": lambda: changed(
        lambda m: setattr(m, "order", sorted(torch.randperm(16).tolist()) == list(range(16)))
    ),
    "rates by numpy": lambda: rates(lambda row: row.float().numpy().tolist()),
    "rates by as_tensor": lambda: rates(
        lambda _: [value.item() for value in torch.as_tensor([0, 0.25, 0.5])]
    ),
}


def step_of(make: Callable[[], nn.Module], name: str = "") -> tracing.Step:
    torch._dynamo.reset()
    is_image = name.startswith("images") or name in ("convert_conv2d", "SyncBatchNorm")
    return tracing.trace_step(make, IMAGES if is_image else TOKENS, BF16)


def described(model: nn.Module) -> dict[str, Any]:
    """Returns the properties that must equal those of the running model."""
    return {
        name: (row.dtype, row.shape, row.stride(), row.requires_grad)
        for name, row in [*model.named_parameters(), *model.named_buffers()]
    }


@pytest.mark.parametrize("name", MODELS)
def test_tensors_are_those_of_the_model_that_the_constructor_makes(name):
    step = step_of(MODELS[name], name)
    torch.set_default_dtype(torch.bfloat16)
    try:
        real = MODELS[name]()
    finally:
        torch.set_default_dtype(torch.float32)
    assert described(step.model) == described(real)
    assert len(step.graph(arriving=True).operations) > 10


MOVED: dict[str, Callable[[], nn.Module]] = {
    "to": lambda: Words().to("cuda"),
    "to a number": lambda: Words().to(0),
    "cuda": lambda: Words().cuda(),
    "to a device and type": lambda: Words().to("cuda:0", torch.half),
    "to a device": lambda: Words().to(torch.device("cuda", 0)),
    "made there": lambda: changed(
        lambda m: setattr(m, "head", nn.Linear(16, 100, device="cuda", dtype=torch.bfloat16))
    ),
    "wrapped": lambda: Wrapped(Words().half()).cuda(),
    "default device": on_default_device,
    "to_empty": lambda: Words().to_empty(device="cuda"),
}


@pytest.mark.parametrize("name", MOVED)
def test_a_model_that_its_constructor_moves_to_a_gpu(name):
    step = step_of(MOVED[name])
    assert {row.device.type for row in step.model.parameters()} == {"cpu"}
    is_half = name in ("to a device and type", "wrapped")
    assert {row.dtype for row in step.model.parameters()} == {
        torch.half if is_half else torch.bfloat16
    }


def test_a_model_that_was_made_before_is_not_changed():
    model = tied(Words())
    before = {name: (row.data_ptr(), row.dtype) for name, row in model.state_dict().items()}
    step = step_of(lambda: model)
    assert step.model is not model
    assert {row.dtype for row in step.model.parameters()} == {torch.bfloat16}
    assert len(list(step.model.parameters())) == len(list(model.parameters()))
    assert before == {name: (row.data_ptr(), row.dtype) for name, row in model.state_dict().items()}
    assert model(TOKENS[0]).item() > 0


def test_a_copy_and_the_state_of_a_model_that_was_made_before():
    model = Words()
    copied = step_of(lambda: copy.deepcopy(model).half())
    assert {row.dtype for row in copied.model.parameters()} == {torch.half}

    def make() -> nn.Module:
        made = Words()
        made.load_state_dict(model.half().state_dict(), assign=True)
        return made

    assert {row.dtype for row in step_of(make).model.parameters()} == {torch.half}


def test_pytorch_is_as_before_afterwards():
    swap = torch.utils.swap_tensors
    with pytest.raises(ZeroDivisionError):
        step_of(lambda: 1 // 0)
    assert torch.utils.swap_tensors is swap and torch.get_default_dtype() == torch.float32
    model = Words().half()  # The estimate has removed its hooks.
    assert model.head.weight.dtype == torch.half


def test_an_estimate_names_types_that_are_not_those_of_its_precision():
    def notes(make: Callable[[], nn.Module], precision: str | None = "bf16") -> list[str]:
        torch._dynamo.reset()
        return ckplan.torch.estimate(make, TOKENS, precision=precision).notes

    # Without a precision, a model has the types that its constructor gives it.
    assert notes(lambda: Words().half(), None) == []
    assert notes(Words) == notes(lambda: Words().bfloat16()) == []
    assert notes(lambda: Words().half()) == [
        "the model's constructor converts it: its parameters are float16"
    ]


@pytest.mark.parametrize(
    "read",
    [
        safetensors.torch.load_file,
        lambda path: safetensors.torch.load(path.read_bytes()),
        torch.load,
    ],
)
@pytest.mark.parametrize("assign", [False, True])
def test_states_are_loaded_from_files(tmp_path, read, assign):
    path = tmp_path / "weights"
    state = Words().half().state_dict()
    torch.save(state, path) if read is torch.load else safetensors.torch.save_file(state, path)

    def make() -> nn.Module:
        model = Words()
        model.load_state_dict(read(path), assign=assign)
        return model

    expected = torch.half if assign else torch.bfloat16
    assert {row.dtype for row in step_of(make).model.parameters()} == {expected}


def test_a_condition_on_initial_values_is_false_and_noted():
    def make() -> nn.Module:
        model = Words()
        if torch.isnan(model.head.weight).any():
            raise ValueError
        return model

    torch._dynamo.reset()
    assert ckplan.torch.estimate(make, TOKENS).notes == [
        "the model's constructor has a condition on a tensor's values: it was assumed to be false"
    ]

    def wrong() -> nn.Module:
        model = Words()
        assert torch.isfinite(model.head.weight).all()
        return model

    with pytest.raises(
        EstimateError, match="AssertionError after a condition on values of a tensor"
    ):
        step_of(wrong)


@pytest.mark.parametrize("read", ["item", "tolist", "numpy", "__float__"])
def test_reading_values_that_are_not_there_is_an_error(read):
    with pytest.raises(EstimateError, match="make_model reads values of a tensor by "):
        step_of(lambda: changed(lambda m: getattr(m.head.weight.std(), read)()))


KNOWN: dict[str, Callable[[], Any]] = {
    "items": lambda: [rate.item() for rate in torch.linspace(0, 6, 13)],
    "item of one": lambda: torch.linspace(0, 6, 13)[3].item(),
    "parts": lambda: [x.item() for part in torch.arange(6).split([2, 4]) for x in part],
    "slices": lambda: torch.arange(12).view(3, 4)[1:, ::2].sum().item(),
    "nonzero": lambda: torch.ones(3, 4).nonzero().shape[0],
    "mask": lambda: torch.arange(10)[torch.arange(10) > 4].tolist(),
    "unique": lambda: torch.unique(torch.tensor([1, 1, 2])).numel(),
    "repeats": lambda: torch.repeat_interleave(torch.tensor([1, 2])).tolist(),
    "counts": lambda: torch.bincount(torch.tensor([1, 2])).numpy().sum(),
}


@pytest.mark.parametrize("name", KNOWN)
def test_numbers_that_follow_from_numbers_are_known(name):
    expected, found = KNOWN[name](), []
    step_of(lambda: changed(lambda _: found.append(KNOWN[name]())))
    assert found == [expected]


def test_numbers_that_were_changed_in_place_are_not_known():
    def wrong(model: nn.Module) -> None:
        rates = torch.linspace(0, 0.1, 12)
        rates[3] = model.head.weight.std()
        rates[2].item()

    with pytest.raises(EstimateError, match="make_model reads values of a tensor by item"):
        step_of(lambda: changed(wrong))


def test_a_size_that_depends_on_initial_weights_is_an_error():
    for read in (lambda w: w.nonzero(), lambda w: w[w > 0], torch.unique):
        with pytest.raises(EstimateError, match="whose result size depends on values of a tensor"):
            step_of(lambda: changed(lambda model: read(model.head.weight)))


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_constructor_that_asks_for_a_gpu_is_an_error():
    with pytest.raises(EstimateError, match="requires a GPU, but an estimate runs without one"):
        step_of(lambda: changed(lambda _: torch.cuda.current_device()))


def saved() -> nn.Module:
    return changed(lambda m: torch.save(m.state_dict(), io.BytesIO()))


def test_saving_tensors_that_have_no_values_is_an_error():
    with pytest.raises(EstimateError, match="make_model saves tensors"):
        step_of(saved)


def test_a_model_without_a_trained_parameter_is_an_error():
    with pytest.raises(EstimateError, match="nothing to train: no parameter requires a gradient"):
        step_of(lambda: Words().requires_grad_(False))
