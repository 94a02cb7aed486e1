
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lib/base/rng.h"
#include "lib/base/stop.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/mip/mip.h"
#include "lib/planning/plan/added_time.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

PlanRequest KeepAll() {
  PlanRequest request;
  request.algorithm = "keep-all";
  return request;
}

JointGraph SomeGraph() {
  Rng rng(4);
  RandomJointOptions options;
  options.parameter_gradient = 40;
  return RandomJointGraph(rng, options);
}

}  // namespace

TEST_CASE("joint planner: keep-all runs the graph's own order once") {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    const Plan plan = MakePlan(graph, KeepAll(), {}).value();
    CHECK(CheckPlan(graph, plan).empty());
    CHECK(plan.figures.peak == KeepAllPeak(graph));
    CHECK(plan.figures.peak == plan.figures.baseline_peak);
    CHECK(plan.figures.overhead == Cost(0));
    CHECK(plan.request.objective == Objective::kTime);
  }
}

TEST_CASE("joint planner: budgets in bytes, percent, the least, and with constants") {
  const JointGraph graph = SomeGraph();
  const Bytes peak = KeepAllPeak(graph);
  PlanRequest request = KeepAll();
  request.optimizer = Optimizer::kAdam;
  request.budget = Budget::Of(peak);
  CHECK(MakePlan(graph, request, {})->request.budget == Budget::Of(peak));
  request.budget = {Budget::Kind::kPercent, Bytes(0), 100};
  const Plan whole = MakePlan(graph, request, {}).value();
  CHECK(whole.request.budget == Budget::Of(peak));
  request.budget = {Budget::Kind::kMin, Bytes(0), 0};
  const Plan least = MakePlan(graph, request, {}).value();
  CHECK(least.request.budget == Budget::Of(peak));
  CHECK_FALSE(least.figures.is_optimal);

  request.budget = Budget::Of(peak - Bytes(1));
  const Error refusal = MakePlan(graph, request, {}).error();
  CHECK(refusal.code == ErrorCode::kInfeasible);
  CHECK(refusal.remedy.settings.front().name == "budget");
  CHECK(refusal.remedy.settings.front().value == std::to_string(peak.count()));

  const Bytes constants = TotalConstants(whole.figures);
  REQUIRE(constants > whole.figures.constants.inputs);
  request.budget = {};
  request.total_budget = Budget::Of(peak + constants);
  CHECK(MakePlan(graph, request, {})->request.budget == Budget::Of(peak));
  request.total_budget = Budget::Of(peak + constants - Bytes(1));
  const Error total = MakePlan(graph, request, {}).error();
  CHECK(total.remedy.settings.front().name == "total_budget");
  CHECK(total.remedy.settings.front().value == std::to_string((peak + constants).count()));
}

TEST_CASE("joint planner: no other algorithm is better than best within the same budget") {
  int compared = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = static_cast<int>(rng.Between(6, 10));
    JointGraphParts parts = PartsOf(RandomJointGraph(rng, options));
    for (const OpId id : parts.ops.ids()) {
      const bool is_forward = id.index() < options.ops / 2;
      parts.ops[id].phase = is_forward ? Phase::kForward : Phase::kBackward;
    }
    const JointGraph graph = JointGraph::Create(std::move(parts)).value();
    PlanRequest request;
    request.budget = {Budget::Kind::kMin, Bytes(0), 0};
    request.algorithm = kBestAlgorithm;
    const Plan least = MakePlan(graph, request, {}).value();
    for (const SolverInfo* info : ListedAlgorithms()) {
      if (!PlansRuns(*info) || info->name == kBestAlgorithm) continue;
      if (info->name == kGivenAlgorithm) continue;     // It needs decisions.
      if (info->prepare_offload != nullptr) continue;  // It needs a link.
      if (info->name == "checkmate" && !HasMipSolver()) continue;
      CAPTURE(info->name);
      request.algorithm = info->name;
      request.budget = {Budget::Kind::kMin, Bytes(0), 0};
      const Plan other = MakePlan(graph, request, {}).value();
      CHECK(least.figures.peak <= other.figures.peak);
      request.budget = Budget::Of(other.figures.peak);
      const Plan within = MakePlan(graph, request, {}).value();
      request.algorithm = kBestAlgorithm;
      const Plan best = MakePlan(graph, request, {}).value();
      CHECK(best.figures.overhead <= within.figures.overhead);
      ++compared;
    }
  }
  CHECK(compared >= 60);
}

