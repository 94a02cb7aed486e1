#include "lib/planning/runtimes/runtime_plan.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "lib/planning/runtimes/blocks.h"
#include "lib/planning/runtimes/region_runs.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/layered_graph.h"

namespace ckplan {
namespace {

constexpr size_t kLayers = 4;
constexpr size_t kPerLayer = 4;

// The figures of the best plan among those that are added.
class Best {
 public:
  explicit Best(Bytes budget) : budget_(budget) {}
  void Add(const Simulation& plan) {
    if (plan.peak > budget_) return;
    const bool is_better = !found_ || plan.overhead < found_->overhead ||
                           (plan.overhead == found_->overhead && plan.peak < found_->peak);
    if (is_better) found_ = plan;
  }
  void Check(const RuntimePlan& plan) const {
    CHECK(plan.fits == found_.has_value());
    if (!found_ || !plan.fits) return;
    CHECK(plan.overhead == found_->overhead);
    CHECK(plan.peak == found_->peak);
  }

 private:
  const Bytes budget_;
  std::optional<Simulation> found_;
};

struct PlanCase {
  JointGraph graph;
  Bytes budget;
};

PlanCase PlanCaseOf(uint64_t seed) {
  Rng rng(seed);
  JointGraph graph = WithLayers(RandomLayers(rng, kLayers, kPerLayer), kLayers, kPerLayer);
  const Bytes keep_all = KeepAllPeak(graph);
  return {std::move(graph), Bytes(keep_all.count() * rng.Between(30, 100) / 100)};
}

// The region of the layers [begin, end).
OpRegion RegionOf(const std::vector<Block>& blocks, size_t begin, size_t end, Rerun rerun) {
  OpRegion region;
  region.rerun = rerun;
  for (size_t i = begin; i < end; ++i) {
    const ModuleOps& ops = blocks[i].ops;
    region.forward.insert(region.forward.end(), ops.forward.begin(), ops.forward.end());
    region.backward.insert(region.backward.begin(), ops.backward.begin(), ops.backward.end());
  }
  return region;
}

Simulation SimulationOf(const JointGraph& graph, const std::vector<OpRegion>& regions) {
  const RegionRuns runs(graph, regions);
  std::vector<CheckpointedRegion> all;
  for (size_t i = 0; i < regions.size(); ++i) all.push_back({static_cast<int32_t>(i), {}});
  return Simulator(runs.graph()).Run(runs.RunsOf(all)).value();
}

// Checks plans of a kind against the plans that `add_all` lists.
void CheckAgainst(
    RuntimeKind kind,
    const std::function<void(const JointGraph&, const std::vector<Block>&, Best&)>& add_all) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    const PlanCase each = PlanCaseOf(seed);
    const std::vector<Block> blocks = FindBlocks(each.graph).value();
    Best best(each.budget);
    best.Add(SimulationOf(each.graph, {}));
    add_all(each.graph, blocks, best);
    const RuntimePlan plan = FindRuntimePlan(each.graph, kind, each.budget).value();
    CHECK(plan.is_exact);
    CHECK(plan.layers == kLayers);
    best.Check(plan);
  }
}

void AddChunks(const JointGraph& graph, const std::vector<Block>& blocks, Best& best) {
  for (size_t n = 1; n <= kLayers; ++n) {
    std::vector<OpRegion> regions;
    for (size_t begin = 0; begin < kLayers; begin += n) {
      regions.push_back(RegionOf(blocks, begin, std::min(begin + n, kLayers), Rerun::kWhole));
    }
    best.Add(SimulationOf(graph, regions));
  }
}

