#!/usr/bin/env python3
"""Make a corpus of weight-free ONNX graphs for planner tests.

Every graph is written by a public exporter (torch.onnx, TorchScript or dynamo)
from a public model library with random weights, or copied from the onnx wheel.
Weights are then stripped: each initializer of more than SMALL elements keeps its
name, type and shape but points (data_location = EXTERNAL) into `weights.bin`, an
empty file beside the models. onnx.checker.check_model(path) and shape
inference accept such a file; "this is a parameter" stays visible.

usage: make_models.py [-o DIR] [-j N] [--timeout S] [--list] [NAME-REGEX ...]
needs: torch torchvision timm transformers diffusers segmentation-models-pytorch
       onnx onnxscript     (versions used are recorded in MANIFEST.json)
"""
import argparse, collections, gc, hashlib, importlib.metadata, io, json, os, re, signal
import sys, tempfile, time, traceback, warnings

warnings.simplefilter("ignore")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
import onnx
from onnx import TensorProto

SMALL = 64           # float initializers up to this many elements keep their values
SMALL_INT = 1024     # integer/bool ones too (they may be shapes, indices, axes)
SPECS = {}           # name -> (source, description, function)


def spec(name, source, desc):
    def deco(fn):
        SPECS[name] = (source, desc, fn)
        return fn
    return deco


# ---------------------------------------------------------------- stripping
def numel(t):
    n = 1
    for d in t.dims:
        n *= d
    return n


ELEM = {1: 4, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4, 7: 8, 9: 1, 10: 2, 11: 8, 12: 4, 13: 8, 16: 2}


def graphs(g):
    yield g
    for n in g.node:
        for a in n.attribute:
            for s in ([a.g] if a.HasField("g") else []) + list(a.graphs):
                yield from graphs(s)


MODULE_KEYS = ("pkg.torch.onnx.name_scopes", "pkg.torch.onnx.class_hierarchy")


def strip(m, keep_modules=False):
    """Drop weights and exporter chatter (stack traces hold local paths), but for what `ckplan modules` reads."""
    off = 0
    for g in graphs(m.graph):
        tensors = list(g.initializer)
        tensors += [a.t for n in g.node for a in n.attribute if n.op_type == "Constant" and a.HasField("t")
                    and numel(a.t) > 4096]
        for t in tensors:
            n = numel(t)
            if n <= (SMALL_INT if t.data_type in (6, 7, 9) else SMALL) and t.data_location != TensorProto.EXTERNAL:
                continue
            for f in ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data"):
                t.ClearField(f)
            del t.external_data[:]
            t.data_location = TensorProto.EXTERNAL
            size = n * ELEM[t.data_type]
            for k, v in (("location", "weights.bin"), ("offset", off), ("length", size)):
                e = t.external_data.add()
                e.key, e.value = k, str(v)
            off += size
        for x in list(g.node) + list(g.input) + list(g.output) + list(g.value_info) + list(g.initializer):
            x.doc_string = ""
            kept = [(p.key, p.value) for p in x.metadata_props if keep_modules and p.key in MODULE_KEYS and isinstance(x, onnx.NodeProto)]
            del x.metadata_props[:]
            for key, value in kept:
                x.metadata_props.add(key=key, value=value)
        del g.value_info[:]          # the planner must infer shapes itself
        g.doc_string = ""
        del g.metadata_props[:]
    for fn in m.functions:
        fn.doc_string = ""
        del fn.metadata_props[:]
        for x in list(fn.node) + list(fn.value_info):
            x.doc_string = ""
            del x.metadata_props[:]
    del m.metadata_props[:]
    m.doc_string = ""
    return m


# ---------------------------------------------------------------- exporters
def ts(model, args, names, outputs=("y",), dyn=None, train=True, fold=False, opset=None):
    """TorchScript exporter; TRAINING keeps BatchNormalization un-fused, Dropout in the graph."""
    import torch
    model.train(train)
    axes = {n: {0: "N"} for n in list(names) + list(outputs)} if dyn is None else dyn
    f = io.BytesIO()
    torch.onnx.export(
        model, tuple(args), f, dynamo=False,
        training=torch.onnx.TrainingMode.TRAINING if train else torch.onnx.TrainingMode.EVAL,
        do_constant_folding=fold, keep_initializers_as_inputs=False,
        input_names=list(names), output_names=list(outputs), dynamic_axes=axes, opset_version=opset)
    del model
    return onnx.load_from_string(f.getvalue()), f"torch.onnx.export(dynamo=False, training={'TRAINING' if train else 'EVAL'}, do_constant_folding={fold})"


