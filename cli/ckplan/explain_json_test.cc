#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "cli/ckplan/explain_text.h"
#include "lib/base/rng.h"
#include "lib/files/emit/schemas.h"
#include "lib/planning/explain/what_if.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"
#include "lib/testing/schema_validator.h"

namespace ckplan {
namespace {

using nlohmann::json;

// The explanation of the plan's peak and of everything in the graph.
std::pair<json, json> Explained(const TrainingStep& graph, const Plan& plan) {
  const TracedPlan traced = TracePlan(graph, plan);
  std::vector<ExplainedSubject> subjects;
  int64_t work = kWhatIfSteps;
  std::vector<Subject> found = FindSubjects(graph, {}, "*").value();
  for (Subject& subject : found) {
    subjects.push_back({std::move(subject), {}});
    for (const TensorId tensor : subjects.back().subject.tensors) {
      subjects.back().tensors.push_back(ExplainTensor(traced, tensor, &work));
    }
  }
  return {json::parse(PeakJson(traced, ExplainPeak(traced))),
          json::parse(SubjectsJson(traced, subjects))};
}

void CheckDocuments(const SchemaValidator& judge, const std::pair<json, json>& documents) {
  CHECK(judge.Accepts(documents.first));
  CHECK(judge.Accepts(documents.second));
  for (const char* const key : {"peak", "bounds", "subjects"}) {
    json damaged = documents.first;
    damaged.erase(key);
    CHECK_FALSE(judge.Accepts(damaged));
  }
  json damaged = documents.second;
  REQUIRE_FALSE(damaged["subjects"].empty());
  damaged["subjects"][0]["kind"] = "something";
  CHECK_FALSE(judge.Accepts(damaged));
}

}  // namespace

TEST_CASE("explain: the JSON of any plan is valid, and tells all of the peak") {
  const SchemaValidator judge(FindSchema("explain")->text);
  for (uint64_t seed = 0; seed < 20; ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    const TensorGraph graph = RandomTensorGraph(rng);
    IdVector<NodeId, bool> is_kept;
    for (size_t i = 0; i < graph.nodes().size(); ++i) is_kept.push_back(rng.Chance(60));
    const Plan plan = AssemblePlan(graph, LowerStrategy(graph, KeptSet{is_kept}),
                                   IdVector<NodeId, int32_t>(graph.nodes().size(), 0));
    const auto documents = Explained(graph, plan);
    CheckDocuments(judge, documents);
    int64_t live = 0;
    for (const json& item : documents.first["peak"]["live"]) live += item["bytes"].get<int64_t>();
    CHECK(live == plan.figures.peak.count());

    const JointGraph joint = RandomJointGraph(rng);
    const Plan joint_plan = AssembleRuns(joint, RandomRuns(rng, joint));
    CheckDocuments(judge, Explained(joint, joint_plan));
  }
}

}  // namespace ckplan