// Adds an operation to the first layer that must not run twice, and whose result the next operation
// of the layer reads or nothing does.
JointGraph WithUpdate(const JointGraph& graph, bool is_read) {
  JointGraphParts parts = PartsOf(graph);
  Value value;
  value.file_id = 1'000'000;
  Operation update;
  update.file_id = 1'000'000;
  update.module = "layers.0";
  update.may_repeat = false;
  update.writes = {parts.values.push_back(value)};
  if (is_read) parts.ops[OpId(2)].reads.push_back(update.writes.front());
  std::vector<Operation> ops(parts.ops.begin(), parts.ops.end());
  ops.insert(ops.begin() + 2, update);
  parts.ops = IdVector<OpId, Operation>(std::move(ops));
  return JointGraph::Create(std::move(parts)).value();
}

}  // namespace

TEST_CASE("runtime plan: transformers takes the best of every n-th layer") {
  CheckAgainst(RuntimeKind::kTransformers,
               [](const JointGraph& graph, const std::vector<Block>& blocks, Best& best) {
                 for (size_t n = 1; n <= kLayers; ++n) {
                   std::vector<OpRegion> regions;
                   for (size_t i = 0; i < kLayers; i += n) {
                     regions.push_back(RegionOf(blocks, i, i + 1, Rerun::kUpToLastSaved));
                   }
                   best.Add(SimulationOf(graph, regions));
                 }
               });
}

TEST_CASE("runtime plan: deepspeed takes the best interval") {
  CheckAgainst(RuntimeKind::kDeepSpeed, AddChunks);
}

TEST_CASE("runtime plan: megatron takes the best of chunks and first layers") {
  CheckAgainst(RuntimeKind::kMegatron,
               [](const JointGraph& graph, const std::vector<Block>& blocks, Best& best) {
                 AddChunks(graph, blocks, best);
                 std::vector<OpRegion> regions;
                 for (size_t i = 0; i < kLayers; ++i) {
                   regions.push_back(RegionOf(blocks, i, i + 1, Rerun::kWhole));
                   best.Add(SimulationOf(graph, regions));
                 }
               });
}

TEST_CASE("runtime plan: sac takes the best of all sets of saved operations") {
  constexpr size_t kFew = 2;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = WithLayers(RandomLayers(rng, kFew, kPerLayer), kFew, kPerLayer);
    const Bytes budget(KeepAllPeak(graph).count() * rng.Between(30, 100) / 100);
    const std::vector<Block> blocks = FindBlocks(graph).value();
    // The head has one operation, which has nothing to run again.
    const RegionRuns runs(graph, {RegionOf(blocks, 0, 1, Rerun::kUpToLastSaved),
                                  RegionOf(blocks, 1, 2, Rerun::kUpToLastSaved)});
    Best best(budget);
    // For each layer, the number of its set; the last one stands for no checkpoint.
    constexpr unsigned kSets = 1U << kPerLayer;
    for (unsigned pair = 0; pair < (kSets + 1) * (kSets + 1); ++pair) {
      std::vector<CheckpointedRegion> regions;
      for (const int32_t layer : {0, 1}) {
        const unsigned set = layer == 0 ? pair % (kSets + 1) : pair / (kSets + 1);
        if (set == kSets) continue;
        CheckpointedRegion region{layer, std::vector<bool>(kPerLayer)};
        for (size_t i = 0; i < kPerLayer; ++i) region.is_saved[i] = (set >> i & 1) != 0;
        regions.push_back(region);
      }
      best.Add(Simulator(runs.graph()).Run(runs.RunsOf(regions)).value());
    }
    const RuntimePlan plan = FindRuntimePlan(graph, RuntimeKind::kSac, budget).value();
    CHECK(plan.is_exact);
    best.Check(plan);
  }
}

