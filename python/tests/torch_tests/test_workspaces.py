"""What convolutions and attention take beside their results, as cuDNN and PyTorch's source say."""

from __future__ import annotations

import ckplan.torch
import pytest
import torch
from torch import nn
from torch_tests.training import loss_of

from ckplan.torch.costs import device_named
from ckplan.torch.estimation import cudnn, tracing, workspaces
from ckplan.torch.estimation.cudnn import FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT

MIB = 1 << 20


class PlayedCudnn:
    """Recommends engines with known workspaces, and records the queries."""

    name = "played cuDNN"

    def __init__(self, answer):
        self.asked = []
        self._answer = answer

    def workspaces(self, convolution, what):
        self.asked.append((convolution, what))
        return self._answer(convolution, what)


@pytest.fixture
def play(monkeypatch):
    def start(answer):
        played = PlayedCudnn(answer)
        monkeypatch.setattr(cudnn, "advisor", lambda device: played)
        return played

    return start


class Convolutions(nn.Module):
    """One convolution after the other; the first one's input needs no gradient."""

    def __init__(self, *layers):
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x).float().square().mean()


def asked_of(played, example, make_layers, precision="fp32"):
    """Returns the queries to cuDNN for a step."""
    case = tracing.Precision.named(precision)
    step = tracing.trace_step(lambda: Convolutions(*make_layers()), example, case)
    played.asked.clear()
    workspaces.workspaces_of(step.graph(arriving=True), "h100-80g")
    return played.asked


def test_each_pass_of_a_convolution_is_asked_for(play):
    played = play(lambda convolution, what: ())
    layers = nn.Conv2d(4, 8, 3, stride=2, padding=1), nn.Conv2d(8, 6, (1, 5), dilation=2, groups=2)
    asked = asked_of(played, torch.zeros(2, 4, 32, 24), lambda: layers)
    assert [what for _, what in asked] == [
        FORWARD,
        FORWARD,
        INPUT_GRADIENT,
        WEIGHT_GRADIENT,
        WEIGHT_GRADIENT,
    ]
    first, second = asked[0][0], asked[1][0]
    assert asked[4][0] == first and asked[2][0] == asked[3][0] == second
    assert (first.x.shape, first.w.shape, first.y.shape) == (
        (2, 4, 32, 24),
        (8, 4, 3, 3),
        (2, 8, 16, 12),
    )
    assert (first.strides, first.padding, first.dilations) == ((2, 2), (1, 1), (1, 1))
    assert second.w.shape == (6, 4, 1, 5) and second.dilations == (2, 2)
    assert first.x.strides == (4 * 32 * 24, 32 * 24, 24, 1) and first.type == "float32"


def test_a_transposed_convolution_is_a_gradient(play):
    played = play(lambda convolution, what: ())
    layers = nn.Conv2d(3, 4, 1), nn.ConvTranspose2d(4, 8, 2, stride=2)
    asked = asked_of(played, torch.zeros(2, 3, 16, 16), lambda: layers)[1:4]
    assert [what for _, what in asked] == [INPUT_GRADIENT, FORWARD, WEIGHT_GRADIENT]
    assert {convolution.x.shape for convolution, _ in asked} == {(2, 8, 32, 32)}
    assert {convolution.y.shape for convolution, _ in asked} == {(2, 4, 16, 16)}


def test_one_dimension_is_two_for_cudnn_and_three_stay(play):
    played = play(lambda convolution, what: ())
    (forward, *_) = asked_of(played, torch.zeros(2, 3, 50), lambda: [nn.Conv1d(3, 4, 5, padding=2)])
    assert forward[0].x.shape == (2, 3, 1, 50) and forward[0].w.shape == (4, 3, 1, 5)
    assert forward[0].padding == (0, 2) and forward[0].strides == (1, 1)
    (forward, *_) = asked_of(played, torch.zeros(2, 3, 8, 8, 8), lambda: [nn.Conv3d(3, 4, 3)])
    assert forward[0].padding == (0, 0, 0) and forward[0].w.shape == (4, 3, 3, 3, 3)