def dyn(model, args, names, outputs=None, shapes=None, train=False, optimize=True, opset=None, kwargs=None):
    """dynamo exporter; with meta() no weights are ever made."""
    import torch, onnx_ir as ir
    model.train(train)
    if shapes is None:
        shapes = {n: ({0: torch.export.Dim("N")}) for n in names}
    kw = dict(zip(names, args)) if kwargs is None else kwargs
    opts = dict(dynamo=True, optimize=optimize, input_names=list(names), output_names=outputs, opset_version=opset, verbose=False)
    try:
        prog = torch.onnx.export(model, (), kwargs=kw, dynamic_shapes=shapes, **opts)
    except torch.onnx._internal.exporter._errors.ConversionError as e:
        if "name 'L' is not defined" not in str(e):
            raise
        ep = torch.export.export(model, (), kw, dynamic_shapes=shapes, strict=False)   # torch 2.15 cannot decompose its own guard call
        for n in list(ep.graph_module.graph.nodes):
            if n.op == "call_module" and n.target == "_guards_fn":
                ep.graph_module.graph.erase_node(n)
        ep.graph_module.recompile()
        prog = torch.onnx.export(ep, (), **opts)
    off = 0
    for v in prog.model.graph.initializers.values():
        t = v.const_value
        n = 1
        for d in t.shape:
            n *= int(d)
        if n > (SMALL_INT if t.dtype.value in (6, 7, 9) else SMALL):
            size = n * ELEM[t.dtype.value]
            v.const_value = ir.ExternalTensor("weights.bin", off, size, t.dtype, shape=t.shape, name=v.name)
            off += size
    return ir.to_proto(prog.model), f"torch.onnx.export(dynamo=True, optimize={optimize}), model.{'train' if train else 'eval'}()"


def meta(make, dtype=None):
    """Build a model of any size in no memory: every parameter is one number seen through zero strides.

    Distinct values keep the exporter's optimizer from merging or dropping parameters."""
    import torch
    with torch.device("meta"):
        model = make()
    model.to(dtype) if dtype else None
    k, memo = 0, {}
    for mod in model.modules():
        for table in (mod._parameters, mod._buffers):
            for n, t in table.items():
                if t is None:
                    continue
                if id(t) not in memo:
                    k += 1
                    v = torch.tensor(0.5 + k / 4096 if t.is_floating_point() else 0, dtype=t.dtype)
                    if table is mod._parameters:
                        v = v.expand(t.shape)
                    elif not t.is_floating_point() and t.dim() and t.shape[-1] == t.numel():  # position_ids and the like
                        v = torch.arange(t.numel(), dtype=t.dtype).reshape(t.shape)
                    else:
                        v = v.expand(t.shape).clone()
                    if isinstance(t, torch.nn.Parameter):
                        v = torch.nn.Parameter(v, requires_grad=t.requires_grad)
                    memo[id(t)] = (v, t)
                table[n] = memo[id(t)][0]
    return model


# ---------------------------------------------------------------- torchvision
def tv(name, size=224, batch=2, **kw):
    def run():
        import torch, torchvision
        m = getattr(torchvision.models, name)(weights=None, **kw)
        return ts(m, [torch.zeros(batch, 3, size, size)], ["x"])
    return run


for n in ("alexnet vgg11 vgg13 vgg16 vgg19 vgg16_bn resnet18 resnet34 resnet50 resnet101 resnet152 densenet121 "
          "densenet161 densenet169 densenet201 mobilenet_v2 mobilenet_v3_large squeezenet1_1 shufflenet_v2_x1_0 "
          "mnasnet1_0 efficientnet_b0 resnext50_32x4d wide_resnet50_2 convnext_base vit_b_16").split():
    SPECS[n] = ("torchvision", f"torchvision.models.{n}, 224x224", tv(n))
SPECS["googlenet"] = ("torchvision", "GoogLeNet with aux heads off", tv("googlenet", aux_logits=False, init_weights=False))
SPECS["inception_v3"] = ("torchvision", "Inception v3 299x299, aux off", tv("inception_v3", 299, aux_logits=False, init_weights=False))
SPECS["vit_l_16"] = ("torchvision", "ViT-L/16 224", tv("vit_l_16"))


