#include "lib/executor/core/testing/steps.h"

#include <optional>
#include <utility>

#include "lib/executor/core/element_orders.h"
#include "lib/files/model/testing/models.h"
#include "lib/files/model/weights.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/problem/schedule/transfers.h"
#include "lib/testing/random_schedule.h"

namespace ckplan {

namespace {

constexpr uint64_t kSeed = 20190704;

}  // namespace

std::vector<ActivationType> StoredTypes(const Backend& backend) {
  std::vector<ActivationType> types{ActivationType::kFloat32};
  if (backend.StoresBFloat16()) types.push_back(ActivationType::kBFloat16);
  return types;
}

NetText SmallNet() {
  return {
      "g (float[N,3,8,8] x) => (float[N,5] y) <float p = {0.3}, bool is_training = {1}> {"
      "  c1 = Conv<pads = [1,1,1,1]>(x, w1, b1)"
      "  n1 = BatchNormalization(c1, scale, shift, mean, variance)"
      "  r1 = Relu(n1)"
      "  c2 = Conv<pads = [1,1,1,1]>(r1, w2, b2)"
      "  a = Add(c2, r1)"
      "  r2 = Relu(a)"
      "  p2 = MaxPool<kernel_shape = [2,2], strides = [2,2]>(r2)"
      "  c3 = Conv<pads = [1,1,1,1]>(p2, w2, b2)"
      "  s3 = Sigmoid(c3)"
      "  m3 = Mul(s3, c3)"
      "  q = GlobalAveragePool(m3)"
      "  f = Flatten(q)"
      "  d = Dropout(f, p, is_training)"
      "  t4 = Transpose<perm = [1,0]>(w4)"
      "  h = MatMul(d, t4)"
      "  e = Exp(h)"
      "  y = MatMul(e, w5)"
      "}",
      {{"w1", {4, 3, 3, 3}},
       {"b1", {4}},
       {"scale", {4}},
       {"shift", {4}},
       {"mean", {4}},
       {"variance", {4}},
       {"w2", {4, 4, 3, 3}},
       {"b2", {4}},
       {"w4", {6, 4}},
       {"w5", {6, 5}}}};
}

struct SmallStep::State {
  explicit State(Backend& the_backend) : backend(the_backend) {}

