#include "lib/files/emit/report.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "lib/base/rng.h"
#include "lib/planning/plan/assemble.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/training_step.h"
#include "lib/problem/schedule/transfers.h"
#include "lib/testing/graph_text.h"
#include "lib/testing/instances.h"
#include "lib/testing/plans/random_plan.h"
#include "lib/testing/random_graph.h"
#include "lib/testing/random_joint_graph.h"

namespace ckplan {
namespace {

using nlohmann::json;

constexpr std::string_view kDataBegins = "<script type=\"application/json\" id=\"data\">\n";

// Returns the data that the page's script receives: like a browser, reads up to the first end tag
// of a script.
std::string DataOf(const std::string& page) {
  const size_t begin = page.find(kDataBegins);
  REQUIRE(begin != std::string::npos);
  const size_t from = begin + kDataBegins.size();
  const size_t end = page.find("</script", from);
  REQUIRE(end != std::string::npos);
  return page.substr(from, end - from);
}

size_t CountOf(const std::string& text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

Plan KeepAll(const TensorGraph& graph) {
  const Schedule schedule =
      LowerStrategy(graph, KeptSet{IdVector<NodeId, bool>(graph.nodes().size(), true)});
  return AssemblePlan(graph, schedule, IdVector<NodeId, int32_t>(graph.nodes().size(), 0));
}

std::string PageOf(const TensorGraph& graph, Plan plan, const std::string& name) {
  const TrainingStep planned(graph);
  const TracedPlan traced = TracePlan(planned, plan);
  const ReportPlan shown{name, &traced};
  const ReportCurve curve{name, {{plan.figures.peak, plan.figures.overhead}}, "", 0};
  return WriteReport({&shown, 1}, {&curve, 1});
}

TEST_CASE("report: the page is complete, and loads nothing") {
  const TensorGraph graph = GraphFromText("a:8@1 -> b:4@3 -> c:2@1");
  const std::string page = PageOf(graph, KeepAll(graph), "plan.json");
  CHECK(page.starts_with("<!DOCTYPE html>"));
  CHECK(page.find("{{") == std::string::npos);
  CHECK(page.find("default-src 'none'") != std::string::npos);
  for (const char* const loads :
       {"src=", "@import", "url(", "fetch(", "XMLHttpRequest", "import("}) {
    CAPTURE(loads);
    CHECK(page.find(loads) == std::string::npos);
  }
  CHECK(page == PageOf(graph, KeepAll(graph), "plan.json"));
}

TEST_CASE("report: no name ends the element of the data, or is more than text") {
  const std::vector<std::string> names = {"</script><script>alert(1)</script>",
                                          "<!--<script>",
                                          "]]>&amp;<b>",
                                          "\xe2\x80\xa8 line \xe2\x80\xa9 separators",
                                          "\xe2\x80\xaeturned",
                                          "{{script}}{{data}}",
                                          "quote\" \\ ' `${1}`",
                                          "\x1b[31mred\n",
                                          "bad\xff\xc3(",
                                          std::string(100'000, 'L')};
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (size_t i = 0; i < names.size(); ++i) {
    vertices.push_back({names[i], Bytes(8), Cost(1)});
    if (i > 0) edges.emplace_back(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
  }
  const TensorGraph graph = GraphFromVertices("hostile", vertices, edges);
  Plan plan = KeepAll(graph);
  for (const std::string& name : names) {
    CAPTURE(name.substr(0, 40));
    plan.model.name = name;
    const std::string page = PageOf(graph, plan, name);
    const std::string data = DataOf(page);
    CHECK(json::accept(data));
    CHECK(data.find('<') == std::string::npos);
    CHECK(data.find("\xe2\x80\xa8") == std::string::npos);
    CHECK(data.find("\xe2\x80\xae") == std::string::npos);
    CHECK(CountOf(page, "<script") == 2);
    CHECK(CountOf(page, "</script") == 2);
    CHECK(page.find("<b>") == std::string::npos);
    CHECK(page.size() < 200'000);
  }
}

TEST_CASE("report: how a plan was made is said in words, and not by keys") {
  const TensorGraph graph = GraphFromText("a:8@1 -> b:4@3 -> c:2@1");
  Plan plan = KeepAll(graph);
  plan.request.dims = {{"N", 8}};
  plan.request.cost_model = "flops:a100-40g";
  plan.request.objective = Objective::kTime;
  plan.request.never_rerun = {"op:Softmax"};
  plan.request.uses_liveness = false;
  const json data = json::parse(DataOf(PageOf(graph, plan, "plan.json")));
  CHECK(data["plans"][0]["settings"] == json{"N=8", "objective time", "never run again op:Softmax",
                                             "cost model flops:a100-40g",
                                             "tensors released by segment"});
}

TEST_CASE("report: what backward operations of a joint graph make is not called gradients") {
  Rng rng(1);
  const JointGraph joint = RandomJointGraph(rng);
  const Plan plan = AssembleRuns(joint, RandomRuns(rng, joint));
  const TracedPlan traced = TracePlan(TrainingStep(joint), plan);
  const ReportPlan shown{"plan.json", &traced};
  const json data = json::parse(DataOf(WriteReport({&shown, 1}, {})));
  CHECK(data["graphs"][0]["kinds"] ==
        json{"kept", "passing", "recomputed", "backward", "workspace"});
  const TensorGraph graph = GraphFromText("a:8@1 -> b:4@3");
  const json model = json::parse(DataOf(PageOf(graph, KeepAll(graph), "plan.json")));
  CHECK(model["graphs"][0]["kinds"][3] == "gradients");
}

TEST_CASE("report: text in a script is the same JSON") {
  const json value = {{"</script>", "<!-- & -->"}, {"list", {1, 2}}};
  const std::string text = JsonInScript(value.dump());
  CHECK(text.find_first_of("<>&") == std::string::npos);
  CHECK(json::parse(text) == value);
}

// Computes the maximum memory during each step like the page's script
// (lib/files/emit/report/plan_data.js).
void CheckMemory(const json& plan, const TracedPlan& traced) {
  const size_t steps = traced.steps().size();
  REQUIRE(plan["phases"].get<std::string>().size() == steps);
  REQUIRE(plan["moments"].size() == steps);
  REQUIRE(plan["keep_all"].size() == steps);
  const size_t spans = plan["span_begin"].size();
  for (const char* const column : {"span_of", "span_bytes", "span_moments", "span_read_count"}) {
    CHECK(plan[column].size() == spans);
  }
  CHECK(plan["span_kind"].get<std::string>().size() == spans);
  int64_t begin = 0;
  for (size_t k = 0; k < steps; ++k) {
    const int64_t moment = begin + plan["highest"][k].get<int64_t>();
    int64_t held = 0;
    for (size_t i = 0; i < spans; ++i) {
      const int64_t from = plan["span_begin"][i].get<int64_t>();
      const int64_t to = from + plan["span_moments"][i].get<int64_t>();
      if (from <= moment && moment < to) held += plan["span_bytes"][i].get<int64_t>();
    }
    CHECK(held == traced.timeline.step_bytes[k].count());
    begin += plan["moments"][k].get<int64_t>();
  }
}

TEST_CASE("report: its data are the memory of the plan, for graphs of either kind") {
  for (uint64_t seed = 0; seed < Instances(60); ++seed) {
    CAPTURE(seed);
    Rng rng(seed);
    std::optional<TrainingStep> graph;
    TensorGraph forward = RandomTensorGraph(rng);
    JointGraph joint = RandomJointGraph(rng);
    Plan plan;
    if (seed % 2 == 0) {
      plan = KeepAll(forward);
      graph.emplace(forward);
    } else {
      plan = AssembleRuns(joint, RandomRuns(rng, joint));
      graph.emplace(joint);
    }
    const TracedPlan traced = TracePlan(*graph, plan);
    const std::vector<ReportPlan> two = {{"one", &traced}, {"two", &traced}};
    const json data = json::parse(DataOf(WriteReport(two, {})));
    CHECK(data["graphs"].size() == 1);  // Two plans for the same graph share it.
    REQUIRE(data["plans"].size() == 2);
    CHECK(data["plans"][1]["peak"] == plan.figures.peak.count());
    CHECK(data["graphs"][0]["nodes"].size() == graph->node_count());
    CheckMemory(data["plans"][0], traced);
  }
}

TEST_CASE("report: a plan that moves values has the times of its copies, its work and its waits") {
  for (uint64_t seed = 0; seed < Instances(60); ++seed) {
    CAPTURE(seed);
    const RandomMoved random(seed);
    const Schedule& schedule = random.plan.schedule;
    const TracedPlan traced = TracePlan(*random.step, random.plan);
    const ReportPlan shown{"plan.json", &traced};
    const json data = json::parse(DataOf(WriteReport({&shown, 1}, {})));
    CHECK(data["graphs"][0]["kinds"][5] == "loaded");
    CheckMemory(data["plans"][0], traced);
    const json& offload = data["plans"][0]["offload"];
    const Transfers transfers = TransfersOf(*random.step, schedule);
    const size_t copies = transfers.copies.size();
    CHECK(offload["copy_ways"].get<std::string>().size() == copies);
    CHECK(offload["copy_of"].size() == copies);
    CHECK(offload["copy_times"].size() == 2 * copies);
    CHECK(offload["step_waits"].size() == schedule.steps.size());
    int64_t time = 0;
    for (const char* const list : {"work", "waits"}) {
      for (size_t i = 0; i < offload[list].size(); i += 2) {
        time += offload[list][i + 1].get<int64_t>() - offload[list][i].get<int64_t>();
      }
    }
    CHECK(time == transfers.makespan.count());
  }
}

}  // namespace
}  // namespace ckplan
