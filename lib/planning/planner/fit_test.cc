#include "lib/planning/planner/fit.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/size_reader.h"
#include "lib/planning/plan/optimizer_state.h"
#include "lib/planning/planner/best_planner.h"
#include "lib/planning/planner/one_algorithm.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

constexpr Bytes GiB(int64_t count) { return Bytes(count << 30); }

FitRequest RequestFor(const std::string& model, Bytes memory) {
  FitRequest request;
  request.read = ReaderOf("testdata/models/" + model + ".onnx");
  request.read_size = SizeReaderOf("testdata/models/" + model + ".onnx");
  request.plan.effort = SearchEffort::kQuick;
  request.plan.memory = Budget::Of(memory);
  request.plan.reserve = Bytes(0);
  return request;
}

// Returns whether the request that makes a row's plan again has a plan of the row's added time for
// the model of this size.
bool HasPlan(const FitRequest& request, const Fit& fit, FitRow row, int64_t size) {
  row.size = size;
  const PlanRequest wanted = RequestOf(request, fit, row);
  const Source source = request.read(wanted).value();
  const Result<Plan> plan = MakePlan(source, wanted, {});
  if (!plan.ok()) return false;
  // The cost of a step depends on the size, so that of this plan is used.
  const Cost step = plan->figures.forward_cost + plan->figures.backward_cost;
  return static_cast<double>(plan->figures.overhead.count()) <=
         static_cast<double>(step.count()) * *row.added_percent / 100;
}

// Returns whether some plan of this size fits the memory, whatever time it adds.
bool HasSlowPlan(const FitRequest& request, const Fit& fit, FitRow row, int64_t size) {
  row.size = size;
  const PlanRequest wanted = RequestOf(request, fit, row);
  return MakePlan(request.read(wanted).value(), wanted, {}).ok();
}

Bytes NeedOfKeepingAll(const FitRequest& request, const Fit& fit, int64_t size) {
  FitRow row;
  row.size = size;
  const Source source = request.read(RequestOf(request, fit, row)).value();
  if (request.plan.gradients == ParameterGradients::kAuto) return AccountForKeepAll(source).need();
  return KeepAllPeak(source.step()) +
         TotalConstants(source.step().constants(),
                        OptimizerState(request.plan, source.step().optimized()));
}

}  // namespace

TEST_CASE("fit: planning at each size, and at the next larger one, agrees") {
  struct Case {
    std::string model;
    Bytes memory;
    int64_t multiple_of;
    Optimizer optimizer;
    ParameterGradients gradients = ParameterGradients::kAuto;
    SearchEffort effort = SearchEffort::kQuick;
  };
  for (const Case& row :
       {Case{"vgg11", GiB(7), 1, Optimizer::kAdam, ParameterGradients::kConstant},
        Case{"resnet18", GiB(3), 8, Optimizer::kSgd},
        Case{"resnet18", GiB(3), 8, Optimizer::kSgd, ParameterGradients::kAuto,
             SearchEffort::kNormal},
        Case{"alexnet", GiB(2), 1, Optimizer::kSgd, ParameterGradients::kArriving}}) {
    CAPTURE(row.model);
    FitRequest request = RequestFor(row.model, row.memory);
    request.added_percents = {0, 5, 10};
    request.multiple_of = row.multiple_of;
    request.plan.effort = row.effort;
    request.plan.optimizer = row.optimizer;
    request.plan.gradients = row.gradients;
    const Fit fit = FindFit(request, {}).value();
    CHECK(fit.dim == "N");
    REQUIRE(fit.rows.size() == 4);
    const int64_t keeping_all = fit.rows[0].size;
    CHECK(NeedOfKeepingAll(request, fit, keeping_all) == fit.rows[0].need());
    CHECK(fit.rows[0].need() <= row.memory);
    CHECK(fit.rows[0].limit == FitLimit::kMemory);
    CHECK(NeedOfKeepingAll(request, fit, keeping_all + row.multiple_of) > row.memory);
    for (size_t i = 1; i < fit.rows.size(); ++i) {
      const FitRow& fitting = fit.rows[i];
      CAPTURE(*fitting.added_percent);
      CHECK(fitting.size >= fit.rows[i - 1].size);
      CHECK(fitting.size % row.multiple_of == 0);
      CHECK(fitting.need() <= row.memory);
      CHECK(fitting.model_limit.empty());
      CHECK(HasPlan(request, fit, fitting, fitting.size));
      if (row.effort != SearchEffort::kQuick) {
        CHECK_FALSE(HasPlan(request, fit, fitting, fitting.size + row.multiple_of));
      }
      const bool is_time = HasSlowPlan(request, fit, fitting, fitting.size + row.multiple_of);
      CHECK(fitting.limit == (is_time ? FitLimit::kTime : FitLimit::kMemory));
    }
    CHECK(fit.NextRow() == 3);
    REQUIRE(fit.BestRow().has_value());
    for (const FitRow& other : fit.rows) {
      CHECK(other.throughput() <= fit.rows[*fit.BestRow()].throughput());
    }
  }
}

