"""Tests that every network trains by every plan as in eager mode, within the planned memory."""

import pytest

from torch_tests.networks import NETWORKS
from torch_tests.training import train_both


@pytest.mark.parametrize("budget", ["100%", "80%", "65%"])
@pytest.mark.parametrize("name", NETWORKS)
def test_same_bits_within_the_planned_peak(name, budget):
    make, batch = NETWORKS[name]
    report = train_both(make, batch, traced=name == "conv-recurrent", budget=budget)
    (graph,) = report.graphs
    assert graph.plan is not None
    assert graph.measured_peak_bytes == graph.plan.peak_bytes
    assert graph.plan.peak_bytes <= int(budget[:-1]) / 100 * graph.plan.keep_all_peak_bytes