@spec("fcn8_resnet50", "torchvision", "segmentation.fcn_resnet50 416x608, aux head")
def _():
    import torch, torchvision
    class W(torch.nn.Module):
        def __init__(s):
            super().__init__(); s.m = torchvision.models.segmentation.fcn_resnet50(weights=None, weights_backbone=None, aux_loss=True)
        def forward(s, x):
            o = s.m(x); return o["out"], o["aux"]
    return ts(W(), [torch.zeros(2, 3, 416, 608)], ["x"], ["out", "aux"])


@spec("deeplabv3_resnet101", "torchvision", "segmentation.deeplabv3_resnet101 512x512")
def _():
    import torch, torchvision
    class W(torch.nn.Module):
        def __init__(s):
            super().__init__(); s.m = torchvision.models.segmentation.deeplabv3_resnet101(weights=None, weights_backbone=None)
        def forward(s, x):
            return s.m(x)["out"]
    return ts(W(), [torch.zeros(2, 3, 512, 512)], ["x"])


for n in ("resnet50",):
    def run(n=n):
        import torch, torchvision
        m = meta(lambda: getattr(torchvision.models, n)(weights=None))
        return dyn(m, [torch.zeros(2, 3, 224, 224)], ["x"], ["y"], train=False, optimize=True)
    SPECS[n + ".dynamo"] = ("torchvision", f"torchvision.models.{n}, dynamo exporter as a user gets it (BatchNorm folded)", run)


@spec("resnet50.dynamo_train", "torchvision", "resnet50 in train() through dynamo, optimize=False (BatchNorm kept, but without training_mode)")
def _():
    import torch, torchvision
    m = meta(lambda: torchvision.models.resnet50(weights=None))
    return dyn(m, [torch.zeros(2, 3, 224, 224)], ["x"], ["y"], train=True, optimize=False)


@spec("resnet18.modules", "torchvision", "resnet18 in train() through dynamo, optimize=False, with the modules of its nodes")
def _():
    import torch, torchvision
    m = meta(lambda: torchvision.models.resnet18(weights=None))
    return dyn(m, [torch.zeros(2, 3, 224, 224)], ["x"], ["y"], train=True, optimize=False)


# ---------------------------------------------------------------- Chen et al. settings, deep and recurrent
@spec("resnet200", "torchvision", "ResNet(Bottleneck,[3,24,36,3]) 224x224")
def _():
    import torch
    from torchvision.models.resnet import ResNet, Bottleneck
    return ts(ResNet(Bottleneck, [3, 24, 36, 3]), [torch.zeros(1, 3, 224, 224)], ["x"])


@spec("resnet1001", "torchvision", "ResNet(Bottleneck,[8,110,210,5]) = 1001 layers, 224x224 (Chen's setting)")
def _():
    import torch
    from torchvision.models.resnet import ResNet, Bottleneck
    return ts(ResNet(Bottleneck, [8, 110, 210, 5]), [torch.zeros(1, 3, 224, 224)], ["x"])


@spec("preact_resnet1001_cifar", "own torch module", "pre-activation ResNet-1001 of He et al., 32x32, 3x111 bottlenecks")
def _():
    import torch
    from torch import nn
    class B(nn.Module):
        def __init__(s, i, p, st):
            super().__init__()
            o = 4 * p
            s.n1, s.c1 = nn.BatchNorm2d(i), nn.Conv2d(i, p, 1, bias=False)
            s.n2, s.c2 = nn.BatchNorm2d(p), nn.Conv2d(p, p, 3, st, 1, bias=False)
            s.n3, s.c3 = nn.BatchNorm2d(p), nn.Conv2d(p, o, 1, bias=False)
            s.sc = nn.Conv2d(i, o, 1, st, bias=False) if st != 1 or i != o else None
        def forward(s, x):
            h = torch.relu(s.n1(x))
            r = s.sc(h) if s.sc is not None else x
            return s.c3(torch.relu(s.n3(s.c2(torch.relu(s.n2(s.c1(h))))))) + r
    l, i = [nn.Conv2d(3, 16, 3, 1, 1, bias=False)], 16
    for p, st in ((16, 1), (32, 2), (64, 2)):
        for k in range(111):
            l.append(B(i, p, st if k == 0 else 1)); i = 4 * p
    l += [nn.BatchNorm2d(i), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(i, 10)]
    return ts(nn.Sequential(*l), [torch.zeros(2, 3, 32, 32)], ["x"])