TEST_CASE("fit: a derived size is what reading the model at that size gives") {
  struct Case {
    std::string model;
    std::string dim;
    ParameterGradients gradients = ParameterGradients::kAuto;
    int64_t align_bytes = 1;
  };
  for (const Case& row :
       {Case{"resnet18", "N"}, Case{"resnet18", "N", ParameterGradients::kArriving},
        Case{"densenet121", "N", ParameterGradients::kAuto, 512}, Case{"vit_b_16", "N"},
        Case{"bert_base_512", "N"}, Case{"light_shufflenet", ""}}) {
    CAPTURE(row.model);
    const std::string path = "testdata/models/" + row.model + ".onnx";
    const ReadAtSize read = SizeReaderOf(path);
    PlanRequest request = RequestAsPyTorchRuns();
    request.gradients = row.gradients;
    request.align_bytes = row.align_bytes;
    const auto request_at = [&](int64_t size) {
      (row.dim.empty() ? request.batch : request.dims[row.dim]) = size;
      return request;
    };
    for (const int64_t size : {1, 2, 17, 40, 23, 6, 1'000, 700, 200, 100}) {
      REQUIRE(read(request_at(size), row.dim).ok());
    }
    for (const int64_t size : {3, 50, 64, 800, 1'200}) {
      CAPTURE(size);
      const Source derived = read(request_at(size), row.dim).value();
      const Source source = LoadSource(path, request_at(size)).value();
      CHECK(derived.is_derived);
      CHECK(derived.graph == source.graph);
      CHECK(derived.joint == source.joint);
      CHECK(derived.buffers == source.buffers);
      CHECK(derived.request == source.request);
    }
    request.optimizer = Optimizer::kSgd;  // Another request is read anew.
    CHECK_FALSE(read(request_at(64), row.dim).value().is_derived);
  }
}

TEST_CASE("fit: if a reported size is not as derived, every size is read") {
  FitRequest request = RequestFor("resnet18", GiB(3));
  const Fit fit = FindFit(request, {}).value();
  // Is wrong about every size beyond the first few.
  const ReadAtSize derive = request.read_size;
  request.read_size = [&](const PlanRequest& plan, const std::string& dim) -> Result<Source> {
    PlanRequest smaller = plan;
    smaller.dims[dim] = (plan.dims.at(dim) + 1) / 2;
    Result<Source> source = derive(smaller, dim);
    if (source.ok()) source->is_derived = true;
    return source;
  };
  const Fit again = FindFit(request, {}).value();
  REQUIRE(again.rows.size() == fit.rows.size());
  for (size_t i = 0; i < fit.rows.size(); ++i) {
    CHECK(again.rows[i].size == fit.rows[i].size);
    CHECK(again.rows[i].need() == fit.rows[i].need());
  }
}

TEST_CASE("fit: where millions of samples fit, plans are sought in parts of the size") {
  FitRequest request = RequestFor("small_gpt2_32", GiB(80));
  request.plan.reserve.reset();
  request.added_percents = {5};
  const Fit fit = FindFit(request, {}).value();
  CHECK(fit.rows[0].size > 1'000'000);
  CHECK(fit.rows[0].next_size == fit.rows[0].size + 1);
  const FitRow& row = fit.rows[1];
  CHECK(row.size > fit.rows[0].size);
  CHECK(row.next_size > row.size);
  CHECK(row.next_size <= row.size + row.size / 512);
  CHECK(row.need() <= GiB(80));
  CHECK(HasSlowPlan(request, fit, row, row.size));
  CHECK_FALSE(HasPlan(request, fit, row, row.next_size));
}

TEST_CASE("fit: with a link to the host larger sizes fit, by plans that move values there") {
  FitRequest request = RequestFor("tiny_mlp", Bytes(256 << 10));
  request.added_percents = {0, 10};
  const Fit without = FindFit(request, {}).value();
  request.plan.offload = ParseLink("c2c").value();
  for (const std::optional<Bytes> host : {std::optional<Bytes>(), std::optional(Bytes(64 << 10))}) {
    request.plan.host_budget = host;
    const Fit fit = FindFit(request, {}).value();
    REQUIRE(fit.rows.size() == 3);
    CHECK(fit.rows[0].size == without.rows[0].size);
    CHECK(fit.rows[0].host_peak == Bytes(0));
    for (size_t i = 1; i < fit.rows.size(); ++i) {
      const FitRow& row = fit.rows[i];
      CAPTURE(*row.added_percent);
      CHECK(row.size > without.rows[i].size);
      CHECK(row.need() <= request.plan.memory.bytes);
      CHECK(row.host_peak > Bytes(0));
      if (host) CHECK(row.host_peak <= *host);
      CHECK(HasPlan(request, fit, row, row.size));
      CHECK_FALSE(HasPlan(request, fit, row, row.size + 1));
    }
  }
}

TEST_CASE("fit: the batch that is burnt into a file is sought as an open dimension is") {
  FitRequest request = RequestFor("light_shufflenet", GiB(1));
  request.plan.algorithm = "chen-sqrt";
  request.plan.effort = PlanRequest().effort;
  request.added_percents = {30};
  const Fit fit = FindFit(request, {}).value();
  CHECK(fit.dim == "batch");
  CHECK(fit.is_burnt_batch);
  CHECK(fit.plan.batch == 0);
  REQUIRE(fit.rows.size() == 2);
  const FitRow& kept = fit.rows[0];
  CHECK(kept.size > 1);
  CHECK(RequestOf(request, fit, kept).batch == kept.size);
  CHECK(RequestOf(request, fit, kept).dims.empty());
  CHECK(NeedOfKeepingAll(request, fit, kept.size) == kept.need());
  CHECK(kept.need() <= request.plan.memory.bytes);
  CHECK(NeedOfKeepingAll(request, fit, kept.size + 1) > request.plan.memory.bytes);
  request.plan.batch = 4;
  const Result<Fit> bound = FindFit(request, {});
  REQUIRE_FALSE(bound.ok());
  CHECK(bound.error().code == ErrorCode::kUsage);
  CHECK(bound.error().message.find("cannot be both fixed and fitted") != std::string::npos);
}

TEST_CASE("fit: what must run again is charged to every row, the first one too") {
  FitRequest request = RequestFor("resnet18", GiB(3));
  request.plan.recompute = {"op:Relu"};
  request.added_percents = {0, 12, 30};
  const Fit fit = FindFit(request, {}).value();
  REQUIRE(fit.rows.size() == 4);
  const FitRow& keeping_all = fit.rows[0];
  CHECK(keeping_all.overhead > Cost(0));
  PlanRequest kept = RequestOf(request, fit, keeping_all);
  kept.algorithm = "keep-all";
  kept.effort = PlanRequest().effort;
  const Plan plan = MakePlan(request.read(kept).value(), kept, {}).value();
  CHECK(plan.figures.peak == keeping_all.peak);
  CHECK(plan.figures.overhead == keeping_all.overhead);
  CHECK(fit.rows[1].size == 0);  // Every plan that obeys the constraints adds time.
  for (size_t i : {2, 3}) {
    CAPTURE(i);
    CHECK(fit.rows[i].size > keeping_all.size);
    CHECK(HasPlan(request, fit, fit.rows[i], fit.rows[i].size));
    CHECK_FALSE(HasPlan(request, fit, fit.rows[i], fit.rows[i].size + 1));
  }
}

TEST_CASE("fit: any algorithm, and what does not fit at all") {
  FitRequest request = RequestFor("alexnet", GiB(2));
  request.plan.algorithm = "chen-sqrt";
  request.added_percents = {40};
  const Fit fit = FindFit(request, {}).value();
  REQUIRE(fit.rows.size() == 2);
  CHECK(fit.rows[1].size > fit.rows[0].size);
  CHECK(HasPlan(request, fit, fit.rows[1], fit.rows[1].size));
  CHECK_FALSE(HasPlan(request, fit, fit.rows[1], fit.rows[1].size + 1));

  request.plan.memory = Budget::Of(Bytes(1'000'000));
  const Fit nothing = FindFit(request, {}).value();
  CHECK_FALSE(nothing.BestRow().has_value());
  CHECK_FALSE(nothing.NextRow().has_value());
  for (const FitRow& row : nothing.rows) CHECK(row.size == 0);
}

TEST_CASE("fit: the row to go on from is that of a tenth of a step, or the nearest that fits") {
  const auto next_of = [](const std::vector<std::pair<std::optional<double>, int64_t>>& rows) {
    Fit fit;
    for (const auto& [percent, size] : rows) {
      FitRow& row = fit.rows.emplace_back();
      row.added_percent = percent;
      row.size = size;
    }
    return fit.NextRow();
  };
  CHECK(next_of({{std::nullopt, 9}, {0, 9}, {5, 9}, {10, 9}, {20, 12}}) == 3);
  CHECK(next_of({{std::nullopt, 9}, {5, 9}, {10, 0}, {20, 12}}) == 1);
  CHECK(next_of({{std::nullopt, 9}, {2, 9}, {15, 9}}) == 2);
  CHECK(next_of({{std::nullopt, 0}, {5, 0}, {30, 2}}) == 2);
  CHECK(next_of({{std::nullopt, 9}, {5, 0}}) == 0);
  CHECK(next_of({{std::nullopt, 9}}) == 0);
}

TEST_CASE("fit: constants that alone exceed the memory are reported, with what would help") {
  FitRequest request = RequestFor("alexnet", Bytes(400 << 20));
  request.plan.optimizer = Optimizer::kAdam;
  request.added_percents = {10};
  const Fit fit = FindFit(request, {}).value();
  CHECK_FALSE(fit.BestRow().has_value());
  CHECK(fit.smallest_size == 1);
  REQUIRE(fit.shortage.has_value());
  CHECK(fit.shortage->needed() > request.plan.memory.bytes);
  std::vector<std::string> fields;
  for (const LessConstants& less : fit.shortage->remedies) {
    fields.push_back(less.setting.name);
    CHECK(less.constants < fit.shortage->needed());
    // With the remedy's setting, the constants have the reported size.
    PlanRequest with = request.plan;
    with.dims["N"] = 1;
    if (less.setting.name == "sharding") {
      CHECK(less.setting.value == "fsdp:16");
      CHECK(less.constants <= request.plan.memory.bytes);
      with.sharding = Sharding{ShardingSystem::kFsdp, 16};
    } else if (less.setting.name == "optimizer") {
      const bool is_sgd = less.setting.value == "sgd";
      CHECK(is_sgd == (less.setting.value != "adam8bit"));
      with.optimizer = is_sgd ? Optimizer::kSgd : Optimizer::kAdam8Bit;
    } else {
      with.freeze = {"*"};
    }
    const Source source = request.read(with).value();
    CHECK(less.constants == TotalConstants(source.step().constants(),
                                           OptimizerState(with, source.step().optimized())));
  }
  CHECK(fields == std::vector<std::string>{"sharding", "optimizer", "optimizer", "freeze"});
  // If the constants fit but the activations do not, no shortage of constants is reported.
  request.plan.memory = Budget::Of(fit.shortage->needed() + Bytes(1));
  CHECK_FALSE(FindFit(request, {}).value().shortage.has_value());
}

TEST_CASE("fit: what cannot be asked") {
  const auto error_of = [](const FitRequest& request) { return FindFit(request, {}).error(); };
  FitRequest measured = RequestFor("alexnet", GiB(1));
  measured.plan.cost_model = "file:costs.json";
  CHECK(error_of(measured).code == ErrorCode::kUsage);

  FitRequest unknown = RequestFor("alexnet", GiB(1));
  unknown.dim = "T";
  CHECK(error_of(unknown).code == ErrorCode::kUsage);

  FitRequest bound = RequestFor("alexnet", GiB(1));
  bound.plan.dims["N"] = 4;
  CHECK(error_of(bound).message.find("leave out the one to fit") != std::string::npos);
}

TEST_CASE("best: a search for a plan of so much time finds one just if the whole search does") {
  int with_recomputation = 0;
  for (uint64_t seed = 1; seed <= Instances(20); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = 10;
    const TensorGraph graph = RandomTensorGraph(rng, options);
    PlanRequest request;
    request.effort = SearchEffort::kQuick;
    request.budget = {Budget::Kind::kPercent, Bytes(0), 70 + static_cast<double>(seed % 25)};
    const auto plan_within = [&](Cost enough) {
      const SolveLimits limits;
      BestUntil search(request, enough, limits);
      const auto find = [&](SearchDepth depth) {
        return FindBestPlanWithin(graph, request, &search, depth, PlanDetail::kWhole).value();
      };
      // The whole search begins with what the curve has.
      const PlanWithin read = find(SearchDepth::kCurve);
      PlanWithin found = find(SearchDepth::kWhole);
      if (read.plan) CHECK(found.plan.has_value());
      return found;
    };
    const Result<Plan> plan = MakePlan(graph, request, {});
    if (!plan.ok()) {
      CHECK_FALSE(plan_within(Cost(1'000'000)).plan.has_value());
      continue;
    }
    const Cost overhead = plan->figures.overhead;
    for (const Cost more : {Cost(0), Cost(1), Cost(100)}) {
      const auto found = plan_within(overhead + more);
      REQUIRE(found.plan.has_value());
      CHECK(found.plan->figures.overhead <= overhead + more);
      CHECK(found.plan->figures.peak <= *plan->request.budget.in_bytes());
    }
    if (overhead == Cost(0)) continue;
    ++with_recomputation;
    const auto less = plan_within(overhead - Cost(1));
    CHECK_FALSE(less.plan.has_value());
    if (plan->figures.certificate->scope != BoundScope::kOwnOrder) continue;
    const auto bound = OwnOrderBound(graph, *plan->request.budget.in_bytes());
    REQUIRE(bound.has_value());
    CHECK(*bound <= overhead);
  }
  CHECK(with_recomputation > 0);
}

}  // namespace ckplan
