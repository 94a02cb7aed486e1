#include "lib/planning/plan/accounting.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/problem/graph/tensor_graph.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/timeline.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

constexpr Bytes MiB(int64_t count) { return Bytes(count << 20); }

// A chain of three activations of `size`, with two trained tensors of 1 MiB each, buffers of 512
// KiB and no inputs.
TensorGraph ChainWithParameters(Bytes size) {
  TensorGraphParts parts = PartsOf(ChainOf({size.count(), size.count(), size.count()}));
  parts.parameters = MiB(2) + Bytes(1 << 19);
  parts.parameter_gradients = MiB(2);
  parts.optimized = MiB(2);
  parts.optimized_tensors = {{1 << 18, 4, 2}};
  return TensorGraph::Create(std::move(parts)).value();
}

PlanRequest By(Optimizer optimizer) {
  PlanRequest request;
  request.optimizer = optimizer;
  return request;
}

Accounting OfKeepAll(const TensorGraph& graph, const PlanRequest& request) {
  const TrainingStep step(graph);
  return AccountFor({step, request, Bytes(1 << 19)}, step.KeepAll(), KeepAllPeak(step));
}

const MemoryLine& LineOf(const Accounting& accounting, std::string_view name) {
  for (const auto* lines : {&accounting.tensors, &accounting.outside}) {
    for (const MemoryLine& line : *lines) {
      if (line.name == name) return line;
    }
  }
  FAIL("no such line");
  return accounting.tensors.front();
}

std::vector<std::string> NamesOf(const std::vector<MemoryLine>& lines) {
  std::vector<std::string> names;
  for (const MemoryLine& line : lines) names.push_back(line.name);
  return names;
}

TEST_CASE("accounting: the lines come in their order and add up") {
  const TensorGraph graph = ChainWithParameters(MiB(30));
  const Accounting accounting = OfKeepAll(graph, By(Optimizer::kAdam));
  CHECK(NamesOf(accounting.tensors) ==
        std::vector<std::string>{"parameters", "buffers", "inputs", "optimizer state", "step"});
  CHECK(NamesOf(accounting.outside) ==
        std::vector<std::string>{"workspaces", "allocator", "cuBLAS", "context", "driver"});
  CHECK(LineOf(accounting, "parameters").bytes == MiB(2));
  CHECK(LineOf(accounting, "buffers").bytes == Bytes(1 << 19));
  CHECK(LineOf(accounting, "optimizer state").bytes == MiB(4));
  // All gradients of parameters are there throughout.
  CHECK(LineOf(accounting, "step").bytes == KeepAllPeak(TrainingStep(graph)) + MiB(2));
  CHECK(accounting.tensor_bytes() + accounting.outside_bytes() == accounting.need());
  CHECK(accounting.tensor_bytes() ==
        KeepAllPeak(TrainingStep(graph)) + MiB(2) + Bytes(1 << 19) + MiB(4) + MiB(2));
}

// Random gradients of the graph's nodes, and some that no node makes.
TensorGraph WithGradients(const TensorGraph& graph, Rng& rng) {
  TensorGraphParts parts = PartsOf(graph);
  parts.parameter_gradients = Bytes(5);
  for (Node& node : parts.nodes) {
    node.parameter_gradients = Bytes(rng.Between(0, 3) == 0 ? 0 : rng.Between(1, 60));
    parts.parameter_gradients += node.parameter_gradients;
  }
  parts.optimized = parts.parameter_gradients;
  return TensorGraph::Create(std::move(parts)).value();
}

// Each step of the schedule has the gradients of the backward operations up to it.
Bytes PeakWithGradients(const TensorGraph& graph, const Schedule& schedule) {
  const Timeline timeline = BuildTimeline(TrainingStep(graph), schedule);
  Bytes arrived = graph.constants().parameter_gradients;
  for (const Node& node : graph.nodes()) arrived -= node.parameter_gradients;
  Bytes peak(0);
  for (size_t k = 0; k < schedule.steps.size(); ++k) {
    if (schedule.steps[k].kind == StepKind::kBackward) {
      arrived += graph.node(schedule.steps[k].node()).parameter_gradients;
    }
    peak = std::max(peak, timeline.step_bytes[k] + arrived);
  }
  return std::max(peak, graph.constants().parameter_gradients);
}

