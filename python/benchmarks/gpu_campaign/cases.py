"""The cases of a campaign, in the order in which they are run: what says most in the least time
comes first, so that a campaign that is cut has shown the most that it could."""

from typing import NamedTuple

from . import papers

STAGES = {
    "probe": "driver, libraries and one training step",
    "small": "a plan of a small ResNet-50, proven",
    "operators": "every operator against plain loops",
    "executor": "the executor's own tests",
    "table": "networks at growing batches: keeping all and three plans, predicted and measured",
    "papers": "what the papers measured",
    "pytorch": "PyTorch side by side: eager, its checkpoints, its knob",
    "offload": "values moved to the host, by plans and by a greedy rule, compared with recomputation",
    "sanitizer": "operators and small steps under compute-sanitizer; only if asked for",
}

ALGORITHMS = ["chen-sqrt", "approx-dp", "hong-linear"]
# The networks of the table, smallest first. A network comes in fewer precisions where it is large.
TABLE = [
    ("squeezenet1_1", 32, ["fp32"]),
    ("resnet50", 32, ["fp32", "bf16"]),
    ("gpt2_small", 1, ["fp32", "bf16"]),
    ("bert_base_512", 4, ["fp32", "bf16"]),
    ("alexnet", 4096, ["fp32"]),
    ("unet_572", 16, ["fp32"]),
    ("vgg19", 256, ["fp32"]),
    ("resnet50", 256, ["fp32", "default", "bf16"]),
    ("gpt2_small", 8, ["fp32", "bf16"]),
    ("bert_base_512", 32, ["fp32", "bf16"]),
]
SIDE_BY_SIDE = [("resnet50", 256), ("bert_base_512", 32), ("gpt2_small", 8)]
WAYS_OF_PYTORCH = ["eager", "checkpoint", "knob"]
# PyTorch fuses the attention of these, so ckexec runs them both ways in bfloat16, where cuDNN computes
# fused attention. In float32 the host would, as it would a Softmax that replaces NaNs, so there they
# run as their files have them. By default ckplan fuses attention.
FUSED, UNFUSED = ("--fuse", "attention"), ("--fuse", "none", "--no-restore")
WITH_ATTENTION = ("bert_base_512", "gpt2_small")
# The link to the host of an H100, as ckplan --offload takes it.
LINK = "pcie5"
# Algorithms for the same budget, and whether they may move values to the host.
OFFLOADING = [("best", False), ("best", True), ("offload-largest", True)]
# Within this budget, the network of a rehearsal has plans that move values.
REHEARSED_BUDGET = "92%"

# Options of ckexec for each precision. `default` is what PyTorch does by itself:
# convolutions in TF32, products in float32.
PRECISIONS = {
    "fp32": [],
    "default": ["--tf32", "convolutions"],
    "tf32": ["--tf32", "all"],
    "bf16": ["--bf16"],
}

# What a lease of a few minutes shows, in this order. Each row is (network, batch, precision, more
# sizes): our plan and PyTorch, one right after the other.
LEASED_PAIRS = [("resnet50", 256, "default", ()), ("bert_base_512", 32, "bf16", FUSED)]
LEASED_WAYS = ["eager", "ckplan"]
SWEPT = ("resnet152", [16, 32, 64, 96])  # Kusumoto, Fig. 3.
# How long cases of each kind take on an H100 or H200, in seconds, at the most: starting a process
# that loads CUDA's libraries is most of it. A case begins only if that much of the lease is left.
EXPECTED_SECONDS = {"probe": 10, "profile": 14, "plan": 20, "pytorch": 16, "ckplan": 35,
                    "operators": 90, "executor": 45, "sanitize": 40}
# Cases of a lease that count as hung only after a longer time.
LIMIT_SECONDS = {"operators": 150, "executor": 90, "ckplan": 90}

SANITIZED = [
    ("resnet50", ["-D", "N=2", "--input-shape", "x=2,3,64,64"]),
    ("bert_base_512", ["-D", "N=1", *UNFUSED]),
    ("unet_572", ["-D", "N=1", "--input-shape", "x=1,1,188,188"]),
]
SANITIZERS = {
    # memcheck also watches the libraries' kernels, which write into our memory. Failing calls of
    # CUDA are not counted: ckexec checks its own calls, and the libraries try some that may fail.
    "memcheck": ["--report-api-errors", "no"],
    # racecheck only watches our kernels, because it misjudges how the libraries' kernels
    # synchronize.
    "racecheck": ["--kernel-name", "kernel_substring=ckplan", "--racecheck-detect-level", "error"],
}


