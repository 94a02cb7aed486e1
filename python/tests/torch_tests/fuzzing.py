"""Fuzzes training loops: the same random loop runs with a plan and in eager mode.

Gradients, results, parameters, buffers and random numbers must be the same bit for bit, and no step
may need more memory than planned. A seed determines the network, the budget and each step: which
results it holds, drops and differentiates, how often, and under which hooks.

    python -m torch_tests.fuzzing SECONDS [FIRST_SEED]

tries one seed after another, from a random one, and exits with 1 if any failed. ``scripts/fuzz MINUTES loops`` runs it.
"""

from __future__ import annotations

import random
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import ckplan
import ckplan.torch
import torch
from torch import Tensor, nn

ROWS, WIDTH, WORDS = 12, 16, 24


class Gate(nn.Module):
    """Multiplies one half by the other: one operation with several results."""

    def forward(self, x):
        a, b = x.chunk(2, -1)
        return torch.cat([a * b.sigmoid(), b], -1)


class InPlace(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, width)

    def forward(self, x):
        y = self.layer(x)
        y.mul_(0.5)
        y[..., 0] = y[..., 1] * 2
        return y.add_(x).relu_()


class Counter(nn.Module):
    """Updates two buffers in each step; the output depends on one of them."""

    def __init__(self, width):
        super().__init__()
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("steps", torch.zeros(()))

    def forward(self, x):
        if self.training:
            self.mean.mul_(0.9).add_(x.detach().mean(0), alpha=0.1)
            self.steps.add_(1)
        return x - self.mean


class Attention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.parts = nn.Linear(width, 3 * width)

    def forward(self, x):
        q, k, v = self.parts(x).split(x.shape[-1], -1)
        return x + (q @ k.t() / 4).softmax(-1) @ v