TEST_CASE("accounting: a gradient of a parameter counts from the operation that makes it on") {
  int arriving = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = WithGradients(RandomTensorGraph(rng), rng);
    const Schedule schedule = TrainingStep(graph).KeepAll();
    PlanRequest request = By(Optimizer::kSgd);
    const Accounting own = OfKeepAll(graph, request);
    const Bytes step = LineOf(own, "step").bytes + LineOf(own, "workspaces").bytes;
    CHECK(step == PeakWithGradients(graph, schedule));
    request.gradients = ParameterGradients::kConstant;
    const Accounting throughout = OfKeepAll(graph, request);
    CHECK(LineOf(throughout, "step").bytes + LineOf(throughout, "workspaces").bytes ==
          KeepAllPeak(TrainingStep(graph)) + graph.constants().parameter_gradients);
    CHECK(own.tensor_bytes() <= throughout.tensor_bytes());
    arriving += own.tensor_bytes() < throughout.tensor_bytes() ? 1 : 0;

    // The same step as a graph of its operations.
    const Expansion expansion = ExpandTensorGraph(graph);
    const TrainingStep joint(expansion.graph, graph, expansion.step_of);
    request.gradients = ParameterGradients::kAuto;
    const Accounting again =
        AccountFor({joint, request, Bytes(1 << 19)}, joint.KeepAll(), KeepAllPeak(joint));
    CHECK(LineOf(again, "step").bytes + LineOf(again, "workspaces").bytes == step);
  }
  CHECK(arriving > 20);
}

TEST_CASE("accounting: gradients of no node, and those of micro-batches, are there throughout") {
  const TensorGraph unknown = ChainWithParameters(MiB(30));
  CHECK(ArrivingGradients(TrainingStep(unknown), PlanRequest()) == Bytes(0));
  Rng rng(1);
  const TensorGraph graph = WithGradients(RandomTensorGraph(rng), rng);
  const Bytes made = graph.constants().parameter_gradients - Bytes(5);
  REQUIRE(made > Bytes(0));
  CHECK(ArrivingGradients(TrainingStep(graph), PlanRequest()) == made);
  PlanRequest shared;
  shared.pipeline = PipelineStage{2, 0};
  CHECK(ArrivingGradients(TrainingStep(graph), shared) == Bytes(0));
  shared = PlanRequest();
  shared.sharding = Sharding{ShardingSystem::kFsdp, 2};
  CHECK(ArrivingGradients(TrainingStep(graph), shared) == Bytes(0));
  TensorGraphParts in_flight = PartsOf(graph);
  in_flight.micro_batches = 2;
  const TensorGraph two = TensorGraph::Create(std::move(in_flight)).value();
  CHECK(ArrivingGradients(TrainingStep(two), PlanRequest()) == Bytes(0));
}

TEST_CASE("accounting: the optimizer's step counts where it needs more than the backward pass") {
  const TensorGraph graph = ChainWithParameters(Bytes(1000));
  // Gradients, and a root of one value for each element.
  CHECK(LineOf(OfKeepAll(graph, By(Optimizer::kAdamW)), "step").bytes == MiB(4));
  CHECK(LineOf(OfKeepAll(graph, By(Optimizer::kSgd)), "step").bytes ==
        KeepAllPeak(TrainingStep(graph)) + MiB(2));
}

TEST_CASE("accounting: a reserve replaces everything outside of tensors") {
  const TensorGraph graph = ChainWithParameters(MiB(30));
  PlanRequest request = By(Optimizer::kAdam);
  request.memory = Budget::Of(MiB(1000));
  request.reserve = MiB(7);
  const Accounting accounting = OfKeepAll(graph, request);
  CHECK(NamesOf(accounting.outside) == std::vector<std::string>{"reserve"});
  CHECK(accounting.outside_bytes() == MiB(7));
}

