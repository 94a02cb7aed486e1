"""Tests the trainers of other libraries: their models train by a plan with eager mode's bits."""

from __future__ import annotations

import copy
import json
import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import ckplan.torch
import pytest
import torch
from torch import Tensor, nn

from ckplan.torch.estimation.answer import Largest

ROOT = Path(__file__).parents[3]

for library in ("transformers", "accelerate", "lightning", "peft"):
    pytest.importorskip(library)

import lightning.pytorch as lightning  # noqa: E402
from accelerate import Accelerator  # noqa: E402
from peft import LoraConfig, get_peft_model  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments  # noqa: E402

from ckplan.torch import lightning as planned_lightning  # noqa: E402
from ckplan.torch.lightning import BatchSizeFinder  # noqa: E402
from ckplan.torch.lightning import PlanCallback as LightningCallback  # noqa: E402
from ckplan.torch.transformers import PlanCallback as TransformersCallback  # noqa: E402


@pytest.mark.parametrize(
    "name", ["transformers_trainer", "accelerate_loop", "lightning_trainer", "peft_lora"]
)
def test_examples(name, tmp_path, monkeypatch, capsys):
    path = ROOT / "python" / "examples" / f"{name}.py"
    monkeypatch.setattr(sys, "argv", [str(path), str(tmp_path / "trained")])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    planner = runpy.run_path(str(path), run_name="__main__")["planner"]
    (graph,) = planner.report.graphs
    assert graph.measured_peak_bytes <= graph.plan.peak_bytes
    assert graph.recomputed
    assert capsys.readouterr().out.endswith(planner.summary() + "\n")
    # The page shows the end of each example.
    shown = path.read_text(encoding="utf-8").partition("\nplanner = ")[2]
    assert f"\nplanner = {shown}```" in (ROOT / "docs" / "pytorch.md").read_text(encoding="utf-8")


def same(found: dict[str, Tensor], expected: dict[str, Tensor]) -> bool:
    """Returns whether keys and all bits are equal."""
    is_same = [torch.equal(found[key], expected[key]) for key in expected if key in found]
    return list(found) == list(expected) and all(is_same)


def llama() -> LlamaForCausalLM:
    torch.manual_seed(3)
    sizes = {"vocab_size": 64, "hidden_size": 32, "intermediate_size": 64}
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "attention_dropout": 0.1}
    return LlamaForCausalLM(LlamaConfig(**sizes, **layers, use_cache=False))


class Rows(torch.utils.data.Dataset):
    """Ten rows of tokens; the Trainer leaves out the column that the model does not take."""

    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> dict[str, object]:
        tokens = torch.randint(64, (16,), generator=torch.Generator().manual_seed(index))
        return {"input_ids": tokens, "labels": tokens, "text": f"row {index}"}


def trained(folder: Path, callbacks: list[object], resume: str | None = None) -> Trainer:
    """Trains two epochs of three batches, of which the last one is smaller."""
    arguments = TrainingArguments(
        str(folder),
        per_device_train_batch_size=4,
        num_train_epochs=2,
        save_steps=2,
        logging_steps=1,
        report_to="none",
        use_cpu=True,
        disable_tqdm=True,
    )
    trainer = Trainer(llama(), arguments, train_dataset=Rows(), callbacks=callbacks)
    trainer.train(resume_from_checkpoint=resume)
    return trainer


def losses(trainer: Trainer) -> list[float]:
    return [row["loss"] for row in trainer.state.log_history if "loss" in row]