class Case(NamedTuple):
    name: str
    stage: str
    kind: str  # The method of runs.Runner that runs it.
    model: str = ""
    sizes: tuple = ()
    precision: str = "fp32"
    details: dict = {}


def sizes_of(batch, more=()):
    return ("-D", f"N={batch}", *(part.format(batch=batch) for part in more))


def attention_of(model, precision):
    """Returns the options by which ckexec computes the network's attention on the GPU."""
    if model not in WITH_ATTENTION:
        return ()
    return FUSED if precision == "bf16" else UNFUSED


def profile_name(stage, model, sizes, precision):
    return f"{stage}/{model}/{','.join(sizes[1::2])}/{precision}/profile"


class Cases:
    """Collects cases; a model is profiled once in each stage, before its first plan."""

    def __init__(self):
        self.cases = []
        self.names = set()

    def add(self, case):
        if case.name not in self.names:
            self.names.add(case.name)
            self.cases.append(case)

    def add_plan(self, stage, model, sizes, precision, label, planning, **details):
        profile = profile_name(stage, model, sizes, precision)
        self.add(Case(profile, stage, "profile", model, sizes, precision))
        name = f"{profile.rsplit('/', 1)[0]}/{label}"
        self.add(Case(name, stage, "plan", model, sizes, precision,
                      {"profile": profile, "planning": planning, **details}))


def add_table(cases):
    for model, batch, precisions in TABLE:
        for precision in precisions:
            for algorithm in ALGORITHMS if precision == "fp32" else ["approx-dp"]:
                cases.add_plan("table", model, sizes_of(batch, attention_of(model, precision)),
                               precision, algorithm, ["--algo", algorithm], budget="60%")


def add_papers(cases):
    for model, batch, peaks, keep_all in papers.HONG:
        for algorithm, peak in zip(papers.HONG_ALGORITHMS, peaks):
            cases.add_plan("papers", model, sizes_of(batch), "fp32", f"Hong, {algorithm}",
                           ["--algo", algorithm], paper="Hong, Table 2", paper_mib=peak,
                           paper_keep_all_mib=keep_all)
    for model, batch, changes in papers.KUSUMOTO:
        for (way, planning), change in zip(papers.KUSUMOTO_WAYS, changes):
            cases.add_plan("papers", model, sizes_of(batch), "fp32", f"Kusumoto, {way}", planning,
                           paper="Kusumoto, Table 1", paper_change=change)
    for model, batch, overhead in papers.CHEN:
        cases.add_plan("papers", model, sizes_of(batch), "fp32", "Chen, sublinear",
                       ["--algo", "chen-search"], paper="Chen, Fig. 7", paper_overhead=overhead)
    for model, batch, ratio, more in papers.FENG:
        for factor in (1, 2):
            cases.add_plan("papers", model, sizes_of(batch * factor, more), "fp32",
                           f"Feng, batch x {factor}", ["--algo", "feng-acg"],
                           paper="Feng, Table 1", paper_ratio=ratio, factor=factor)


def add_side_by_side(cases):
    for model, batch in SIDE_BY_SIDE:
        for precision in ("default", "bf16", "fp32"):
            own = attention_of(model, precision)
            for more in [UNFUSED, FUSED] if own == FUSED else [own]:
                for label, validating in (("ckexec", []), ("ckexec, graphs", ["--graph"])):
                    cases.add_plan("pytorch", model, sizes_of(batch, more), precision, label,
                                   ["--algo", "approx-dp"], budget="60%", validating=validating)
            for way in WAYS_OF_PYTORCH:
                cases.add(Case(f"pytorch/{model}/N={batch}/{precision}/{way}", "pytorch", "pytorch",
                               model, sizes_of(batch), precision, {"way": way, "batch": batch}))


def add_offload(cases, link):
    for model, batch in SIDE_BY_SIDE:
        for precision in ("default", "bf16"):
            for algorithm, moves in OFFLOADING:
                way = ["--offload", link] if moves else []
                label = f"{algorithm}, copies" if moves else algorithm
                cases.add_plan("offload", model, sizes_of(batch, attention_of(model, precision)),
                               precision, label, ["--algo", algorithm, *way], budget="60%",
                               rehearsed_budget=REHEARSED_BUDGET)


