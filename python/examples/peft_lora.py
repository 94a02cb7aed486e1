"""Trains adapters by PEFT, within 60 % of the memory; frozen weights save nothing for gradients.

    python python/examples/peft_lora.py FOLDER
"""

import sys

import torch
from peft import LoraConfig, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

import ckplan.torch

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=2,
    use_cache=False,
)
base = LlamaForCausalLM(config)
adapters = LoraConfig(r=4, target_modules=["q_proj", "v_proj"], task_type="CAUSAL_LM")

planner = ckplan.torch.Backend(budget="80%", returns="loss")
model = get_peft_model(base, adapters)
model.compile(backend=planner, dynamic=False)  # or base.compile(...) before: the plan is the same
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3)
for _ in range(3):
    tokens = torch.randint(64, (4, 16))
    model(input_ids=tokens, labels=tokens).loss.backward()
    optimizer.step()
    optimizer.zero_grad()
model.save_pretrained(sys.argv[1])
print(planner.summary())
