"""Trains a model of transformers by its Trainer, within 60 % of the memory.

    python python/examples/transformers_trainer.py FOLDER
"""

import sys

import torch
from transformers import LlamaConfig, LlamaForCausalLM, Trainer, TrainingArguments

import ckplan.torch
from ckplan.torch.transformers import PlanCallback

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    use_cache=False,
)
model = LlamaForCausalLM(config)
rows = [{"input_ids": tokens, "labels": tokens} for tokens in torch.randint(64, (24, 16))]
arguments = TrainingArguments(
    sys.argv[1], per_device_train_batch_size=4, max_steps=4, save_steps=2, report_to="none"
)

planner = ckplan.torch.Backend(budget="60%", returns="loss")
trainer = Trainer(model, arguments, train_dataset=rows, callbacks=[PlanCallback(planner)])
trainer.train()
trainer.save_model()
print(planner.summary())