def test_a_trainer_of_transformers(tmp_path):
    expected = trained(tmp_path / "eager", [])
    planner = ckplan.torch.Backend(budget="70%", returns="loss")
    found = trained(tmp_path / "planned", [TransformersCallback(planner)])
    assert type(found.model) is LlamaForCausalLM
    assert same(found.model.state_dict(), expected.model.state_dict())
    assert losses(found) == losses(expected) and len(losses(found)) == 6
    # What is saved is the model, as without a plan.
    found.save_model()
    loaded = LlamaForCausalLM.from_pretrained(tmp_path / "planned")
    assert same(loaded.state_dict(), expected.model.state_dict())
    # Checkpoints have the figures, and training resumes from them.
    checkpoint = tmp_path / "planned" / "checkpoint-2"
    history = json.loads((checkpoint / "trainer_state.json").read_text())["log_history"]
    (row,) = (row for row in history if "ckplan_planned_peak_bytes" in row)
    first, _ = planner.report.graphs  # The second one is of the smaller batch.
    assert row["ckplan_planned_peak_bytes"] == first.plan.peak_bytes
    assert row["ckplan_measured_peak_bytes"] == first.measured_peak_bytes
    assert row["ckplan_measured_peak_bytes"] <= row["ckplan_planned_peak_bytes"]
    assert row["step"] == 1
    torch._dynamo.reset()
    again = TransformersCallback(ckplan.torch.Backend(budget="70%", returns="loss"))
    resumed = trained(tmp_path / "planned", [again], resume=str(checkpoint))
    assert same(resumed.model.state_dict(), expected.model.state_dict())
    assert again.planner.report.graphs[0].plan is not None


def test_what_the_trainer_prints_has_the_figures():
    callback = TransformersCallback(ckplan.torch.Backend(budget="100%"))
    model, state = nn.Linear(4, 4), SimpleNamespace(log_history=[], epoch=0.5, global_step=1)
    callback.on_train_begin(None, state, None, model=model)
    model(torch.randn(2, 4)).sum().backward()
    callback.on_step_end(None, state, None)
    callback.on_step_end(None, state, None)
    assert len(state.log_history) == 1
    logs: dict[str, object] = {}
    callback.on_log(None, state, None, logs=logs)
    assert logs == callback.planner.report.figures() and logs
    logs.clear()
    callback.on_log(None, state, None, logs=logs)
    assert logs == {}


def mlp() -> nn.Sequential:
    torch.manual_seed(3)
    layers = [nn.Sequential(nn.Linear(32, 32), nn.GELU(), nn.Dropout(0.1)) for _ in range(4)]
    return nn.Sequential(*layers)


def batches() -> torch.utils.data.DataLoader:
    rows = torch.randn(32, 32, generator=torch.Generator().manual_seed(5))
    return torch.utils.data.DataLoader(torch.utils.data.TensorDataset(rows), batch_size=4)