def test_channels_last_are_so_for_cudnn(play):
    played = play(lambda convolution, what: ())
    example = torch.zeros(2, 4, 16, 12).to(memory_format=torch.channels_last)
    (forward, *_) = asked_of(played, example, lambda: [nn.Conv2d(4, 8, 3)], precision="bf16")
    assert forward[0].x.strides == (4 * 16 * 12, 1, 4 * 12, 4)
    assert forward[0].w.strides == (4 * 3 * 3, 1, 4 * 3, 4) and forward[0].type == "bfloat16"


def test_pytorchs_own_kernel_for_each_channel_has_no_workspace(play):
    played = play(lambda convolution, what: (MIB,))
    example = torch.zeros(2, 8, 16, 16)

    def by_channel():
        return [nn.Conv2d(8, 8, 3, groups=8)]

    assert asked_of(played, example, by_channel) == []
    assert asked_of(played, example, by_channel, precision="bf16") != []


def three_convolutions():
    return Convolutions(*(nn.Conv2d(16, 16, 1) for _ in range(3)))


UNIT = 16 * MIB
IMAGES = torch.zeros(1024, 16, 32, 32)  # 4 units, as each activation is.


def estimated(**options):
    options = {"precision": "fp32", "context": 0, "loss": loss_of} | options
    return ckplan.torch.estimate(three_convolutions, IMAGES, device="h100-80g", **options)


def test_the_line_is_what_workspaces_add_to_the_peak(play):
    # PyTorch runs the first engine; where it measures, it may choose another of the first ten.
    play(lambda convolution, what: (8 * UNIT, 2 * UNIT, 12 * UNIT) + 7 * (8 * UNIT,) + (64 * UNIT,))
    found = estimated()
    line = found.keep_all.line("workspaces")
    # Without workspaces the peak is not at a convolution, but close to one.
    assert 0 < line.bytes <= 8 * UNIT
    assert line.most - line.bytes == 4 * UNIT and line.least < line.bytes
    assert line.source == "played cuDNN, asked about h100-80g"
    assert found.keep_all.unknown == []
    play(lambda convolution, what: (0,))
    without = estimated()
    assert without.keep_all.line("workspaces").most == 0
    assert found.backward_bytes == without.backward_bytes



def test_a_plan_leaves_room_for_workspaces(play):
    play(lambda convolution, what: (8 * UNIT,))
    memory = estimated(memory="8GiB").keep_all.bytes - UNIT
    found = estimated(memory=memory)
    assert not found.fits and found.planned.bytes <= memory
    assert found.planned.line("workspaces").bytes > 0
    play(lambda convolution, what: (0,))
    assert estimated(memory=memory).fits


def test_the_largest_size_fits_with_the_workspaces_of_that_size(play):
    def answer(convolution, what):
        return (0,) if convolution.x.shape[0] < 100 else (32 * MIB,)

    def images(batch=8):
        return torch.zeros(batch, 16, 32, 32)

    play(answer)
    options = {"device": "h100-80g", "precision": "fp32", "context": 0, "memory": 160 * MIB}
    options |= {"largest": "batch", "added_times": (None,)}
    (row,) = ckplan.torch.estimate(three_convolutions, images, **options).largest
    assert row.value > 100 and row.need_bytes <= 160 * MIB
    play(lambda convolution, what: (0,))
    (without,) = ckplan.torch.estimate(three_convolutions, images, **options).largest
    assert without.value > row.value


def test_where_cudnn_cannot_be_asked_the_line_says_so(monkeypatch):
    cudnn.advisor.cache_clear()
    try:
        assert "not a GPU with known properties for cuDNN" in cudnn.advisor("t4-16g")
        monkeypatch.setattr(cudnn, "_paths", lambda: iter(["/nowhere/libcudnn.so.9"]))
        found = estimated()
        assert found.keep_all.unknown == ["workspaces"]
        assert "pip install nvidia-cudnn-cu13" in str(found)
        assert found.keep_all.verdict(found.memory_bytes) == "probably fits"
    finally:
        cudnn.advisor.cache_clear()


def real_advisor():
    found = cudnn.advisor("h100-80g")
    if isinstance(found, str):
        pytest.skip(found)
    return found