TEST_CASE("joint planner: without a budget, the least peak for a tenth of a step, and the others") {
  int recomputing = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    PlanRequest request;
    request.algorithm = kBestAlgorithm;
    request.effort = SearchEffort::kQuick;
    const Plan plan = MakePlan(graph, request, {}).value();
    CHECK(CheckPlan(graph, plan).empty());
    CHECK_FALSE(plan.request.budget.is_given());
    REQUIRE_FALSE(plan.figures.curve.empty());
    CHECK(plan.figures.curve.back().peak <= KeepAllPeak(graph));
    CHECK(plan.figures.overhead <= MostAdded(10, graph.cost()));
    recomputing += plan.figures.overhead > plan.figures.curve.back().overhead;
  }
  CHECK(recomputing > 0);
}

TEST_CASE("joint planner: a refusal says what is proven, and a least peak as well") {
  int proven = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    PlanRequest request;
    request.algorithm = kBestAlgorithm;
    request.effort = SearchEffort::kQuick;
    request.budget = {Budget::Kind::kMin, Bytes(0), 0};
    const Plan least = MakePlan(graph, request, {}).value();
    const Certificate& certificate = least.figures.certificate.value();
    REQUIRE(certificate.peak.bytes + certificate.peak_gap == least.figures.peak);
    if (certificate.peak.bytes == Bytes(0)) continue;
    proven += certificate.peak_gap == Bytes(0);
    request.budget = Budget::Of(certificate.peak.bytes - Bytes(1));
    const Result<Plan> refused = MakePlan(graph, request, {});
    REQUIRE_FALSE(refused.ok());
    CHECK(refused.error().notes.front().starts_with("no plan in any order fits"));
  }
  CHECK(proven > 5);
}

// Checks the plans for all budgets up to one byte more than the peak of keeping everything.
void CheckEveryBudget(const JointGraph& graph, PlanRequest request) {
  request.budget = {Budget::Kind::kMin, Bytes(0), 0};
  const Plan min = MakePlan(graph, request, {}).value();
  const Bytes least = min.figures.peak;
  for (Bytes budget(1); budget <= KeepAllPeak(graph) + Bytes(1); budget += Bytes(1)) {
    CAPTURE(budget.count());
    request.budget = Budget::Of(budget);
    const Result<Plan> plan = MakePlan(graph, request, {});
    REQUIRE(plan.ok() == (budget >= least));
    if (plan.ok()) {
      CHECK(plan->figures.peak <= budget);
      CHECK(plan->figures.peak >= least);
    } else {
      REQUIRE(plan.error().code == ErrorCode::kInfeasible);
      CHECK(plan.error().remedy.settings.at(0).value == std::to_string(least.count()));
    }
  }
}

TEST_CASE("joint planner: every algorithm's least budget is the least of all, tried one by one") {
  for (const SolverInfo* info : ListedAlgorithms()) {
    if (!PlansRuns(*info) || info->name == kGivenAlgorithm) continue;
    if (info->prepare_offload != nullptr) continue;  // It needs a link.
    const bool is_program = info->name == "checkmate" || info->name == kBestAlgorithm;
    if (info->name == "checkmate" && !HasMipSolver()) continue;
    CAPTURE(std::string(info->name));
    const uint64_t last = is_program ? Instances(24) : Instances(300);
    for (uint64_t seed = 1; seed <= last; ++seed) {
      CAPTURE(seed);
      Rng rng(seed);
      RandomJointOptions options;
      options.ops = static_cast<int>(rng.Between(3, is_program ? 7 : 12));
      options.max_bytes = 6;
      PlanRequest request;
      request.algorithm = std::string(info->name);
      request.effort = SearchEffort::kQuick;
      CheckEveryBudget(RandomJointGraph(rng, options), request);
    }
  }
}