TEST_CASE("accounting: the driver keeps a part of a device's memory, and nothing of a size") {
  const TensorGraph graph = ChainWithParameters(MiB(30));
  PlanRequest request;
  request.memory = Budget::Of(MiB(24 << 10));
  CHECK(LineOf(OfKeepAll(graph, request), "driver").bytes == Bytes(0));
  request.memory.device = "rtx4090-24g";
  CHECK(LineOf(OfKeepAll(graph, request), "driver").bytes == Bytes(MiB(24 << 10).count() / 100));
  request.memory.device = "t4-16g";
  CHECK(LineOf(OfKeepAll(graph, request), "driver").bytes == Bytes(MiB(24 << 10).count() / 16));
}

TEST_CASE("accounting: cuBLAS has 32 MiB on Hopper and later devices") {
  for (const char* const device : {"h100-80g", "gh200-96g", "b200-180g", "rtx5090-32g"}) {
    CAPTURE(device);
    CHECK(OutsideOf(device, Bytes(0)).front().bytes == MiB(32));
  }
  CHECK(OutsideOf("a100-40g", Bytes(0)).front().bytes == MiB(8) + Bytes(1 << 17));
}

TEST_CASE("accounting: the allocator gives free segments back where memory ends") {
  const TensorGraph graph = ChainWithParameters(MiB(30));
  const Accounting free = OfKeepAll(graph, By(Optimizer::kSgd));
  PlanRequest request = By(Optimizer::kSgd);
  const Bytes without_allocator = free.need() - LineOf(free, "allocator").bytes;
  // Rounding takes at most a segment of each kind.
  request.memory = Budget::Of(without_allocator + MiB(24));
  const Accounting within = OfKeepAll(graph, request);
  CHECK(within.need() <= request.memory.bytes);
  CHECK(within.tensor_bytes() == free.tensor_bytes());
}

TEST_CASE("accounting: where the memory is too small, the need is the least that is enough") {
  int smaller = 0;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = 14;
    options.max_bytes = 40 << 20;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    const Bytes free = OfKeepAll(graph, By(Optimizer::kSgd)).need();
    PlanRequest request = By(Optimizer::kSgd);
    request.memory = Budget::Of(Bytes(1));
    const Bytes least = OfKeepAll(graph, request).need();
    CHECK(least > OfKeepAll(graph, request).tensor_bytes());
    CHECK(least <= free);
    if (least < free) ++smaller;
    request.memory = Budget::Of(least);
    CHECK(OfKeepAll(graph, request).need() <= least);
    request.memory = Budget::Of(least - Bytes(1));
    CHECK(OfKeepAll(graph, request).need() == least);
  }
  CHECK(smaller > 2);
}

TEST_CASE("accounting: the least memory is exact, also where a larger one is not enough") {
  int falling = 0;  // Graphs that fit in a memory, but not in a larger one.
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = 24;
    options.max_bytes = 40 << 20;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    PlanRequest request = By(Optimizer::kSgd);
    const Accounting free = OfKeepAll(graph, request);
    const Bytes without_segments = LineOf(free, "context").bytes + LineOf(free, "driver").bytes;
    request.memory = Budget::Of(Bytes(1));
    const Bytes least = OfKeepAll(graph, request).need();
    std::optional<Bytes> first;
    bool falls = false;
    // All segments have whole 2 MiB.
    for (Bytes memory = without_segments; memory <= free.need(); memory += MiB(2)) {
      request.memory = Budget::Of(memory);
      const TrainingStep step(graph);
      const bool fits = FitsMemory({step, request, Bytes(0)}, step.KeepAll(), KeepAllPeak(step));
      const Bytes need = OfKeepAll(graph, request).need();
      CHECK(fits == (need <= memory));
      if (fits && !first) first = need;
      falls = falls || (first && !fits);
    }
    REQUIRE(first);
    CHECK(least == *first);
    falling += falls ? 1 : 0;
  }
  CHECK(falling > 0);
}