def case(type, shape, width, size=3):
    """Returns a convolution that keeps the shape, in the order of PyTorch or with channels last."""

    def operand(*dims, last=width == "last"):
        return cudnn.Operand(dims, workspaces._strides(dims, last))

    channels = shape[1]
    w = operand(channels, channels, size, size)
    pads = (size // 2,) * 2
    return cudnn.Convolution(type, operand(*shape), w, operand(*shape), (1, 1), pads, (1, 1))


def test_the_real_cudnn_answers_for_a_gpu_that_is_not_there():
    advisor = real_advisor()
    for what in (FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT):
        first = advisor.workspaces(case("bfloat16", (256, 64, 56, 56), "first"), what)
        last = advisor.workspaces(case("bfloat16", (256, 64, 56, 56), "last"), what)
        # Its engines want channels last: they copy both images, 98 MiB each, if they are not so.
        assert first[0] >= 196 * MIB > 8 * MIB >= last[0]
        assert advisor.workspaces(case("float64", (8, 4, 8, 8), "first"), what)
    nothing = cudnn.Operand((1, 1, 1, 1), (1, 1, 1, 1))
    wrong = cudnn.Convolution("float32", nothing, nothing, nothing, (1, 1), (5, 5), (1, 1))
    assert advisor.workspaces(wrong, FORWARD) == ()


def test_each_device_with_properties_is_known_to_cudnn():
    real_advisor()
    for name in ("a100-80g", "h100-80g", "b200-180g"):
        assert device_named(name).cuda is not None
        found = cudnn.advisor(name)
        if isinstance(found, str):
            assert name == "b200-180g" and "does not support" in found
        else:
            assert found.workspaces(case("float16", (8, 64, 16, 16), "first"), FORWARD)


@pytest.mark.parametrize(
    ("version", "device", "said"),
    [
        (90702, "h100-80g", "cuDNN 9.7.2 cannot plan for an absent GPU; 9.8 can"),
        (91002, "b200-180g", "cuDNN 9.10.2 does not support a b200-180g; 9.19 does"),
    ],
)
def test_versions_that_cannot_answer_are_not_asked(version, device, said, monkeypatch):
    class Old(cudnn.Library):
        def __init__(self, path):
            self.version = version

    monkeypatch.setattr(cudnn, "Library", Old)
    cudnn.advisor.cache_clear()
    try:
        assert said in cudnn.advisor(device)
    finally:
        cudnn.advisor.cache_clear()


class Attention(nn.Module):
    def __init__(self, heads, groups):
        super().__init__()
        self.heads, self.groups = heads, groups
        self.q, self.kv = nn.Linear(64, 64 * heads), nn.Linear(64, 128 * groups)
        self.scale = nn.Parameter(torch.ones(64))

    def forward(self, x):
        batch, rows, _ = x.shape
        q = self.q(x).view(batch, rows, self.heads, 64).transpose(1, 2) * self.scale
        k, v = self.kv(x).view(batch, rows, 2 * self.groups, 64).transpose(1, 2).chunk(2, 1)
        out = nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=True, enable_gqa=self.heads != self.groups
        )
        return out.float().square().mean()


@pytest.mark.parametrize(("groups", "grouped"), [(4, 0), (2, 2 * 2 * 2 * 4 * 200 * 64)])
def test_attention_adds_up_in_buffers_of_its_own(groups, grouped):
    step = tracing.trace_step(
        lambda: Attention(4, groups), torch.zeros(2, 200, 64), tracing.Precision.named("bf16")
    )
    (found,) = workspaces.workspaces_of(step.graph(arriving=True), "h100-80g")
    (amount,) = found.amounts.values()
    # The gradient of 200 queries, which are padded to 256, and a number for each, in 32 bits.
    assert amount.bytes == 4 * 2 * 4 * 256 * (64 + 1) + grouped
    assert amount.least == 0 and amount.most >= amount.bytes


@pytest.mark.parametrize("precision", ["bf16", "bf16-mixed"])
def test_attention_of_grouped_heads_is_fused(precision):
    named = tracing.Precision.named(precision)
    step = tracing.trace_step(lambda: Attention(4, 2), torch.zeros(2, 200, 64), named)
    nodes = [operation.node for operation in step.graph(arriving=True).operations]
    by_target = {str(node.target): node for node in nodes if node is not None}
    assert not any("softmax" in target for target in by_target)
    backward = by_target["aten._scaled_dot_product_flash_attention_for_cpu_backward.default"]
    found = [(gradient.shape, gradient.dtype) for gradient in backward.meta["val"]]
    assert found == [((2, heads, 200, 64), torch.bfloat16) for heads in (4, 2, 2)]