class Residual(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def forward(self, x):
        return x + self.inner(x)


def frozen(width: int) -> nn.Module:
    return nn.Linear(width, width).requires_grad_(False)


class Spectrum(nn.Module):
    def forward(self, x):
        z = torch.fft.rfft(x)
        return torch.fft.irfft(z * z.abs().tanh(), n=x.shape[-1])


BLOCKS: list[Callable[[int], nn.Module]] = [
    lambda n: nn.Sequential(nn.Linear(n, n), nn.GELU()),
    lambda n: nn.Sequential(nn.Linear(n, n), nn.Tanh(), nn.Dropout(0.2)),
    lambda n: nn.Sequential(nn.Linear(n, n), nn.BatchNorm1d(n), nn.ReLU()),
    lambda n: nn.LayerNorm(n),
    lambda n: Residual(nn.Sequential(nn.Linear(n, 2 * n), nn.SiLU(), nn.Linear(2 * n, n))),
    lambda n: nn.Dropout(0.3),
    lambda n: Gate(),
    InPlace,
    Counter,
    Attention,
    frozen,
    lambda n: Spectrum(),
]


def _blocks(choices: random.Random, count: int) -> nn.Sequential:
    return nn.Sequential(*(choices.choice(BLOCKS)(WIDTH) for _ in range(count)))


class Network(nn.Module):
    """Returns two losses, and other results, some of which the losses depend on."""

    def __init__(self, choices: random.Random):
        super().__init__()
        self.is_sparse = choices.random() < 0.06
        self.words = nn.Embedding(WORDS, WIDTH, sparse=self.is_sparse)
        self.trunk = _blocks(choices, choices.randint(2, 5))
        self.branch = _blocks(choices, choices.randint(0, 2))
        self.head, self.other = nn.Linear(WIDTH, WORDS), nn.Linear(WIDTH, 3)
        kinds = ["none", "hidden", "view", "detached", "input", "same", "list"]
        self.extra = choices.choice(kinds)
        self.shares = choices.random() < 0.5

    def forward(self, ids):
        h = self.trunk(self.words(ids))
        b = self.branch(h if self.shares else h.detach())
        logits, aux = self.head(h), self.other(b)
        found = {
            "loss": nn.functional.cross_entropy(logits, ids),
            "second": aux.square().mean(),
            "logits": logits,
            "aux": aux.tanh(),
        }
        if self.extra == "hidden":
            found["extra"] = h
        elif self.extra == "view":
            found["extra"] = h[:2].flatten()
        elif self.extra == "detached":
            found["extra"] = h.detach()
        elif self.extra == "input":
            found["extra"] = ids
        elif self.extra == "same":
            found["extra"] = logits
        elif self.extra == "list":
            found["extra"] = [b, h.sum(0)]
        return found


@dataclass
class Loop:
    """A training loop: what it has computed so far, in order, and what it holds."""

    model: Any
    ids: list[Tensor]
    parameters: list[nn.Parameter]
    seen: list[tuple[str, Any]] = field(default_factory=list)
    held: list[Any] = field(default_factory=list)

    def see(self, name: str, value: Any) -> None:
        for leaf in torch.utils._pytree.tree_leaves(value):
            self.seen.append((name, _plain(leaf)))


def _plain_name(name: str) -> str:
    return name.removeprefix("_orig_mod.")


def _plain(value: Any) -> Any:
    if not isinstance(value, Tensor):
        return value
    return value.detach().to_dense().clone() if value.is_sparse else value.detach().clone()


Use = Callable[[Loop, Callable[[], dict[str, Any]]], None]


def loss_alone(loop: Loop, call: Any) -> None:
    loss = call()["loss"]
    loss.backward()
    loop.see("loss", loss)


def all_held(loop: Loop, call: Any) -> None:
    output = call()
    output["loss"].backward()
    loop.see("output", output)


def held_until_the_next_step(loop: Loop, call: Any) -> None:
    output = call()
    loop.held[:] = [output]
    output["loss"].backward()
    loop.see("output", output)


def aux_held(loop: Loop, call: Any) -> None:
    output = call()
    loss, aux = output["loss"], output["aux"]
    del output
    loss.backward()
    loop.see("aux", aux)


def view_held(loop: Loop, call: Any) -> None:
    output = call()
    loss, part = output["loss"], output["logits"].detach()[:2]
    del output
    loss.backward()
    loop.see("part", part)


def both_losses(loop: Loop, call: Any) -> None:
    output = call()
    (output["loss"] + 0.5 * output["second"]).backward()
    loop.see("second", output["second"])


def second_loss(loop: Loop, call: Any) -> None:
    call()["second"].backward()


def with_aux(loop: Loop, call: Any) -> None:
    output = call()
    (output["loss"] + output["aux"].sum() + output["logits"].square().mean()).backward()


def losses_apart(loop: Loop, call: Any) -> None:
    """Differentiates two losses of one call separately, as PCGrad does."""
    output = call()
    first = grads(output["loss"], loop.parameters, retain_graph=True)
    second = grads(output["second"], loop.parameters)
    for parameter, a, b in zip(loop.parameters, first, second):
        total = [g for g in (a, b) if g is not None]
        if total:
            grad = sum(total[1:], total[0])
            parameter.grad = grad if parameter.grad is None else parameter.grad + grad
    loop.see("first", [None if g is None else g for g in first if g is not None and g.any()])


def grads(loss: Tensor, parameters: list[nn.Parameter], **options: Any) -> list[Any]:
    return list(torch.autograd.grad(loss, parameters, allow_unused=True, **options))


def three_passes(loop: Loop, call: Any) -> None:
    output = call()
    output["loss"].backward(retain_graph=True)
    output["second"].backward(retain_graph=True)
    output["loss"].backward()


def retained_and_dropped(loop: Loop, call: Any) -> None:
    call()["loss"].backward(retain_graph=True)


def two_calls(loop: Loop, call: Any) -> None:
    first, second = call()["loss"], call()
    (first + second["loss"]).backward()
    loop.see("second call", second["aux"])


def two_calls_in_turn(loop: Loop, call: Any) -> None:
    first, second = call(), call()
    first["loss"].backward()
    second["loss"].backward()


def no_backward(loop: Loop, call: Any) -> None:
    output = call()
    loop.see("output", output["logits"])


def evaluated(loop: Loop, call: Any) -> None:
    loop.model.eval()
    with torch.no_grad():
        loop.see("evaluated", call()["loss"])
    loop.model.train()
    call()["loss"].backward()


def hook_on_result(loop: Loop, call: Any) -> None:
    output = call()
    output["logits"].register_hook(lambda g: g * 2)
    (output["loss"] + output["logits"].mean()).backward()


def changed_after(loop: Loop, call: Any) -> None:
    output = call()
    output["loss"].backward()
    with torch.no_grad():
        output["aux"].add_(1)
    loop.see("aux", output["aux"])


def gradient_of_results(loop: Loop, call: Any) -> None:
    """Takes the gradient of a result, and passes it to the backward pass of the model."""
    output = call()
    logits = output["logits"]
    (slope,) = torch.autograd.grad(logits.square().mean(), [logits], retain_graph=True)
    logits.backward(slope)


USES: list[Use] = [
    loss_alone,
    all_held,
    held_until_the_next_step,
    aux_held,
    view_held,
    both_losses,
    second_loss,
    with_aux,
    losses_apart,
    three_passes,
    retained_and_dropped,
    two_calls,
    two_calls_in_turn,
    no_backward,
    evaluated,
    hook_on_result,
    changed_after,
    gradient_of_results,
]


def _offloaded(tensor: Tensor) -> Any:
    return tensor.detach().numpy().copy() if not tensor.is_sparse else tensor


def _loaded(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else torch.from_numpy(value)


class Copies:
    """Saves copies and returns copies of them, as libraries that offload activations do."""

    def __init__(self) -> None:
        self.tensors: dict[int, Tensor] = {}

    def pack(self, tensor: Tensor) -> int:
        self.tensors[len(self.tensors)] = tensor.clone()
        return len(self.tensors) - 1

    def unpack(self, number: int) -> Tensor:
        return self.tensors[number].clone()


def hooks(kind: str) -> Any:
    saved = torch.autograd.graph.saved_tensors_hooks
    if kind == "clone":
        return saved(lambda t: t.clone(), lambda t: t)
    if kind == "numpy":
        return saved(_offloaded, _loaded)
    if kind == "copies":
        copies = Copies()
        return saved(copies.pack, copies.unpack)
    return saved(lambda t: t, lambda t: t)


@dataclass
class Case:
    """A network, a budget and a training loop, determined by a seed."""

    seed: int

    def __post_init__(self) -> None:
        choices = random.Random(self.seed)
        self.budget: int | str = choices.choice(["100%", "95%", "90%", "80%", "70%", "60%", "min"])
        self.algo = "dtr" if self.budget == "min" or choices.random() < 0.1 else "best"
        self.returns = "loss" if choices.random() < 0.2 else "all"
        self.is_in_place = choices.random() < 0.5
        self.in_bytes = choices.random() < 0.15
        steps = choices.randint(3, 6)
        usual = choices.choice(USES)
        changes = choices.choice([0.0, 0.0, 0.3, 1.0])
        self.uses = [
            choices.choice(USES) if choices.random() < changes else usual for _ in range(steps)
        ]
        kind = choices.choice(["clone", "numpy", "copies", "same"])
        share = choices.choice([0.0, 0.0, 0.0, 0.4, 1.0])
        self.hooks = [kind if choices.random() < share else "" for _ in range(steps)]
        self.accumulates = choices.random() < 0.3
        self.network = choices.randrange(1 << 30)

    def describe(self) -> str:
        steps = ", ".join(
            f"{use.__name__}{f' under {kind} hooks' if kind else ''}"
            for use, kind in zip(self.uses, self.hooks)
        )
        way = "in place" if self.is_in_place else "compiled"
        accumulates = ", accumulating" if self.accumulates else ""
        return f"{way}, budget {self.budget}, returns {self.returns}{accumulates}: {steps}"

    def make(self) -> Network:
        torch.manual_seed(self.network)
        return Network(random.Random(self.network))

    def run(self, model: Any) -> list[tuple[str, Any]]:
        """Returns everything that a loop computes."""
        torch.manual_seed(self.seed)
        parameters = [p for p in model.parameters() if p.requires_grad]
        loop = Loop(model, [torch.randint(WORDS, (ROWS,)) for _ in range(3)], parameters)
        dense = [p for n, p in model.named_parameters() if p.requires_grad and "words" not in n]
        optimizer = torch.optim.SGD(dense, 0.05, momentum=0.9)
        for step, (use, kind) in enumerate(zip(self.uses, self.hooks)):
            ids = loop.ids[step % 3]

            def call(kind: str = kind, ids: Tensor = ids) -> Any:
                if not kind:
                    return loop.model(ids)
                with hooks(kind):
                    return loop.model(ids)

            use(loop, call)
            for name, parameter in model.named_parameters():
                # For unused parts, compiled code has gradients of zeros, and eager mode has none.
                if parameter.grad is not None and parameter.grad.to_dense().any():
                    loop.see(f"step {step}, gradient of {_plain_name(name)}", parameter.grad)
            if not self.accumulates or step % 2:
                for parameter in dense:
                    if parameter.grad is None:
                        parameter.grad = torch.zeros_like(parameter)
                optimizer.step()
                optimizer.zero_grad()
                model.zero_grad()
            for name, value in model.state_dict().items():
                loop.see(f"step {step}, {_plain_name(name)}", value)
        loop.see("random number", torch.rand(2))
        return loop.seen

    def planned(self, budget: int | str) -> tuple[Any, ckplan.torch.Report]:
        """Returns the model by a plan, and its report."""
        options: dict[str, Any] = {"algo": self.algo, "returns": self.returns}
        model = self.make()
        if self.is_in_place:
            planner = ckplan.torch.Backend(budget, **options)
            model.compile(backend=planner, dynamic=False)
            return model, planner.report
        compiled = ckplan.torch.compile(model, budget, **options)
        return compiled, compiled.ckplan

    def check(self) -> list[str]:
        """Runs the loop both ways and returns what is wrong with the planned one."""
        torch._dynamo.reset()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            expected = self.run(self.make())
            budget: int | str = self._bytes() if self.in_bytes else self.budget
            for _ in range(3):
                try:
                    model, report = self.planned(budget)
                    found = self.run(model)
                    break
                except Exception as error:
                    inner = getattr(error, "inner_exception", error)
                    least = getattr(inner, "least_bytes", None)
                    if isinstance(inner, ckplan.InfeasibleError) and least and budget != least:
                        budget = least
                        torch._dynamo.reset()
                        continue
                    return ["".join(traceback.format_exception(error)[-12:])]
            else:
                return []  # No budget fits: a graph's least depends on its share.
        faults = _differences(found, expected)
        if faults and self._is_as_traced(found):
            faults = []  # PyTorch traces other operators than eager mode runs.
        for graph in report.graphs:
            if graph.is_above_plan:
                faults.append(f"above the plan: {graph.line()}")
        faults += [note for note in report.notes if "failed (the modules" in note]
        faults += [str(w.message) for w in caught if "bug in ckplan" in str(w.message)]
        return faults

    def _is_as_traced(self, found: list[tuple[str, Any]]) -> bool:
        """Returns whether PyTorch's own backend for debugging computes the same, without a plan."""
        torch._dynamo.reset()
        traced = torch.compile(self.make(), backend="aot_eager", dynamic=False)
        with torch._functorch.config.patch(donated_buffer=False):
            return not _differences(found, self.run(traced))

    def _bytes(self) -> int:
        """Returns a limit in bytes: what the model needs to keep everything, or a bit less."""
        model, report = self.planned("100%")
        loss_alone(Loop(model, [], []), lambda: model(torch.randint(WORDS, (ROWS,))))
        torch._dynamo.reset()
        most = sum(graph.plan.peak_bytes for graph in report.graphs if graph.plan is not None)
        return max(1, most * 9 // 10)


def _differences(found: list[tuple[str, Any]], expected: list[tuple[str, Any]]) -> list[str]:
    if [name for name, _ in found] != [name for name, _ in expected]:
        mine, theirs = {n for n, _ in found}, {n for n, _ in expected}
        return [f"other results: {sorted(mine ^ theirs)[:4]}"]
    for (name, mine), (_, theirs) in zip(found, expected):
        if isinstance(mine, Tensor) and not torch.equal(mine, theirs):
            away = (mine.double() - theirs.double()).abs().max().item()
            return [f"{name} differs by {away:.3g}"]
    return []


def main() -> int:
    seconds = float(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(2**30)
    print(f"from seed {first}", flush=True)
    torch.set_num_threads(1)
    end, count, failed = time.monotonic() + seconds, 0, []
    while time.monotonic() < end:
        seed = first + count
        faults = Case(seed).check()
        count += 1
        if faults:
            failed.append(seed)
            print(f"seed {seed}: {Case(seed).describe()}", *faults, sep="\n  ", flush=True)
        if count % 100 == 0:
            print(f"{count} training loops", flush=True)
    print(f"{count} training loops, {len(failed)} failed{f': seeds {failed}' if failed else ''}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