def lstm(layers, hidden, steps, fused):
    import torch
    from torch import nn
    class L(nn.Module):
        def __init__(s):
            super().__init__()
            if fused:
                s.rnn = nn.LSTM(hidden, hidden, layers)
            else:
                s.i2h = nn.ModuleList(nn.Linear(hidden, 4 * hidden) for _ in range(layers))
                s.h2h = nn.ModuleList(nn.Linear(hidden, 4 * hidden) for _ in range(layers))
            s.out = nn.Linear(hidden, 1000)
        def forward(s, x):                                  # x: steps, N, hidden
            if fused:
                return s.out(s.rnn(x)[0])
            z = torch.zeros_like(x[0])
            h, c, ys = [z] * layers, [z] * layers, []
            for t in range(steps):
                v = x[t]
                for k in range(layers):
                    i, f, g, o = (s.i2h[k](v) + s.h2h[k](h[k])).chunk(4, 1)
                    c[k] = torch.sigmoid(f) * c[k] + torch.sigmoid(i) * torch.tanh(g)
                    h[k] = torch.sigmoid(o) * torch.tanh(c[k])
                    v = h[k]
                ys.append(s.out(v))
            return torch.stack(ys)
    return ts(L(), [torch.zeros(steps, 2, hidden)], ["x"], dyn={"x": {1: "N"}, "y": {1: "N"}})


SPECS["lstm_4x1024x64_unrolled"] = ("own torch module", "LSTM 4 layers x 1024 hidden x 64 steps, unrolled (Chen's setting)", lambda: lstm(4, 1024, 64, False))
SPECS["lstm_4x1024x64_op"] = ("torch.nn.LSTM", "the same as 4 ONNX LSTM nodes", lambda: lstm(4, 1024, 64, True))


# ---------------------------------------------------------------- segmentation
@spec("unet_572", "own torch module", "U-Net of Ronneberger 2015, 572x572, valid convolutions, crop and concat, BN off")
def _():
    import torch
    from torch import nn
    def two(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3), nn.ReLU(), nn.Conv2d(o, o, 3), nn.ReLU())
    class U(nn.Module):
        def __init__(s):
            super().__init__()
            c = [64, 128, 256, 512, 1024]
            s.down = nn.ModuleList([two(1 if k == 0 else c[k - 1], c[k]) for k in range(5)])
            s.up = nn.ModuleList([nn.ConvTranspose2d(c[k + 1], c[k], 2, 2) for k in (3, 2, 1, 0)])
            s.dec = nn.ModuleList([two(c[k + 1], c[k]) for k in (3, 2, 1, 0)])
            s.last = nn.Conv2d(64, 2, 1)
            s.drop = nn.Dropout(0.5)
        def forward(s, x):
            skips = []
            for k, d in enumerate(s.down):
                if k:
                    x = torch.max_pool2d(x, 2)
                x = d(x)
                skips.append(x)
            x = s.drop(x)
            for u, d, sk in zip(s.up, s.dec, skips[-2::-1]):
                x = u(x)
                o = (sk.shape[2] - x.shape[2]) // 2
                x = d(torch.cat([sk[:, :, o:o + x.shape[2], o:o + x.shape[3]], x], 1))
            return s.last(x)
    return ts(U(), [torch.zeros(1, 1, 572, 572)], ["x"])


@spec("smp_unet_resnet34_512", "segmentation_models_pytorch", "Unet, resnet34 encoder, 512x512")
def _():
    import torch, segmentation_models_pytorch as smp
    return ts(smp.Unet("resnet34", encoder_weights=None, classes=21), [torch.zeros(2, 3, 512, 512)], ["x"])


@spec("smp_pspnet_resnet101_720", "segmentation_models_pytorch", "PSPNet, resnet101 encoder (depth 3), 720x720")
def _():
    import torch, segmentation_models_pytorch as smp
    m = smp.PSPNet("resnet101", encoder_weights=None, classes=21)
    m.decoder.dropout = torch.nn.Dropout(0.2)       # Dropout2d has no ONNX export in training mode
    return ts(m, [torch.zeros(2, 3, 720, 720)], ["x"])