def add_sanitizer(cases):
    for tool in SANITIZERS:
        start = f"sanitizer/{tool}"
        details = {"tool": tool}
        cases.add(Case(f"{start}/operators", "sanitizer", "sanitize", details=details))
        for model, sizes in SANITIZED:
            cases.add(Case(f"{start}/{model}", "sanitizer", "sanitize", model, tuple(sizes),
                           details=details))


def kind_of(case):
    """Returns the name by which the times of a case are looked up."""
    if case.kind == "tests" or case.details.get("way") == "ckplan":
        return case.name if case.kind == "tests" else "ckplan"
    return case.kind


def expected_seconds(case):
    return EXPECTED_SECONDS[kind_of(case)]


def limit_seconds(case, usual):
    """Returns how long the case may take before it counts as hung."""
    return LIMIT_SECONDS.get(kind_of(case), usual)


def add_pair(cases, model, batch, precision, more):
    cases.add_plan("pytorch", model, sizes_of(batch, more), precision, "ckexec",
                   ["--algo", "approx-dp"], budget="60%")
    for way in LEASED_WAYS:
        cases.add(Case(f"pytorch/{model}/N={batch}/{precision}/{way}", "pytorch", "pytorch", model,
                       sizes_of(batch), precision, {"way": way, "batch": batch}))


def lease_cases(link=LINK):
    """Returns the cases of a lease, the most informative per second first."""
    cases = Cases()
    cases.add(Case("probe", "probe", "probe", "tiny_mlp", sizes_of(8)))
    cases.add_plan("small", "resnet50", ("-D", "N=2", "--input-shape", "x=2,3,64,64"), "fp32",
                   "approx-dp", ["--algo", "approx-dp"], budget="60%")
    for pair in LEASED_PAIRS:
        add_pair(cases, *pair)
    model, batch, peaks, keep_all = papers.HONG[-1]
    for algorithm, peak in zip(papers.HONG_ALGORITHMS, peaks):
        cases.add_plan("papers", model, sizes_of(batch), "fp32", f"Hong, {algorithm}",
                       ["--algo", algorithm], paper="Hong, Table 2", paper_mib=peak,
                       paper_keep_all_mib=keep_all)
    model, batch, overhead = papers.CHEN[0]
    cases.add_plan("papers", model, sizes_of(batch), "fp32", "Chen, sublinear",
                   ["--algo", "chen-search"], paper="Chen, Fig. 7", paper_overhead=overhead)
    for model, batch, changes in papers.KUSUMOTO:
        if model == "resnet152":
            way, planning = papers.KUSUMOTO_WAYS[1]
            cases.add_plan("papers", model, sizes_of(batch), "fp32", f"Kusumoto, {way}", planning,
                           paper="Kusumoto, Table 1", paper_change=changes[1])
    for program in ("operators", "executor"):
        cases.add(Case(program, program, "tests"))
    model, batch, precision, _ = LEASED_PAIRS[0]
    cases.add_plan("offload", model, sizes_of(batch), precision, "offload-largest, copies",
                   ["--algo", "offload-largest", "--offload", link], budget="60%",
                   rehearsed_budget=REHEARSED_BUDGET)
    for batch in SWEPT[1]:
        cases.add_plan("table", SWEPT[0], sizes_of(batch), "fp32", "approx-dp",
                       ["--algo", "approx-dp"], budget="40%")
    model, sizes = SANITIZED[0]
    cases.add(Case(f"sanitizer/memcheck/{model}", "sanitizer", "sanitize", model, tuple(sizes),
                   details={"tool": "memcheck"}))
    return cases.cases


def all_cases(stages, models, link=LINK):
    """Returns the cases of these stages, and of these models if there are any."""
    cases = Cases()
    cases.add(Case("probe", "probe", "probe", "tiny_mlp", sizes_of(8)))
    cases.add_plan("small", "resnet50", ("-D", "N=2", "--input-shape", "x=2,3,64,64"), "fp32",
                   "approx-dp", ["--algo", "approx-dp"], budget="60%")
    for program in ("operators", "executor"):
        cases.add(Case(program, program, "tests"))
    add_table(cases)
    add_papers(cases)
    add_side_by_side(cases)
    add_offload(cases, link)
    add_sanitizer(cases)
    return [case for case in cases.cases if case.stage in stages
            and (not models or not case.model or case.model in models or case.stage == "probe")]
