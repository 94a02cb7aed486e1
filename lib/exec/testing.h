// Small models, ready to run on a backend, for the tests of this folder.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/exec/constant_store.h"
#include "lib/exec/prepared_step.h"
#include "lib/exec/ready_plan.h"
#include "lib/exec/runner.h"
#include "lib/exec/step_model.h"
#include "lib/exec/validate.h"
#include "lib/exec/weights.h"
#include "lib/model/testing.h"
#include "lib/schedule/lower.h"

namespace ckplan {

struct ParameterShape {
  std::string name;
  std::vector<int64_t> dims;
};

// The graph as in ParseGraph, with parameters whose contents the file lacks.
inline onnx::ModelProto WithParameters(const std::string& graph,
                                       const std::vector<ParameterShape>& parameters) {
  onnx::ModelProto proto = ParseGraph(graph);
  for (const ParameterShape& parameter : parameters) {
    onnx::TensorProto& tensor = *proto.mutable_graph()->add_initializer();
    tensor.set_name(parameter.name);
    tensor.set_data_type(onnx::TensorProto::FLOAT);
    for (const int64_t dim : parameter.dims) tensor.add_dims(dim);
  }
  return proto;
}

// Has of each what makes backward hard: a statistic, results in place, a residual, views, a weight
// that two nodes share, another that is used transposed, random numbers, and products whose
// partners are both read.
inline onnx::ModelProto SmallNet() {
  return WithParameters(
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
       {"w5", {6, 5}}});
}

// A model from its file to the memory of the backend.
class SmallStep {
 public:
  SmallStep(Backend& backend, const onnx::ModelProto& proto, const LoadOptions& options = {})
      : backend_(backend), file_("step.onnx") {
    file_.Write(proto.SerializeAsString());
    const Result<Model> model = LoadModel(file_.path(), options);
    REQUIRE_MESSAGE(model.ok(), model.error().message);
    LowerOptions lower;
    lower.cost = ParseCostModel("flops").value();
    lowered_ = LowerModel(*model, lower).value();
    Result<StepModel> built = BuildStepModel(*model, *lowered_);
    REQUIRE_MESSAGE(built.ok(), built.error().message);
    step_ = std::move(built).value();
    Result<PreparedStep> prepared = PrepareStep(backend, *step_);
    REQUIRE_MESSAGE(prepared.ok(), prepared.error().notes.front());
    prepared_ = std::move(prepared).value();
    constants_ = std::make_unique<ConstantStore>(
        ConstantStore::Create(backend, *step_, *prepared_, WeightFile::Open(file_.path()).value(),
                              kSeed)
            .value());
  }

  const StepModel& step() const { return *step_; }
  const PreparedStep& prepared() const { return *prepared_; }
  ConstantStore& constants() { return *constants_; }

  // Its graph with workspaces, sizes in cache lines, as `ckplan --cost file: --align 64` plans it.
  ReadyGraph Graph() const {
    ReadyGraph run{GraphWithWorkspaces(*step_, *prepared_).value(), true};
    run.graph = AlignSizes(run.graph, 64).value();
    return run;
  }
  ReadyPlan KeepAll() const {
    std::vector<NodeId> order;
    for (const NodeId id : step_->graph.nodes().ids()) order.push_back(id);
    return PlaceReadyPlan(*step_, Graph(), KeepAllSchedule(order));
  }
  // Keeps each node's results with the chance of `percent`.
  ReadyPlan Random(Rng& rng, int percent) const {
    const ReadyGraph run = Graph();
    KeptSet kept{IdVector<NodeId, bool>(run.graph.nodes().size())};
    for (const NodeId id : run.graph.nodes().ids()) kept.is_kept[id] = rng.Chance(percent);
    return PlaceReadyPlan(*step_, run, LowerStrategy(run.graph, kept));
  }

  // Runs one step in the counting allocator; the gradients are then in constants().
  double Run(const ReadyPlan& plan, LossKind kind) {
    const Loss loss(kind, kSeed);
    Runner runner(backend_, *step_, *prepared_, *constants_, loss, kSeed, nullptr);
    CountingMemory memory(backend_, plan.program);
    const Result<double> value = runner.Run(plan.program, memory, nullptr);
    REQUIRE_MESSAGE(value.ok(), value.error().message);
    return *value;
  }
  ValidationReport Validate(const ReadyPlan& keep_all, const ReadyPlan& plan) {
    const Loss loss(LossKind::kGiven, kSeed);
    Runner runner(backend_, *step_, *prepared_, *constants_, loss, kSeed, nullptr);
    ValidateOptions options;
    options.timed_runs = 0;
    Result<ValidationReport> report =
        ValidateRuns(backend_, *step_, *constants_, runner, keep_all, plan, options);
    REQUIRE_MESSAGE(report.ok(), report.error().message);
    return std::move(report).value();
  }

  static constexpr uint64_t kSeed = 20190704;

 private:
  Backend& backend_;
  TemporaryFile file_;
  std::optional<LoweredModel> lowered_;
  std::optional<StepModel> step_;
  std::optional<PreparedStep> prepared_;
  std::unique_ptr<ConstantStore> constants_;
};

}  // namespace ckplan