def accelerated(model: nn.Module, folder: Path, resumes: bool = False) -> nn.Module:
    """Trains four steps of two batches, and saves the state after two of them, or begins there."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
    model, optimizer, loader = accelerator.prepare(model, optimizer, batches())
    torch.manual_seed(9)
    if resumes:
        accelerator.load_state(str(folder))
    for place, (rows,) in enumerate(loader):
        if resumes and place < 4:
            continue
        with accelerator.accumulate(model):
            accelerator.backward(model(rows).square().mean())
            optimizer.step()
            optimizer.zero_grad()
        if place == 3 and not resumes:
            accelerator.save_state(str(folder))
    return accelerator.unwrap_model(model)


def test_accelerate(tmp_path):
    expected = accelerated(mlp(), tmp_path / "eager")
    planner = ckplan.torch.Backend(budget="80%")
    model = mlp()
    model.compile(backend=planner, dynamic=False)
    found = accelerated(model, tmp_path / "planned")
    assert same(found.state_dict(), expected.state_dict())
    (graph,) = planner.report.graphs
    assert graph.recomputed and graph.measured_peak_bytes <= graph.plan.peak_bytes
    saved = load_file(tmp_path / "planned" / "model.safetensors")
    assert sorted(saved) == sorted(expected.state_dict())
    other = mlp()
    other.compile(backend=ckplan.torch.Backend(budget="80%"), dynamic=False)
    resumed = accelerated(other, tmp_path / "planned", resumes=True)
    expected = accelerated(mlp(), tmp_path / "eager", resumes=True)
    assert same(resumed.state_dict(), expected.state_dict())


def test_peft_before_and_after(tmp_path):
    adapters = LoraConfig(
        r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM", lora_dropout=0.1
    )

    def states(is_before: bool, planner: ckplan.torch.Backend | None) -> dict[str, Tensor]:
        base = llama()
        torch.manual_seed(4)
        model = get_peft_model(copy.deepcopy(base), adapters)
        inner = model.base_model.model
        if planner is not None:
            (inner if is_before else model).compile(backend=planner, dynamic=False)
        weights = [p for p in model.parameters() if p.requires_grad]
        optimizer = torch.optim.SGD(weights, 0.1)
        for _ in range(2):
            tokens = torch.randint(64, (4, 16))
            model(input_ids=tokens, labels=tokens).loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        model.save_pretrained(tmp_path)
        return {**model.state_dict(), **load_file(tmp_path / "adapter_model.safetensors")}

    expected = states(False, None)
    peaks = set()
    for is_before in (True, False):
        torch._dynamo.reset()
        planner = ckplan.torch.Backend(budget="80%", returns="loss")
        assert same(states(is_before, planner), expected)
        (graph,) = planner.report.graphs
        assert graph.recomputed
        peaks.add(graph.plan.peak_bytes)
    assert len(peaks) == 1


class Module(lightning.LightningModule):
    """Calls itself in its training step, or its layers."""

    def __init__(self, calls_itself: bool):
        super().__init__()
        self.layers = mlp()
        self.calls_itself = calls_itself
        self.batch_size = 4

    def forward(self, rows: Tensor) -> Tensor:
        return self.layers(rows)

    def training_step(self, batch: list[Tensor]) -> Tensor:
        (rows,) = batch
        loss = (self(rows) if self.calls_itself else self.layers(rows)).square().mean()
        self.log("loss", loss)
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.AdamW(self.parameters(), 1e-2)

    def train_dataloader(self) -> torch.utils.data.DataLoader:
        return batches()


def fit(module: Module, folder: Path, callbacks: list[object], start: str | None = None) -> Path:
    """Trains six steps, and returns the path of the last checkpoint."""
    saver = lightning.callbacks.ModelCheckpoint(
        folder, "{step}", every_n_train_steps=3, save_top_k=-1
    )
    trainer = lightning.Trainer(
        max_steps=6,
        accelerator="cpu",
        callbacks=[saver, *callbacks],
        logger=lightning.loggers.CSVLogger(folder),
        log_every_n_steps=1,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    torch.manual_seed(9)
    trainer.fit(module, ckpt_path=start)
    return Path(trainer.logger.log_dir)


@pytest.mark.parametrize("calls_itself", [True, False])
def test_lightning(calls_itself, tmp_path):
    expected = Module(calls_itself)
    fit(expected, tmp_path / "eager", [])
    planner = ckplan.torch.Backend(budget="80%")
    found = Module(calls_itself)
    logs = fit(found, tmp_path / "planned", [LightningCallback(planner)])
    assert same(found.state_dict(), expected.state_dict())
    (graph,) = planner.report.graphs
    assert graph.recomputed
    header, *rows = (logs / "metrics.csv").read_text().splitlines()
    at = header.split(",").index("ckplan_measured_peak_bytes")
    logged = [row.split(",")[at] for row in rows if row.split(",")[at]]
    assert logged[-1] == str(graph.measured_peak_bytes)
    # A checkpoint has the keys of eager mode's.
    files = [tmp_path / way / "step=6.ckpt" for way in ("eager", "planned")]
    states = [torch.load(file, weights_only=False)["state_dict"] for file in files]
    assert same(states[1], states[0])


def test_lightning_resumes(tmp_path):
    ways = []
    for callbacks in ([], [LightningCallback(ckplan.torch.Backend(budget="80%"))]):
        folder = tmp_path / str(len(ways))
        fit(Module(True), folder, callbacks)
        torch._dynamo.reset()
        module = Module(True)
        again = [LightningCallback(ckplan.torch.Backend(budget="80%"))] if callbacks else []
        fit(module, tmp_path / f"again {len(ways)}", again, str(folder / "step=3.ckpt"))
        ways.append(module.state_dict())
    assert same(ways[1], ways[0])


class Aside(Module):
    """Calls nothing that is a module."""

    def training_step(self, batch: list[Tensor]) -> Tensor:
        return nn.functional.linear(batch[0], self.layers[0][0].weight).square().mean()


def test_a_module_that_is_never_called_is_named(tmp_path):
    planner = ckplan.torch.Backend(budget="80%")
    with pytest.warns(ckplan.PlanWarning, match="PyTorch compiled no graph of the model"):
        fit(Aside(True), tmp_path, [LightningCallback(planner)])
    assert "nothing is planned" in planner.summary()


@pytest.mark.parametrize("callback", [TransformersCallback, LightningCallback])
def test_a_callback_takes_a_backend(callback):
    with pytest.raises(TypeError, match=r"PlanCallback\(ckplan.torch.Backend\(budget=\"60%\"\)\)"):
        callback("60%")


def found_rows(*rows: tuple[int | None, int | None, int]) -> SimpleNamespace:
    """Returns what the finder reads of an estimate for a device of 100 bytes."""
    largest = [Largest("batch", added, value, need) for added, value, need in rows]
    return SimpleNamespace(largest=largest, memory_bytes=100)


@pytest.mark.parametrize(
    ("added", "times", "rows", "size"),
    [
        (None, (None,), [(None, 20, 90)], 20),
        (30, (None, 30), [(None, 20, 90), (30, 40, 100)], 32),  # The loader has 32 rows.
        (30, (None, 30), [(None, 20, 90), (30, 30, 101)], 20),
        (10, (None, 10), [(None, None, 0), (10, 3, 95)], 3),
    ],
)
def test_the_finder_sets_the_largest_batch_that_fits(
    added, times, rows, size, tmp_path, monkeypatch
):
    asked = {}

    def estimated(*_, **options):
        asked.update(options)
        return found_rows(*rows)

    monkeypatch.setattr(planned_lightning, "estimate", estimated)
    finder, module = BatchSizeFinder("a100-40g", added_time=added), Module(True)
    fit(module, tmp_path, [finder])
    assert module.batch_size == finder.optimal_batch_size == size
    assert asked["added_times"] == times
    assert (asked["device"], asked["precision"]) == ("a100-40g", "fp32")
    assert type(asked["optimizer"]([nn.Parameter(torch.zeros(1))])) is torch.optim.AdamW


@pytest.mark.parametrize(
    ("finder", "error", "message"),
    [
        ({"device": None}, ValueError, "the trainer uses cpu; pass a device"),
        ({"memory": "1MiB"}, ckplan.torch.EstimateError, "no batch fits, not even 1:\n_Step"),
    ],
)
def test_a_finder_that_finds_nothing_says_why(finder, error, message, tmp_path):
    with pytest.raises(error, match=message):
        fit(Module(True), tmp_path, [BatchSizeFinder(**{"device": "a100-40g", **finder})])


def test_the_finder_checks_the_added_time():
    with pytest.raises(ValueError, match="added_times must be percentages above 0, or None, not 0"):
        BatchSizeFinder("a100-40g", added_time=0)


def test_the_finder_captures_a_step_with_metrics():
    torchmetrics = pytest.importorskip("torchmetrics")

    class Metered(Module):
        def __init__(self):
            super().__init__(True)
            self.mean = torchmetrics.MeanMetric()

        def training_step(self, batch: list[Tensor], batch_idx: int) -> dict[str, Tensor]:
            loss = super().training_step(batch)
            self.mean(loss)
            self.log("mean", self.mean)
            return {"loss": loss}

    module = Metered()
    keys = list(module.state_dict())
    found = ckplan.torch.estimate(
        lambda: planned_lightning._Step(planned_lightning._fake(module)),
        ([torch.randn(4, 32)],),
        device="a100-40g",
        precision="fp32",
    )
    assert found.parameters == sum(p.numel() for p in module.parameters())
    assert list(module.state_dict()) == keys
    assert isinstance(module.mean, torchmetrics.MeanMetric)
