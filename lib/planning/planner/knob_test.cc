// Settings of knobs: found ones are recorded, and asking for them gives the same plan.
#include <doctest/doctest.h>

#include <string>

#include "lib/base/rng.h"
#include "lib/planning/mip/mip.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/random_graph.h"

namespace ckplan {
namespace {

// Sixteen layers of 10 bytes each.
TensorGraph SixteenLayers() {
  std::string text = "n0:10";
  for (int i = 1; i < 16; ++i) text += " -> n" + std::to_string(i) + ":10";
  return GraphFromText(text);
}

PlanRequest RequestWith(std::string_view algorithm, std::optional<KnobSetting> setting) {
  PlanRequest request;
  request.algorithm = std::string(algorithm);
  request.setting = std::move(setting);
  return request;
}

}  // namespace

TEST_CASE("knobs: each algorithm's own, set by hand, on a chain of sixteen equal layers") {
  const struct {
    const char* algorithm;
    KnobSetting setting;
    int64_t paper_peak;
  } kRows[] = {
      {"chen-sqrt", {"segments", 1}, 0 + 160},
      {"chen-sqrt", {"segments", 2}, 10 + 80},
      {"chen-sqrt", {"segments", 8}, 70 + 20},
      // Two segments of six layers and one of four, or two of eight.
      {"chen-count", {"segments", 3}, 20 + 60},
      {"chen-frontier", {"segments", 2}, 10 + 80},
      // Segments are closed at 40 bytes, and three more results are kept.
      {"chen-keep-costly", {"B", 38}, 30 + 30 + 40},
      // Segments are closed at 40 bytes, the first above 38; at 110, the first above 100.
      {"chen-greedy", {"B", 38}, 30 + 40},
      {"chen-greedy", {"B", 100}, 10 + 110},
      {"chen-greedy", {"B", 0}, 150 + 10},
      {"chen-greedy", {"B", 1 << 30}, 0 + 160},
      // sqrt(150 x 10) = 38; the grid begins at floor(sqrt(38 x 19)) = 26, five segments of 30
      // bytes and one of 10.
      {"chen-search", {"point", 1}, 30 + 40},
      {"chen-search", {"point", 2}, 50 + 30},
      // Four ranges of four layers, then of one: three results on either level.
      {"chen-recursive", {"k", 3}, 30 + 30},
      {"chen-recursive", {"k", 15}, 150},
      // The first and the last layer are not counted, which leaves fourteen. If they may form one
      // segment, none is kept; with segments of no bytes, all are kept.
      {"feng-linear", {"C", 140}, 0 + 140},
      {"feng-linear", {"C", 0}, 140 + 0},
      {"exact-dp", {"B", 90}, 90},
  };
  const TensorGraph graph = SixteenLayers();
  for (const auto& row : kRows) {
    CAPTURE(TextOf(row.setting));
    CAPTURE(std::string(row.algorithm));
    const Result<Plan> plan = MakePlan(graph, RequestWith(row.algorithm, row.setting), {});
    REQUIRE(plan.ok());
    CHECK(plan->figures.paper.peak == Bytes(row.paper_peak));
    CHECK(plan->figures.setting == row.setting);
    CHECK(plan->request.setting == row.setting);
  }
}

TEST_CASE("knobs: the setting of every plan is in it, and asking for it gives the plan again") {
  // An eighth of the graphs would contain too few that every algorithm can plan.
  constexpr uint64_t kGraphs = kHasSanitizers ? 25 : 150;
  for (const SolverInfo& info : AllSolvers()) {
    CAPTURE(std::string(info.name));
    int compared = 0;
    for (uint64_t seed = 1; seed <= kGraphs; ++seed) {
      CAPTURE(seed);
      Rng rng(seed);
      RandomGraphOptions options;
      options.nodes = static_cast<int>(rng.Between(2, 14));
      const TensorGraph graph = seed % 2 == 0 ? RandomTensorGraph(rng, options)
                                              : RandomDag(rng, options.nodes, 20, 20, 9);
      // Each plan of checkmate is an integer program.
      if (info.name == "checkmate" && graph.nodes().size() > 6) continue;
      PlanRequest request = RequestWith(info.name, std::nullopt);
      if (seed % 3 == 1) request.budget.kind = Budget::Kind::kMin;
      if (seed % 3 == 2) request.budget = Budget::Of(KeepAllPeak(graph));
      const Result<Plan> found = MakePlan(graph, request, {});
      if (!found.ok()) continue;  // Too large, or beyond the budget.
      CHECK_FALSE(found->request.setting);
      if (info.knob == Knob::Kind::kNone) CHECK_FALSE(found->figures.setting);
      if (!found->figures.setting) continue;
      CHECK(found->figures.setting->knob == InfoOf(info.knob)->name);
      PlanRequest for_setting = RequestWith(info.name, found->figures.setting);
      for_setting.objective = found->request.objective;
      const Result<Plan> again = MakePlan(graph, for_setting, {});
      REQUIRE(again.ok());
      // On small graphs, the setting of a plan is the least B that has it. Asking for this B may
      // give another plan with the same figures.
      if (info.knob != Knob::Kind::kPaperBudget) CHECK(again->schedule == found->schedule);
      CHECK(again->figures.setting == found->figures.setting);
      CHECK(again->figures.paper == found->figures.paper);
      ++compared;
    }
    const bool is_built = info.name != "checkmate" || HasMipSolver();
    if (info.knob != Knob::Kind::kNone && is_built) CHECK(compared > Instances(20));
  }
}

TEST_CASE("knobs: who has no such knob, or not this setting, says what there is") {
  const TensorGraph graph = SixteenLayers();
  PlanRequest both = RequestWith("exact-dp", KnobSetting{"B", 90});
  both.paper_budget = Budget::Of(Bytes(90));
  const struct {
    PlanRequest request;
    std::string message;
  } kRows[] = {
      {RequestWith("keep-all", KnobSetting{"segments", 5}),
       "keep-all has no knob segments or any other"},
      {RequestWith("chen-sqrt", KnobSetting{"k", 5}),
       "chen-sqrt has no knob k; its knob is segments, number of segments: 1 to the number of "
       "vertices to cut at"},
      {RequestWith("auto", KnobSetting{"k", 5}),
       "auto tries the settings of all algorithms; name the algorithm that k belongs to"},
      {RequestWith("chen-sqrt", KnobSetting{"segments", 17}),
       "segments=17 is out of range for chen-sqrt: on this graph segments is 1 to 16"},
      {RequestWith("chen-sqrt", KnobSetting{"segments", 0}),
       "segments=0 is out of range for chen-sqrt: on this graph segments is 1 to 16"},
      {RequestWith("chen-search", KnobSetting{"point", 8}),
       "point=8 is out of range for chen-search: on this graph point is 1 to 7"},
      {RequestWith("chen-recursive", KnobSetting{"k", 16}),
       "k=16 is out of range for chen-recursive: on this graph k is 1 to 15"},
      {RequestWith("exact-dp", KnobSetting{"B", 1}),
       "B=1 is out of range for exact-dp: on this graph B is 90 bytes (90 B) or more"},
      {both, "a paper budget and B=90 both set the knob of exact-dp"},
  };
  for (const auto& row : kRows) {
    const Result<Plan> plan = MakePlan(graph, row.request, {});
    REQUIRE_FALSE(plan.ok());
    CHECK(plan.error().code == ErrorCode::kUsage);
    CHECK(plan.error().message == row.message);
  }
}

TEST_CASE("knobs: a budget is held against the plan of the setting, and the peak is named") {
  const TensorGraph graph = SixteenLayers();
  PlanRequest request = RequestWith("chen-sqrt", KnobSetting{"segments", 2});
  const Bytes peak = MakePlan(graph, request, {})->figures.peak;
  request.budget = Budget::Of(peak);
  CHECK(MakePlan(graph, request, {})->figures.setting == KnobSetting{"segments", 2});
  request.budget = {Budget::Kind::kMin, Bytes(0), 0};
  CHECK(MakePlan(graph, request, {})->request.budget == Budget::Of(peak));
  request.budget = Budget::Of(peak - Bytes(1));
  const Result<Plan> refused = MakePlan(graph, request, {});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kInfeasible);
  CHECK(refused.error().message.find("chen-sqrt with segments=2 found no plan within") !=
        std::string::npos);
  CHECK(refused.error().message.find("(" + std::to_string(peak.count()) + " bytes") !=
        std::string::npos);
}

}  // namespace ckplan