TEST_CASE("runtime plan: megatron knows the modules of a transformer's layer") {
  //  norm → attention: project, product, softmax, product, project → mlp, mlp
  const TensorGraph graph = GraphFromText(
      "n0:4@1 -> n1:4@1 -> n2:40@1 -> n3:40@1 -> n4:4@1 -> n5:4@9 -> n6:20@9 -> n7:4@9 -> "
      "m0:4@1 -> m1:4@1 -> m2:40@1 -> m3:40@1 -> m4:4@1 -> m5:4@9 -> m6:20@9 -> m7:4@9 -> h:4@1");
  JointGraphParts parts = PartsOf(WithLayers(
      graph, 2, 8,
      {"input_norm", "attn.query", "attn", "attn", "attn", "attn.out", "mlp.up", "mlp.down"}));
  for (const int32_t product : {2, 4, 10, 12}) parts.ops[OpId(product)].op = "aten.bmm.default";
  const JointGraph step = JointGraph::Create(std::move(parts)).value();
  // To discard the results of the norms takes less time, but saves only a few bytes.
  const Bytes budget = KeepAllPeak(step) - Bytes(20);
  const RuntimePlan plan = FindRuntimePlan(step, RuntimeKind::kMegatron, budget).value();
  CHECK(plan.fits);
  CHECK(plan.setting.method == "selective");
  CHECK(plan.setting.modules == std::vector<std::string>{"core_attn"});
  REQUIRE(plan.regions.size() == 2);
  CHECK(plan.regions[0].modules == ModuleNames{"layers.0.attn"});
  CHECK(plan.regions[0].ops == 3);
}

TEST_CASE("runtime plan: updates that run once do not keep a layer from being checkpointed") {
  Rng rng(7);
  const JointGraph plain = WithLayers(RandomLayers(rng, 2, 4), 2, 4);
  const Bytes budget = KeepAllPeak(plain) - Bytes(1);
  REQUIRE(FindRuntimePlan(plain, RuntimeKind::kTransformers, budget)->fits);
  for (const bool is_read : {false, true}) {
    CAPTURE(is_read);
    const JointGraph graph = WithUpdate(plain, is_read);
    const Result<RuntimePlan> found = FindRuntimePlan(graph, RuntimeKind::kTransformers, budget);
    CHECK(found.ok() == !is_read);
    if (found.ok()) CHECK(found->fits);
  }
}

TEST_CASE("runtime plan: saved calls are counted by their types") {
  Rng rng(5);
  const JointGraph graph = WithLayers(RandomLayers(rng, 2, 4), 2, 4);
  const RuntimePlan plan =
      FindRuntimePlan(graph, RuntimeKind::kTorchtitan, KeepAllPeak(graph)).value();
  CHECK(plan.overhead == Cost(0));
  REQUIRE(plan.regions.size() == 2);
  REQUIRE(plan.regions[0].saved.size() == 1);
  CHECK(plan.regions[0].saved[0].op == "aten.op.default");
  CHECK(plan.regions[0].saved[0].calls == std::vector<int64_t>{0, 1, 2, 3});
  CHECK(plan.regions[0].saved[0].count == 4);
}

TEST_CASE("runtime plan: operations that are saved by name must be PyTorch's") {
  Rng rng(6);
  JointGraphParts parts = PartsOf(WithLayers(RandomLayers(rng, 2, 4), 2, 4));
  for (Operation& op : parts.ops) op.op = "Gemm";
  const JointGraph graph = JointGraph::Create(std::move(parts)).value();
  for (const RuntimeKind kind : {RuntimeKind::kSac, RuntimeKind::kTorchtitan}) {
    const Result<RuntimePlan> plan = FindRuntimePlan(graph, kind, Bytes(1000));
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().code == ErrorCode::kUnsupported);
  }
  CHECK(FindRuntimePlan(graph, RuntimeKind::kCheckpoint, Bytes(1000)).ok());
}

TEST_CASE("runtime plan: kinds are found by their names, and others are refused with all names") {
  for (const RuntimeKindInfo& info : AllRuntimeKinds()) {
    CHECK(FindRuntimeKind(info.name).value() == info.kind);
  }
  const Result<RuntimeKind> found = FindRuntimeKind("jax");
  REQUIRE_FALSE(found.ok());
  CHECK(found.error().code == ErrorCode::kUsage);
  for (const std::string& name : RuntimeKindNames()) {
    CHECK(found.error().message.find(name) != std::string::npos);
  }
}

}  // namespace ckplan
