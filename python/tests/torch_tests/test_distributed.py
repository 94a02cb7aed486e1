"""Runs two processes with gloo: gradients equal eager mode's, and are summed once."""

from __future__ import annotations

import copy
import socket
import traceback
from typing import Any

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as processes
from torch import nn
from torch_tests.networks import Bert, tokens
from torch_tests.training import assert_same, loss_of

import ckplan.torch

pytestmark = pytest.mark.skipif(not dist.is_gloo_available(), reason="PyTorch without gloo")


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def make() -> nn.Module:
    torch.manual_seed(3)
    return Bert(2, 32, 4, 64, 16)


def gradients(model: Any, parameters: list[nn.Parameter], rank: int) -> list[torch.Tensor]:
    torch.manual_seed(20 + rank)
    loss_of(model(tokens())).backward()
    return [_local(p.grad) for p in parameters if p.grad is not None]


def _local(tensor: Any) -> torch.Tensor:
    return tensor.to_local() if hasattr(tensor, "to_local") else tensor


def ddp_around_plan(rank: int) -> ckplan.torch.Report:
    """Wraps the planned model in DistributedDataParallel."""
    eager = nn.parallel.DistributedDataParallel(make())
    inner = ckplan.torch.compile(make(), budget="65%", effort="quick")
    planned = nn.parallel.DistributedDataParallel(inner)
    expected = gradients(eager, list(eager.parameters()), rank)
    assert_same([gradients(planned, list(planned.parameters()), rank)], [expected])
    return inner.ckplan


def plan_around_ddp(rank: int) -> ckplan.torch.Report:
    """Plans a DistributedDataParallel model, whose buckets divide the graph."""
    model = nn.parallel.DistributedDataParallel(make())
    planned = ckplan.torch.compile(copy.deepcopy(model), budget="90%", effort="quick")
    expected = gradients(model, list(model.parameters()), rank)
    assert_same([gradients(planned, list(planned.parameters()), rank)], [expected])
    return planned.ckplan


def buckets_share_a_budget(rank: int) -> ckplan.torch.Report:
    """Plans such a model within bytes: PyTorch compiles all buckets before the first one runs."""
    torch.manual_seed(3)
    model = nn.parallel.DistributedDataParallel(Bert(3, 128, 4, 64, 16), bucket_cap_mb=1)
    everything = ckplan.torch.compile(copy.deepcopy(model), budget="100%", effort="quick")
    gradients(everything, list(everything.parameters()), rank)
    torch._dynamo.reset()
    budget = int(0.8 * sum(g.plan.keep_all_peak_bytes for g in everything.ckplan.graphs))
    planned = ckplan.torch.compile(copy.deepcopy(model), budget=budget, effort="quick")
    expected = gradients(model, list(model.parameters()), rank)
    for step in ("in little memory", "by its share"):
        found = gradients(planned, list(planned.parameters()), rank)
        assert_same([found], [expected])
        planned.zero_grad()
        report = planned.ckplan
        assert len(report.graphs) > 2, report.summary()
        kept = 0
        for graph in report.graphs:
            assert (graph.share_bytes is None) == (step == "in little memory"), report.summary()
            assert kept + graph.plan.peak_bytes <= budget, report.summary()
            kept += graph.saved_bytes
    first = report.graphs[0]
    weights = [graph.plan.keep_all_peak_bytes for graph in report.graphs]
    assert first.share_bytes == budget * weights[0] // sum(weights), report.summary()
    return report


def sharded(rank: int) -> ckplan.torch.Report:
    """Tests FSDP2, where each process has a part of each parameter."""
    from torch.distributed.fsdp import fully_shard

    models = []
    for _ in range(2):
        model = make()
        for layer in model.layers:
            fully_shard(layer)
        fully_shard(model)
        models.append(model)
    planned = ckplan.torch.compile(models[1], budget="80%", effort="quick")
    expected = gradients(models[0], list(models[0].parameters()), rank)
    assert_same([gradients(planned, list(models[1].parameters()), rank)], [expected])
    return planned.ckplan


TASKS = (ddp_around_plan, plan_around_ddp, buckets_share_a_budget, sharded)


def work(rank: int, port: int, results: Any) -> None:
    """Runs all tasks in one of two processes, because starting PyTorch takes longer than a task."""
    torch.set_num_threads(1)
    address = f"tcp://127.0.0.1:{port}"
    dist.init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    try:
        for task in TASKS:
            torch._dynamo.reset()
            report = task(rank)
            refusals = [graph.refusal for graph in report.graphs]
            results.put((task.__name__, report.summary(), refusals))
    except Exception:
        results.put((task.__name__, traceback.format_exc(), None))
        raise
    finally:
        dist.destroy_process_group()


def test_two_processes():
    results = processes.get_context("spawn").SimpleQueue()
    processes.spawn(work, (free_port(), results), nprocs=2)
    for _ in range(2 * len(TASKS)):
        task, summary, refusals = results.get()
        assert refusals is not None, f"{task}: {summary}"
        assert refusals and not any(refusals), f"{task}: {summary}"