  Backend& backend;
  TemporaryFile file{"step.onnx"};
  std::optional<ModelGraph> lowered;
  std::optional<StepGraph> step;
  std::optional<StepOperators> operators;
  std::unique_ptr<ConstantStore> constants;
};

SmallStep::SmallStep(Backend& backend, const NetText& net, int64_t batch, ActivationType type,
                     FusedOperators fused, Autograd autograd)
    : state_(std::make_unique<State>(backend)) {
  state_->file.Write(ModelFileBytes(net.graph, net.parameters, net.opset));
  const std::string& path = state_->file.path();
  LoadOptions options = batch == 0 ? LoadOptions() : BatchOf(batch);
  options.activation_type = type;
  options.fused = fused;
  if (fused == FusedOperators::kCaptured) options.restored = RestoredOperators::kCaptured;
  options.autograd = autograd;
  const Result<Model> model = LoadModel(path, options);
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  LowerOptions lower;
  lower.cost = ParseCostModel("flops").value();
  lower.autograd = autograd;
  state_->lowered = LowerModel(*model, lower).value();
  Result<StepGraph> built = BuildStepGraph(*model, *state_->lowered, autograd);
  REQUIRE_MESSAGE(built.ok(), built.error().message);
  state_->step = std::move(built).value();
  ChooseOrders(*state_->step, backend);
  Result<StepOperators> operators = PrepareOperators(backend, *state_->step);
  REQUIRE_MESSAGE(operators.ok(), operators.error().notes.front());
  state_->operators = std::move(operators).value();
  state_->constants = std::make_unique<ConstantStore>(
      ConstantStore::Create(backend, *state_->step, *state_->operators,
                            WeightFile::Open(path).value(), kSeed)
          .value());
}

SmallStep::~SmallStep() = default;

const StepGraph& SmallStep::step() const { return *state_->step; }
const StepOperators& SmallStep::operators() const { return *state_->operators; }
ConstantStore& SmallStep::constants() { return *state_->constants; }

SizedGraph SmallStep::Graph() const {
  SizedGraph run{GraphWithWorkspaces(step(), operators()).value(), true};
  run.graph = AlignSizes(run.graph, BufferAlignment(state_->backend)).value();
  return run;
}

PlacedProgram SmallStep::KeepAll() const {
  std::vector<NodeId> order;
  for (const NodeId id : step().graph.nodes().ids()) order.push_back(id);
  return PlaceProgram(step(), Graph(), KeepAllSchedule(order));
}

PlacedProgram SmallStep::Random(Rng& rng, int percent) const {
  const SizedGraph run = Graph();
  KeptSet kept{IdVector<NodeId, bool>(run.graph.nodes().size())};
  for (const NodeId id : run.graph.nodes().ids()) kept.is_kept[id] = rng.Chance(percent);
  return PlaceProgram(step(), run, LowerStrategy(run.graph, kept));
}

PlacedProgram SmallStep::RandomMoves(Rng& rng, int percent) const {
  const SizedGraph run = Graph();
  const Expansion expansion = ExpandTensorGraph(run.graph);
  const Link link = RandomLink(rng);
  KeptSet kept{IdVector<NodeId, bool>(run.graph.nodes().size())};
  for (const NodeId id : run.graph.nodes().ids()) kept.is_kept[id] = rng.Chance(percent);
  const std::vector<OpId> runs = RunsOf(expansion, LowerStrategy(run.graph, kept));
  const TrainingStep joint =
      TrainingStep(expansion.graph, run.graph, expansion.step_of).WithLink(&link);
  Schedule schedule = WithRandomMoves(rng, expansion.graph, runs);
  while (!Simulator(joint).Run(schedule).ok() ||
         !InForwardForm(run.graph, expansion, schedule).ok()) {
    schedule = WithRandomMoves(rng, expansion.graph, runs);
  }
  const Simulation expected = Simulator(joint).Run(schedule).value();
  PlacedProgram placed =
      PlaceProgram(step(), run, InForwardForm(run.graph, expansion, schedule).value());
  placed.is_half_duplex = link.duplex == Duplex::kHalf;
  // Both schedules need the same memory.
  CHECK(placed.predicted_peak == expected.peak);
  CHECK(placed.predicted_host_peak == expected.host_peak);
  return placed;
}

PlacedProgram SmallStep::RandomOrder(Rng& rng, int percent) const {
  const SizedGraph run = Graph();
  const Schedule schedule = RandomSchedule::Make(rng, run.graph, percent);
  REQUIRE(Simulator(run.graph).Run(schedule).ok());
  return PlaceProgram(step(), run, schedule);
}

double SmallStep::Run(const PlacedProgram& plan, LossKind kind) {
  const Loss loss(kind, kSeed);
  Runner runner(state_->backend, step(), operators(), constants(), loss, kSeed, nullptr);
  CountingMemory memory(state_->backend, plan.program);
  const Result<double> value = runner.Run(plan.program, memory, nullptr);
  REQUIRE_MESSAGE(value.ok(), value.error().message);
  return *value;
}

std::vector<double> SmallStep::RunRecorded(const PlacedProgram& plan, LossKind kind, int times) {
  const Loss loss(kind, kSeed);
  Runner runner(state_->backend, step(), operators(), constants(), loss, kSeed, nullptr);
  const auto arena = ArenaMemory::Create(state_->backend, plan.program, plan.offsets,
                                         plan.arena_bytes, /*poisons=*/false);
  REQUIRE(arena.ok());
  const auto recorded = runner.Record(plan.program, **arena);
  REQUIRE_MESSAGE(recorded.ok(), recorded.error().message);
  std::vector<double> losses;
  for (int i = 0; *recorded != nullptr && i < times; ++i) {
    const Result<double> value = runner.RunRecorded(**recorded, nullptr);
    REQUIRE_MESSAGE(value.ok(), value.error().message);
    losses.push_back(*value);
  }
  return losses;
}

ValidationReport SmallStep::Validate(const PlacedProgram& keep_all, const PlacedProgram& plan,
                                     int timed_runs) {
  ValidateOptions options;
  options.timed_runs = timed_runs;
  return Validate(keep_all, plan, options);
}

ValidationReport SmallStep::Validate(const PlacedProgram& keep_all, const PlacedProgram& plan,
                                     const ValidateOptions& options) {
  const Loss loss(LossKind::kGiven, kSeed);
  Runner runner(state_->backend, step(), operators(), constants(), loss, kSeed, nullptr);
  Result<ValidationReport> report =
      ValidateRuns(state_->backend, step(), constants(), runner, keep_all, plan, options);
  REQUIRE_MESSAGE(report.ok(), report.error().message);
  return std::move(report).value();
}

}  // namespace ckplan
