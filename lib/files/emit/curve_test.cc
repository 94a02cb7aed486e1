#include "lib/files/emit/curve.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <vector>

#include "lib/base/rng.h"
#include "lib/files/emit/json_joint_graph.h"
#include "lib/planning/algorithms/hong/step_prediction.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

constexpr StepPredictor kHong = {kStepPredictionName, PredictSteps, kWhyNoJointPrediction};

Plan PlanOf(const TensorGraph& graph, const Strategy& strategy) {
  return AssemblePlan(graph, LowerStrategy(graph, strategy), SegmentsOf(graph, strategy));
}

// The segments have one, two and one node; b is recomputed.
Plan PlanOfFour(const TensorGraph& graph) {
  Plan plan = PlanOf(
      graph, LowerSetSequence{IdVector<NodeId, int32_t>(std::vector<int32_t>{0, 1, 1, 2}), 3});
  plan.model.name = "net.json";
  plan.request.algorithm = "hong-linear";
  return plan;
}

Plan KeepAllOf(const TensorGraph& graph) {
  return PlanOf(graph, KeptSet{IdVector<NodeId, bool>(graph.nodes().size(), true)});
}

std::string Csv(const TensorGraph& graph, const Plan& plan) {
  const std::array curves = {TraceCurve(graph, plan, kHong)};
  return WriteCurveCsv(curves);
}

std::string Svg(const TensorGraph& graph, const Plan& plan) {
  const std::array curves = {TraceCurve(graph, plan, kHong)};
  return WriteCurveSvg(curves);
}

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// Returns the last `count` cells of a row whose cells contain no commas.
std::vector<int64_t> LastCells(std::string row, size_t count) {
  std::vector<int64_t> cells(count);
  for (size_t i = count; i-- > 0;) {
    const size_t comma = row.rfind(',');
    const std::string cell = row.substr(comma + 1);
    cells[i] = cell.empty() ? -1 : std::stoll(cell);
    row.resize(comma);
  }
  return cells;
}

}  // namespace

TEST_CASE("curve: every step of a chain of four, worked by hand") {
  // a:4 → b:2 → c:1 → d:3; the backward of each node reads its inputs and its output. a and c end
  // segments and are kept, and d is in the last one; b is dropped and recomputed before the
  // backward of c. Gradients are as large as their tensors. The peak, 12, is first reached at the
  // backward of d:
  //   kept a c d = 8, gradients of d and c = 4, and again at the backward of b:
  //   kept a = 4, recomputed b = 2, gradients of b and a = 6.
  // The predictions (worked out in step_prediction_test.cc) are 4, 6, 5, 8 forward and 9, 11, 10, 4
  // backward.
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> c:1 -> d:3");
  const Plan plan = PlanOfFour(graph);
  CHECK(plan.figures.peak == Bytes(12));
  CHECK(Csv(graph, plan) ==
        "step,phase,node,kept_bytes,passing_bytes,recomputed_bytes,gradients_bytes,"
        "workspace_bytes,memory_bytes,after_bytes,constant_bytes,predicted_bytes\n"
        "0,forward,a,4,0,0,0,0,4,4,0,4\n"
        "1,forward,b,4,2,0,0,0,6,6,0,6\n"
        "2,forward,c,5,2,0,0,0,7,5,0,5\n"
        "3,forward,d,8,0,0,0,0,8,8,0,8\n"
        "4,loss,,8,0,0,3,0,11,11,0,\n"
        "5,backward,d,8,0,0,4,0,12,6,0,9\n"
        "6,recompute,b,5,0,2,1,0,8,8,0,\n"
        "7,backward,c,5,0,2,3,0,10,8,0,11\n"
        "8,backward,b,4,0,2,6,0,12,8,0,10\n"
        "9,backward,a,4,0,0,4,0,8,0,0,4\n");
}