TEST_CASE("accounting: other micro-batches in flight are gone when the optimizer's step begins") {
  TensorGraphParts parts = PartsOf(ChainOf({20 << 20, 20 << 20, 20 << 20}));
  parts.micro_batches = 4;
  parts.parameters = MiB(200);
  parts.parameter_gradients = MiB(200);
  parts.optimized = MiB(200);
  parts.optimized_tensors = {{50 << 20, 4, 1}};
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const TrainingStep step(graph);
  PlanRequest request = By(Optimizer::kAdamW);
  const Accounting free = OfKeepAll(graph, request);
  // The root of AdamW's second moment needs as much as all micro-batches in flight.
  CHECK(LineOf(free, "step").bytes == MiB(200) + KeepAllPeak(step));
  for (Bytes memory = free.need() - MiB(300); memory <= free.need(); memory += MiB(2)) {
    request.memory = Budget::Of(memory);
    const bool fits = FitsMemory({step, request, Bytes(0)}, step.KeepAll(), KeepAllPeak(step));
    CHECK(fits == (OfKeepAll(graph, request).need() <= memory));
  }
}

TEST_CASE("accounting: no memory that is below the least need fits any plan") {
  const TensorGraph graph = ChainWithParameters(Bytes(1000));
  const PlanRequest request = By(Optimizer::kAdamW);
  const Accounting accounting = OfKeepAll(graph, request);
  const Bytes least = MinNeed(TrainingStep(graph), request);
  CHECK(least <= accounting.need());
  CHECK(least == accounting.need() - LineOf(accounting, "allocator").bytes);
}

TEST_CASE("accounting: workspaces are apart from the step") {
  TensorGraphParts parts = PartsOf(ChainOf({1000, 1000, 1000}));
  const Bytes peak = KeepAllPeak(TrainingStep(TensorGraph::Create(parts).value()));
  for (Node& node : parts.nodes) node.backward_workspace = Bytes(5000);
  const TensorGraph graph = TensorGraph::Create(std::move(parts)).value();
  const Accounting accounting = OfKeepAll(graph, PlanRequest());
  CHECK(LineOf(accounting, "step").bytes == peak);
  CHECK(LineOf(accounting, "step").bytes + LineOf(accounting, "workspaces").bytes ==
        KeepAllPeak(TrainingStep(graph)));
}

TEST_CASE("optimizer state: single buffers add up to the state") {
  const Optimized optimized{Bytes(3 * 20'000 + 2 * 14 + 2 * 8),
                            {{5000, 4, 3}, {7, 2, 2}, {2, 4, 2}}};
  for (const bool has_master_weights : {false, true}) {
    for (const Optimizer optimizer : {Optimizer::kSgd, Optimizer::kMomentum, Optimizer::kAdam,
                                      Optimizer::kAdamW, Optimizer::kAdam8Bit}) {
      PlanRequest request = By(optimizer);
      request.has_master_weights = has_master_weights;
      const std::vector<Bytes> buffers = OptimizerStateBuffers(request, optimized);
      CHECK(std::accumulate(buffers.begin(), buffers.end(), Bytes(0)) ==
            OptimizerState(request, optimized));
    }
  }
}

TEST_CASE("optimizer state: a step of adam takes a root of each element; copies have gradients") {
  const Optimized optimized{Bytes(120 + 14), {{30, 4, 1}, {7, 2, 1}}};
  const auto step_of = [&](Optimizer optimizer, bool has_master_weights) {
    PlanRequest request = By(optimizer);
    request.has_master_weights = has_master_weights;
    return OptimizerStepBuffers(request, optimized);
  };
  using Sizes = std::vector<Bytes>;
  CHECK(step_of(Optimizer::kSgd, false).empty());
  CHECK(step_of(Optimizer::kMomentum, false).empty());
  CHECK(step_of(Optimizer::kAdam8Bit, true).empty());
  CHECK(step_of(Optimizer::kAdam, false) == Sizes{Bytes(120), Bytes(14)});
  CHECK(step_of(Optimizer::kSgd, true) == Sizes{Bytes(28)});
  CHECK(step_of(Optimizer::kAdamW, true) == Sizes{Bytes(28), Bytes(120), Bytes(28)});
}

}  // namespace
}  // namespace ckplan
