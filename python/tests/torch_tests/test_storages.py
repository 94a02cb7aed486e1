"""Tests that the planned peak counts the memory in which results lie, and reports higher peaks."""

from __future__ import annotations

import ckplan
import ckplan.torch
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from ckplan.torch import storages
from torch_tests.training import loss_of, train_both

LOSSES = {
    "mse": F.mse_loss,
    "smooth-l1": F.smooth_l1_loss,
    "huber": F.huber_loss,
    "l1": F.l1_loss,
    "soft-margin": lambda x, y: F.soft_margin_loss(x, y.sign()),
    "binary-cross-entropy": lambda x, y: F.binary_cross_entropy(x.sigmoid(), y.sigmoid()),
    "weighted-binary-cross-entropy": lambda x, y: F.binary_cross_entropy(
        x.sigmoid(), y.sigmoid(), weight=torch.rand(64), reduction="sum"
    ),
    "logits": lambda x, y: F.binary_cross_entropy_with_logits(x, y.sigmoid()),
    "kl-div": lambda x, y: F.kl_div(x.log_softmax(-1), y.softmax(-1), reduction="batchmean"),
    "cross-entropy": lambda x, y: F.cross_entropy(x, y.argmax(-1)),
    "not-reduced": lambda x, y: F.mse_loss(x, y, reduction="none").sum(),
}


class Regression(nn.Module):
    """A model that returns its loss, whose unreduced form lives at the peak."""

    def __init__(self, loss):
        super().__init__()
        self.layer, self.loss = nn.Linear(64, 64), loss

    def forward(self, batch):
        return (self.loss(self.layer(batch).tanh(), batch),)


def rows() -> torch.Tensor:
    return torch.randn(256, 64)


@pytest.mark.parametrize("name", LOSSES)
def test_the_memory_of_a_reducing_loss_is_planned(name):
    (graph,) = train_both(lambda: Regression(LOSSES[name]), rows, budget="100%").graphs
    assert graph.measured_peak_bytes == graph.plan.peak_bytes


class Spectra(nn.Module):
    """Short-time Fourier transforms by a window, compared as complex and as real numbers."""

    def __init__(self, window):
        super().__init__()
        self.layer, self.window = nn.Conv1d(1, 1, 9, padding=4), window

    def forward(self, x):
        y, total = self.layer(x[:, None])[:, 0], 0
        for n in (64, 128):
            a, b = (
                torch.stft(v, n, n // 4, window=self.window(n), return_complex=True) for v in (y, x)
            )
            total = total + (a.abs() - b.abs()).abs().mean()
            total = total + (torch.view_as_real(a) - torch.view_as_real(b)).square().mean()
            total = total + (torch.istft(a, n, n // 4, window=self.window(n)) - x).square().mean()
        return (total,)


WINDOWS = ("hann", "hamming", "blackman", "bartlett", "kaiser")


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("budget", ["100%", "75%"])
def test_windows_are_planned_with_the_element_that_is_cut_off(window, budget):
    make = getattr(torch, f"{window}_window")
    (graph,) = train_both(
        lambda: Spectra(make), lambda: torch.randn(2, 512), budget=budget, traced=True
    ).graphs
    assert graph.measured_peak_bytes <= graph.plan.peak_bytes


class Fourier(nn.Module):
    """A layer on frequencies, as of neural operators."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 8, 5, dtype=torch.cfloat))

    def forward(self, x):
        z = torch.fft.rfft2(x)
        z = z * self.weight
        z = torch.view_as_complex(torch.view_as_real(z).tanh())
        y = torch.fft.irfft2(z, s=x.shape[-2:])
        return ((torch.fft.fft(y).real + torch.fft.ifft(y.cfloat()).imag).square().mean(),)


@pytest.mark.parametrize("budget", ["100%", "80%"])
def test_transforms_of_complex_numbers_need_at_most_the_planned_peak(budget):
    (graph,) = train_both(
        Fourier, lambda: torch.randn(3, 4, 8, 8), budget=budget, traced=True
    ).graphs
    assert graph.measured_peak_bytes <= graph.plan.peak_bytes


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_bags_of_embeddings_need_at_most_the_planned_peak(mode):
    class Bags(nn.Module):
        def __init__(self):
            super().__init__()
            self.bags, self.layer = nn.EmbeddingBag(50, 8, mode=mode), nn.Linear(8, 8)

        def forward(self, ids):
            return (self.layer(self.bags(ids)).square().mean(),)

    (graph,) = train_both(Bags, lambda: torch.randint(50, (64, 9)), budget="100%").graphs
    assert graph.measured_peak_bytes <= graph.plan.peak_bytes


def test_a_peak_above_the_planned_one_gives_a_warning(monkeypatch):
    monkeypatch.setattr(storages, "unreduced_bytes", lambda _: 0)
    planned = ckplan.torch.compile(Regression(F.mse_loss), budget="100%")
    with pytest.warns(ckplan.PlanWarning, match=r"needed \d+ bytes, planned \d+"):
        loss_of(planned(rows())).backward()
    assert "ABOVE THE PLAN" in planned.ckplan.summary()


def test_a_peak_below_the_planned_one_shows_both(recwarn):
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 64)

        def forward(self, batch):
            output = self.layer(batch).tanh()
            return output.square().mean(), output.exp()

    planned = ckplan.torch.compile(Twice(), budget="100%")
    loss, _ = planned(rows())
    del _  # The plan expects it to live until the end of the step.
    loss.backward()
    (graph,) = planned.ckplan.graphs
    assert graph.measured_peak_bytes < graph.plan.peak_bytes
    assert "planned peak at most" in graph.line()
    assert f"measured {ckplan.torch.report.size(graph.measured_peak_bytes)}," in graph.line()
    assert not [w for w in recwarn if issubclass(w.category, ckplan.PlanWarning)]