TEST_CASE("curve: the older of two plans comes first, and each row names its plan") {
  // Both are kept: f(a) 4, f(b) 6; the loss adds the gradient of b, the backward of b that of a.
  const TensorGraph graph = GraphFromText("a:4 -> b:2");
  const Plan plan = KeepAllOf(graph);
  const std::array curves = {TraceCurve(graph, plan, kHong), TraceCurve(graph, plan, kHong)};
  const std::string rows =
      ",0,forward,a,4,0,0,0,0,4,4,0,4\n"
      ",1,forward,b,6,0,0,0,0,6,6,0,6\n"
      ",2,loss,,6,0,0,2,0,8,8,0,\n"
      ",3,backward,b,6,0,0,6,0,12,8,0,10\n"
      ",4,backward,a,4,0,0,4,0,8,0,0,4\n";
  const std::string text = WriteCurveCsv(curves);
  std::string expected = text.substr(0, text.find('\n') + 1);
  CHECK(expected.starts_with("plan,step,phase,node,"));
  for (const std::string side : {"old", "new"}) {
    std::stringstream lines(rows);
    for (std::string line; std::getline(lines, line);) expected += side + line + "\n";
  }
  CHECK(text == expected);
  const std::string svg = WriteCurveSvg(curves);
  CHECK(Contains(svg, "<path class=\"mark old bold\" d=\"M90 "));
  CHECK(Contains(svg, "<path class=\"mark new bold\" d=\"M90 "));
  CHECK(!Contains(svg, "Z\"/>"));  // No areas.
}

TEST_CASE("curve: the kinds add up to the memory of each step, and the highest is the peak") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    RandomGraphOptions options;
    options.nodes = static_cast<int>(rng.Between(1, 14));
    const TensorGraph graph = RandomTensorGraph(rng, options);
    KeptSet kept;
    for (size_t i = 0; i < graph.nodes().size(); ++i) kept.is_kept.push_back(rng.Chance(60));
    const Plan plan = PlanOf(graph, kept);
    std::stringstream lines(Csv(graph, plan));
    std::string line;
    std::getline(lines, line);
    int64_t highest = 0;
    size_t rows = 0;
    for (; std::getline(lines, line); ++rows) {
      const std::vector<int64_t> cells = LastCells(line, 9);
      CHECK(cells[0] + cells[1] + cells[2] + cells[3] + cells[4] == cells[5]);
      CHECK(cells[7] == TotalConstants(plan.figures).count());
      highest = std::max(highest, cells[5]);
    }
    CHECK(rows == plan.schedule.steps.size());
    CHECK(highest == plan.figures.peak.count());
    CHECK(highest == Simulator(graph).Run(plan.schedule)->peak.count());
  }
}

TEST_CASE("curve: the picture names the peak, and draws the budget where it has room for it") {
  // The axis goes to 12 bytes in six ticks of 2. The plot is 340 pixels high and ends at 470, so 12
  // bytes are at 130.0 and 9 at 470 - 255 = 215.0. The middle of step 5 of 10 is at 90 + 84 * 5.5.
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> c:1 -> d:3");
  Plan plan = PlanOfFour(graph);
  std::string svg = Svg(graph, plan);
  CHECK(Contains(svg, "memory of a training step: net.json, hong-linear</text>"));
  CHECK(Contains(svg, "peak 12 B at step 5, backward of d</text>"));
  CHECK(Contains(svg, "<circle class=\"mark\" cx=\"552.0\" cy=\"130.0\" r=\"5\"/>"));
  CHECK(!Contains(svg, ">budget "));

  plan.request.budget = Budget::Of(Bytes(9));
  svg = Svg(graph, plan);
  CHECK(Contains(svg, "<path class=\"mark budget\" d=\"M90 215.0h840\"/>"));
  CHECK(Contains(svg, "budget 9 B</text>"));

  plan.request.budget = Budget::Of(Bytes(25));
  svg = Svg(graph, plan);
  CHECK(!Contains(svg, "<path class=\"mark budget\" d=\"M90"));
  CHECK(Contains(svg, "budget 25 B, above</text>"));
}

TEST_CASE("curve: the picture says if a plan is not checkpoints on the chain") {
  const TensorGraph graph = GraphFromText("a:4 -> b:2 -> c:1");
  KeptSet kept{IdVector<NodeId, bool>(3, true)};
  kept.is_kept[NodeId(1)] = false;
  const Plan plan = PlanOf(graph, kept);
  CHECK(Contains(Svg(graph, plan), "no prediction by Eq. 9 and 10 of Hong et al.: "));
  CHECK(Contains(Csv(graph, plan), "\n0,forward,a,4,0,0,0,0,4,4,0,\n"));
}