@spec("pspnet101_713", "torchvision backbone + own head", "PSPNet of Zhao 2017: dilated ResNet101, pyramid pooling 1,2,3,6, aux head, 713x713 (Dropout in place of Dropout2d)")
def _():
    import torch, torchvision
    from torch import nn
    import torch.nn.functional as F
    def cbr(i, o, k):
        return nn.Sequential(nn.Conv2d(i, o, k, padding=k // 2, bias=False), nn.BatchNorm2d(o), nn.ReLU(inplace=True))
    class P(nn.Module):
        def __init__(s):
            super().__init__()
            r = torchvision.models.resnet101(weights=None, replace_stride_with_dilation=[False, True, True])
            s.stem = nn.Sequential(r.conv1, r.bn1, r.relu, r.maxpool)
            s.l1, s.l2, s.l3, s.l4 = r.layer1, r.layer2, r.layer3, r.layer4
            s.ppm = nn.ModuleList(cbr(2048, 512, 1) for _ in range(4))
            s.head = nn.Sequential(cbr(4096, 512, 3), nn.Dropout(0.1), nn.Conv2d(512, 21, 1))
            s.aux = nn.Sequential(cbr(1024, 256, 3), nn.Dropout(0.1), nn.Conv2d(256, 21, 1))
        def forward(s, x):
            a = s.l3(s.l2(s.l1(s.stem(x))))
            b = s.l4(a)
            up = lambda t, n: F.interpolate(t, (n, n), mode="bilinear", align_corners=True)
            ps = [b] + [up(c(F.avg_pool2d(b, 90 // n)), 90) for c, n in zip(s.ppm, (1, 2, 3, 6))]
            return up(s.head(torch.cat(ps, 1)), 713), up(s.aux(a), 713)
    return ts(P(), [torch.zeros(2, 3, 713, 713)], ["x"], ["y", "aux"])


# ---------------------------------------------------------------- timm
def tm(name, size=224, batch=2, **kw):
    def run():
        import torch, timm
        return ts(timm.create_model(name, pretrained=False, **kw), [torch.zeros(batch, 3, size, size)], ["x"])
    return run


SPECS["timm_swin_base"] = ("timm", "swin_base_patch4_window7_224", tm("swin_base_patch4_window7_224"))
SPECS["timm_mixer_b16"] = ("timm", "mixer_b16_224", tm("mixer_b16_224"))
SPECS["timm_efficientnetv2_m"] = ("timm", "efficientnetv2_m 384", tm("efficientnetv2_m", 384))


# ---------------------------------------------------------------- transformers
def hf(cls, cfg, inputs, **kw):
    """A transformers model without weights through the dynamo exporter, no cache, logits only."""
    import torch, transformers
    cfg._attn_implementation = kw.pop("attn", "sdpa")
    m = meta(lambda: getattr(transformers, cls)(cfg), torch.bfloat16 if kw.get("dtype") == "bf16" else None)
    class W(torch.nn.Module):
        def __init__(s, m):
            super().__init__(); s.m = m
        def forward(s, **k):
            return s.m(**k, use_cache=False, return_dict=True)[0] if kw.get("cache", True) else s.m(**k, return_dict=True)[0]
    names = list(inputs)
    args = list(inputs.values())
    shapes = kw.get("shapes") or {n: {0: torch.export.Dim("N")} for n in names}
    return dyn(W(m), args, names, shapes={"k": shapes}, train=kw.get("train", True),
               optimize=kw.get("optimize", True), opset=kw.get("opset"))


def ids(n, s):
    import torch
    return torch.zeros(n, s, dtype=torch.long)


def bert(hidden, layers, heads, seq, **kw):
    from transformers import BertConfig
    c = BertConfig(hidden_size=hidden, num_hidden_layers=layers, num_attention_heads=heads, intermediate_size=4 * hidden)
    return hf("BertForMaskedLM", c, {"input_ids": ids(2, seq), "token_type_ids": ids(2, seq)}, cache=False, **kw)


SPECS["bert_base_512"] = ("transformers", "BertForMaskedLM base, seq 512, train mode", lambda: bert(768, 12, 12, 512))
SPECS["bert_large_512"] = ("transformers", "BertForMaskedLM large, seq 512, train mode", lambda: bert(1024, 24, 16, 512))
SPECS["bert_base_512_eager"] = ("transformers", "BertForMaskedLM base, attn eager", lambda: bert(768, 12, 12, 512, attn="eager"))


@spec("bert_4layers.modules", "transformers", "BertForMaskedLM with four layers, seq 512, train mode, with the modules of its nodes")
def _():
    from transformers import BertConfig, BertForMaskedLM
    c = BertConfig(num_hidden_layers=4)
    c._attn_implementation = "sdpa"
    return dyn(meta(lambda: BertForMaskedLM(c)), [ids(2, 512)], ["input_ids"], ["logits"], train=True, optimize=True)


@spec("bert_base_dynseq", "transformers", "BertForMaskedLM base, batch N and sequence S symbolic")
def _():
    import torch
    d = {0: torch.export.Dim("N"), 1: torch.export.Dim("S", max=512)}
    return bert(768, 12, 12, 128, shapes={"input_ids": d, "token_type_ids": d})


def gpt2(emb, layers, heads, **kw):
    from transformers import GPT2Config
    return hf("GPT2LMHeadModel", GPT2Config(n_embd=emb, n_layer=layers, n_head=heads), {"input_ids": ids(2, 1024)}, **kw)


for n, a in {"small": (768, 12, 12), "medium": (1024, 24, 16), "large": (1280, 36, 20), "xl": (1600, 48, 25)}.items():
    SPECS["gpt2_" + n] = ("transformers", f"GPT2LMHeadModel {n}, seq 1024, train mode", lambda a=a: gpt2(*a))
SPECS["gpt2_small_opset23"] = ("transformers", "GPT-2 small at opset 23 (fused Attention op where the exporter uses it)", lambda: gpt2(768, 12, 12, opset=23))


def llama(hidden, inter, layers, heads, kv, vocab=128256, seq=2048, **kw):
    from transformers import LlamaConfig
    import torch
    c = LlamaConfig(hidden_size=hidden, intermediate_size=inter, num_hidden_layers=layers, num_attention_heads=heads,
                    num_key_value_heads=kv, vocab_size=vocab, max_position_embeddings=8192)
    return hf("LlamaForCausalLM", c, {"input_ids": ids(2, seq)}, **kw)


SPECS["llama_1b"] = ("transformers", "Llama-3.2-1B shape, seq 2048, fp32", lambda: llama(2048, 8192, 16, 32, 8))
SPECS["llama_7b"] = ("transformers", "Llama-2-7B shape, seq 2048, fp32", lambda: llama(4096, 11008, 32, 32, 32, 32000))
SPECS["llama_70b_bf16"] = ("transformers", "Llama-3-70B shape, seq 2048, bf16", lambda: llama(8192, 28672, 80, 64, 8, dtype="bf16"))
SPECS["llama_1b_opset23"] = ("transformers", "Llama-3.2-1B shape at opset 23", lambda: llama(2048, 8192, 16, 32, 8, opset=23))


@spec("whisper_small", "transformers", "WhisperForConditionalGeneration small, 3000 frames, decoder 128")
def _():
    import torch, transformers
    from transformers import WhisperConfig
    c = WhisperConfig(d_model=768, encoder_layers=12, decoder_layers=12, encoder_attention_heads=12, decoder_attention_heads=12,
                      encoder_ffn_dim=3072, decoder_ffn_dim=3072)
    c.use_cache, c._attn_implementation = False, "eager"
    m = transformers.WhisperForConditionalGeneration(c)
    class W(torch.nn.Module):
        def __init__(s):
            super().__init__(); s.m = m
        def forward(s, input_features, decoder_input_ids):
            return s.m(input_features=input_features, decoder_input_ids=decoder_input_ids, use_cache=False).logits
    return ts(W(), [torch.zeros(2, 80, 3000), ids(2, 128)], ["input_features", "decoder_input_ids"])


# ---------------------------------------------------------------- diffusers


# ---------------------------------------------------------------- onnx's own
def light(name):
    def run():
        import onnx.backend.test as t
        p = os.path.join(os.path.dirname(t.__file__), "data", "light", name + ".onnx")
        return onnx.load(p), ("copied byte for byte from the onnx wheel", open(p, "rb").read())
    return run


for n in "bvlc_alexnet densenet121 inception_v1 inception_v2 resnet50 shufflenet squeezenet vgg19 zfnet512".split():
    SPECS["light_" + n] = ("onnx", "onnx/backend/test/data/light", light("light_" + n))


# ---------------------------------------------------------------- driver
def describe(name, m, how, path):
    source, desc, _ = SPECS[name]
    params, ptensors = 0, 0
    for t in m.graph.initializer:
        if t.data_type in ELEM:
            params += numel(t) * ELEM[t.data_type]
        ptensors += 1
    ins = {}
    init = {t.name for t in m.graph.initializer}
    for v in m.graph.input:
        if v.name not in init:
            ins[v.name] = [d.dim_param or d.dim_value for d in v.type.tensor_type.shape.dim]
    blob = open(path, "rb").read()
    libs = {}
    for p in {source.split(".")[0].split()[0], "torch", "onnxscript", "onnx"} | ({"torchvision"} if "torchvision" in source else set()):
        try:
            libs[p] = importlib.metadata.version(p)
        except Exception:
            pass
    return dict(name=name, file=os.path.basename(path), source=source, description=desc, versions=libs, how=how,
                ir_version=m.ir_version, opset={o.domain or "ai.onnx": o.version for o in m.opset_import},
                nodes=sum(len(g.node) for g in graphs(m.graph)), functions=len(m.functions),
                tensors=len({o for g in graphs(m.graph) for n in g.node for o in n.output if o}),
                initializers=ptensors, parameter_bytes=params, inputs=ins, outputs=[o.name for o in m.graph.output],
                ops=dict(collections.Counter((n.domain + "::" if n.domain else "") + n.op_type for g in graphs(m.graph) for n in g.node).most_common()),
                file_size=len(blob), sha256=hashlib.sha256(blob).hexdigest())


def one(name, out):
    t = time.time()
    source, desc, fn = SPECS[name]
    m, how = fn()
    path = os.path.join(out, name + ".onnx")
    if source != "onnx":
        strip(m, name.endswith(".modules"))
        m.producer_version = m.producer_version or ""
    with open(path, "wb") as f:
        f.write(m.SerializeToString(deterministic=True))
    if source == "onnx":    # a byte-for-byte copy
        with open(path, "wb") as f:
            f.write(how[1])
        how = how[0]
    d = describe(name, m, how, path)
    try:
        onnx.checker.check_model(path)
        d["checker"] = "ok"
    except Exception as e:
        d["checker"] = str(e)[:300]
    d["export_seconds"] = round(time.time() - t, 1)
    return d


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("-o", default=os.path.dirname(os.path.abspath(__file__)))
    ap.add_argument("--timeout", type=int, default=300)
    ap.add_argument("--list", action="store_true")
    ap.add_argument("--shard", default="0/1")
    ap.add_argument("pattern", nargs="*")
    a = ap.parse_args()
    names = [n for n in SPECS if not a.pattern or any(re.fullmatch(p, n) for p in a.pattern)]
    if a.list:
        return print("\n".join(names))
    k, of = map(int, a.shard.split("/"))
    names = names[k::of]
    os.makedirs(a.o + "/manifest.d", exist_ok=True)
    open(a.o + "/weights.bin", "ab").close()
    import torch, torchvision  # noqa: F401  preloaded so that each child starts fast
    torch.set_num_threads(1)
    for n in names:
        pid = os.fork()
        if pid == 0:
            log = open(f"{a.o}/manifest.d/{n}.log", "w")
            os.dup2(log.fileno(), 1); os.dup2(log.fileno(), 2)
            signal.alarm(a.timeout)
            try:
                d = one(n, a.o)
                json.dump(d, open(f"{a.o}/manifest.d/{n}.json", "w"))
                rc = 0
            except BaseException:
                traceback.print_exc(); rc = 1
            sys.stdout.flush(); sys.stderr.flush(); os._exit(rc)
        _, st = os.waitpid(pid, 0)
        ok = st == 0
        d = json.load(open(f"{a.o}/manifest.d/{n}.json")) if ok else {}
        why = "" if ok else (open(f"{a.o}/manifest.d/{n}.log").read().strip().splitlines() or ["?"])[-1][:200]
        print(f"{time.strftime('%H:%M:%S')} {n:28s} {'ok' if ok else 'FAIL %d' % st} "
              + (f"{d['nodes']} nodes {d['file_size']} B {d['export_seconds']} s checker {d['checker'][:60]}" if ok else why), flush=True)
    merge(a.o)


def merge(out):
    ms = []
    for n in SPECS:
        p, f = f"{out}/manifest.d/{n}.json", f"{out}/{n}.onnx"
        if os.path.exists(p) and os.path.exists(f):
            ms.append(json.load(open(p)))
    json.dump(ms, open(out + "/MANIFEST.json", "w"), indent=1)


if __name__ == "__main__":
    main()
