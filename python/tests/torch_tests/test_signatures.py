"""Tests the visible interface of a compiled model: the signature of its forward, class and keys."""

from __future__ import annotations

import copy
import inspect
import typing

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from torch_tests.training import assert_same

import ckplan.torch
from ckplan.invocation import run_program


class Classifier(nn.Module):
    """Takes its batch by the names of columns, as models of transformers do."""

    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.Linear(32, 4))

    def forward(self, features: Tensor, labels: Tensor | None = None) -> dict[str, Tensor]:
        """Returns the loss of the features."""
        scores = self.layers(features)
        return {"loss": nn.functional.cross_entropy(scores, labels)}


class Trainer:
    """Works like a trainer: keeps the columns that ``forward`` names, and trains on batches."""

    def __init__(self, model: nn.Module, rows: list[dict[str, Tensor]]):
        self.model = model
        self.columns = set(inspect.signature(model.forward).parameters)
        self.rows = [{k: v for k, v in row.items() if k in self.columns} for row in rows]

    def train(self) -> list[Tensor]:
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        for batch in DataLoader(self.rows, batch_size=8):
            if not batch:
                raise ValueError("the batch received was empty")
            self.model(**batch)["loss"].backward()
            optimizer.step()
            optimizer.zero_grad()
        return [p.detach().clone() for p in self.model.parameters()]


def rows() -> list[dict[str, Tensor]]:
    torch.manual_seed(5)
    return [
        {"features": torch.randn(8), "labels": torch.tensor(i % 4), "text": torch.tensor(i)}
        for i in range(16)
    ]


def classifier() -> Classifier:
    torch.manual_seed(3)
    return Classifier()


def compiled(model: nn.Module) -> nn.Module:
    return ckplan.torch.compile(model, budget="100%")


def in_place(model: nn.Module) -> nn.Module:
    model.compile(backend=ckplan.torch.Backend(budget="100%"), dynamic=False)
    return model


def test_the_signature_of_forward_stays():
    model = classifier()
    planned = compiled(model)
    assert inspect.signature(planned.forward) == inspect.signature(model.forward)
    assert typing.get_type_hints(planned.forward) == typing.get_type_hints(model.forward)
    assert planned.forward.__doc__ == model.forward.__doc__
    assert planned.forward.__name__ == "forward"


@pytest.mark.parametrize("way", [compiled, in_place])
def test_a_trainer_takes_its_default_columns(way):
    expected = Trainer(classifier(), rows()).train()
    trainer = Trainer(way(classifier()), rows())
    assert trainer.columns == {"features", "labels"}
    assert_same([trainer.train()], [expected])


def test_a_backend_in_place_keeps_class_and_keys():
    model, planner = classifier(), ckplan.torch.Backend(budget="100%")
    keys = list(model.state_dict())
    model.compile(backend=planner, dynamic=False)
    assert type(model) is Classifier
    assert list(model.state_dict()) == keys
    Trainer(model, rows()).train()
    (graph,) = planner.report.graphs
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    copied = copy.deepcopy(model)  # Writing a checkpoint copies the model like this.
    assert list(copied.state_dict()) == keys


def test_a_report_writes_plans_that_the_program_confirms(tmp_path):
    model, planner = classifier(), ckplan.torch.Backend(budget="100%")
    model.compile(backend=planner, dynamic=False)
    assert planner.report.write(tmp_path / "none") == []
    Trainer(model, rows()).train()
    (path,) = planner.report.write(tmp_path / "plans")
    assert path == tmp_path / "plans" / "0.plan.json"
    (graph,) = planner.report.graphs
    peak = f"peak>{graph.plan.peak_bytes}"
    answer = run_program(
        "check", str(path), str(path.with_name("0.graph.json")), f"--fail-on={peak}"
    )
    assert answer.exit_code == 0, answer.messages
    assert b"ok" in answer.output


def test_a_backend_shows_its_budget():
    assert repr(ckplan.torch.Backend(budget="60%")) == "<ckplan.torch.Backend: budget 60%>"


def test_a_backend_checks_its_arguments():
    with pytest.raises(ValueError, match="set one memory limit"):
        ckplan.torch.Backend()