TEST_CASE("curve: names are text in either form") {
  const std::vector<TextVertex> vertices = {{"a,\"<b>&\n\x1b[31m", Bytes(4), Cost(1)},
                                            {"next", Bytes(2), Cost(1)}};
  const TensorGraph graph = GraphFromVertices("names", vertices, {{0, 1}});
  const Plan plan = KeepAllOf(graph);
  CHECK(Contains(Csv(graph, plan), R"(0,forward,"a,""<b>&\n\x1b[31m",4,)"));

  // Here its backward is the peak: 9 bytes and their gradient.
  const TensorGraph other = GraphFromVertices("names", {{vertices[0].name, Bytes(9), Cost(1)}}, {});
  CHECK(Contains(Svg(other, KeepAllOf(other)), R"(peak 18 B at step 1, loss</text>)"));
  const std::vector<TextVertex> longer = {{"first", Bytes(1), Cost(1)},
                                          {vertices[0].name, Bytes(9), Cost(1)}};
  const TensorGraph peak = GraphFromVertices("names", longer, {{0, 1}});
  CHECK(Contains(Svg(peak, KeepAllOf(peak)),
                 R"(backward of a,&quot;&lt;b&gt;&amp;\n\x1b[31m</text>)"));
}

TEST_CASE("curve: 100,000 steps give a picture of moderate size that misses no peak") {
  const TensorGraph graph = GraphFromText("a:1");
  const Plan plan = KeepAllOf(graph);
  constexpr size_t kSteps = 100'000;
  MemoryCurve curve;
  curve.plan = &plan;
  curve.phases.assign(kSteps, "backward");
  curve.nodes.assign(kSteps, "a");
  curve.loss_step = 50'000;
  curve.peak_step = 77'777;
  curve.no_prediction = "none";
  Rng rng(7);
  for (size_t step = 0; step < kSteps; ++step) {
    StepMemory memory;
    memory.by_kind[0] = Bytes(step == curve.peak_step ? 8'000 : rng.Between(0, 6'000));
    memory.by_kind[3] = Bytes(rng.Between(0, 1'000));
    curve.steps.push_back(memory);
  }
  curve.steps[curve.peak_step].by_kind[3] = Bytes(0);
  curve.predicted.resize(curve.steps.size());
  const std::array curves = {curve};
  const std::string svg = WriteCurveSvg(curves);
  CHECK(svg.size() < 50'000);
  // The axis goes to 8 ticks of 1,024 bytes: 8,000 bytes are at 470 - 340 * 8000 / 8192 = 137.97.
  // The step is in column 77,777 * 840 / 100,000 = 653, which begins at 743.
  CHECK(Contains(svg, "V138.0H744.0"));
  CHECK(Contains(svg, "<circle class=\"mark\" cx=\"743.5\" cy=\"138.0\" r=\"5\"/>"));
}

TEST_CASE("curve: first and later runs of a joint graph, worked by hand") {
  // a dies at b, and is recomputed for c. The result c stays until the end of the last run.
  const JointGraph graph = *ReadJointGraphJson(
      R"({"name": "three", "ops": [{"name": "a", "time": 1, "bytes": 4, "reads": []},
          {"name": "b", "time": 1, "bytes": 2, "reads": [0]},
          {"name": "c", "time": 1, "bytes": 1, "reads": [0, 1]}]})",
      "three.json");
  const std::vector<OpId> runs = {OpId(0), OpId(1), OpId(0), OpId(2)};
  const Plan plan = AssembleRuns(graph, runs);
  const std::array curves = {TraceCurve(graph, plan, kHong)};
  CHECK(WriteCurveCsv(curves) ==
        "step,phase,node,kept_bytes,passing_bytes,recomputed_bytes,gradients_bytes,"
        "workspace_bytes,memory_bytes,after_bytes,constant_bytes,predicted_bytes\n"
        "0,forward,a,4,0,0,0,0,4,4,0,\n"
        "1,forward,b,6,0,0,0,0,6,2,0,\n"
        "2,recompute,a,2,0,4,0,0,6,6,0,\n"
        "3,forward,c,3,0,4,0,0,7,0,0,\n");
  const std::string svg = WriteCurveSvg(curves);
  CHECK(Contains(svg, "peak 7 B at step 3, forward of c"));
  CHECK_FALSE(Contains(svg, ">loss<"));
}

TEST_CASE("curve: the highest step of any joint graph's plan is its peak") {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const JointGraph graph = RandomJointGraph(rng);
    const Plan plan = AssembleRuns(graph, OwnOrder(graph));
    const MemoryCurve curve = TraceCurve(graph, plan, kHong);
    Bytes highest;
    for (const StepMemory& step : curve.steps) highest = std::max(highest, step.total());
    CHECK(highest == plan.figures.peak);
    CHECK(curve.steps[curve.peak_step].total() == plan.figures.peak);
  }
}

}  // namespace ckplan