// Checks that there is a plan within the least budget, and within those that refusals name. Returns
// the number of refusals.
int CheckNamedBudgets(const JointGraph& graph, PlanRequest request) {
  request.budget = {Budget::Kind::kMin, Bytes(0), 0};
  std::vector<Bytes> named = {MakePlan(graph, request, {}).value().figures.peak};
  for (const int64_t percent : {60, 97}) {
    request.budget = Budget::Of(Bytes(named.front().count() * percent / 100));
    const Result<Plan> refused = MakePlan(graph, request, {});
    if (refused.ok()) continue;
    named.emplace_back(std::stoll(refused.error().remedy.settings.at(0).value));
  }
  const size_t refusals = named.size() - 1;
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  for (const Bytes budget : named) {
    CAPTURE(budget.count());
    request.budget = Budget::Of(budget);
    const Result<Plan> plan = MakePlan(graph, request, {});
    REQUIRE(plan.ok());
    CHECK(plan->figures.peak <= budget);
    CHECK(CheckPlan(graph, *plan).empty());
    if (plan->figures.lower_bound_cost) {
      CHECK(*plan->figures.lower_bound_cost <= plan->figures.overhead);
    }
  }
  return static_cast<int>(refusals);
}

TEST_CASE("joint planner: what the least budget or a refusal names is a budget with a plan") {
  PlanRequest request;
  request.algorithm = kBestAlgorithm;
  int refusals = 0;
  request.effort = SearchEffort::kQuick;
  for (uint64_t seed = 1; seed <= 6; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomJointOptions options;
    options.ops = static_cast<int>(rng.Between(8, 16));
    options.max_bytes = 4000;
    refusals += CheckNamedBudgets(RandomJointGraph(rng, options), request);
  }
  CHECK(refusals > 6);
  if (kHasSanitizers) return;
  // A vision transformer with two blocks: the search within its lowest peak finds no plan.
  const Source vit = LoadSource("testdata/regress/joint_vit.json", request).value();
  CHECK(CheckNamedBudgets(*vit.joint, request) == 2);
}

// Returns how often loops poll for a stop. Each program polls once for each of its moments.
int64_t PollsOf(const std::string& file, const PlanRequest& request) {
  const Source source = LoadSource("testdata/regress/" + file, request).value();
  int64_t polls = 0;
  const StopScope scope({}, [&](int64_t) { ++polls; });
  const Result<Plan> plan = MakePlan(*source.joint, request, {});
  CHECK((plan.ok() || plan.error().code == ErrorCode::kInfeasible));
  return polls;
}

TEST_CASE("joint planner: effort bounds how many programs are solved, however small they are") {
  if (!HasMipSolver()) return;
  PlanRequest request;
  request.algorithm = kBestAlgorithm;
  request.effort = SearchEffort::kQuick;
  request.budget = Budget::Of(Bytes(12'287));
  const int64_t of_seven = PollsOf("slow_7_operations.json", request);
  request.budget = {Budget::Kind::kMin, Bytes(0), 0};
  request.gradients = ParameterGradients::kArriving;
  const int64_t of_twenty = PollsOf("slow_quick.json", request);
  CAPTURE(of_seven);
  CAPTURE(of_twenty);
  CHECK(of_seven < 200'000);  // It is a million if programs do not count as work.
  CHECK(of_twenty < 10'000);
}

TEST_CASE("joint planner: algorithms of forward graphs are refused by name") {
  const JointGraph graph = SomeGraph();
  int refused = 0;
  for (const SolverInfo* info : ListedAlgorithms()) {
    if (CanPlan(*info, graph)) continue;
    CAPTURE(info->name);
    PlanRequest request;
    request.algorithm = info->name;
    const Error error = MakePlan(graph, request, {}).error();
    CHECK(error.code == ErrorCode::kUsage);
    CHECK(error.message.starts_with(std::string(info->name) + " is only for forward graphs"));
    CHECK(PlansRuns(*FindSolver(error.remedy.settings.front().value).value()));
    ++refused;
  }
  CHECK(refused > 10);
}

TEST_CASE("joint planner: what forward graphs alone have is refused") {
  const JointGraph graph = SomeGraph();
  std::vector<PlanRequest> requests(7, KeepAll());
  requests[0].objective = Objective::kMemory;
  requests[1].granularity = Granularity::kLayer;
  requests[2].paper_budget.kind = Budget::Kind::kMin;
  requests[3].setting = {"segments", 3};
  requests[4].decisions.emplace();
  requests[5].uses_liveness = false;
  requests[6].budget = requests[6].total_budget = Budget::Of(Bytes(1 << 20));
  for (const PlanRequest& request : requests) {
    const Result<Plan> plan = MakePlan(graph, request, {});
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().code == ErrorCode::kUsage);
  }
}

}  // namespace ckplan
