// Runs every registered algorithm on graphs decoded from the fuzzer's bytes.
#include <fmt/format.h>

#include <array>
#include <string>

#include "cli/fuzzing/choices.h"
#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"
#include "lib/files/emit/json_plan.h"
#include "lib/planning/plan/check.h"
#include "lib/planning/planner/planner.h"
#include "lib/problem/schedule/simulate.h"
#include "lib/testing/naive_simulation.h"

namespace ckplan {
namespace {

constexpr size_t kMaxNodes = 10;

// Builds a graph of up to kMaxNodes nodes, with several outputs, statistics, tensors read twice,
// in-place pairs, gradients that pass through, workspaces, and sizes from zero to beyond the
// limits.
class GraphMaker {
 public:
  explicit GraphMaker(Choices& choices) : choices_(choices) {}

  Result<TensorGraph> Make() {
    // Shifted sums of ten nodes come close to the graph's limits, or exceed them.
    constexpr int kByteShifts[] = {0, 0, 4, 20, 44};
    constexpr int kCostShifts[] = {0, 0, 3, 20, 40};
    byte_shift_ = kByteShifts[choices_.Below(std::size(kByteShifts))];
    cost_shift_ = kCostShifts[choices_.Below(std::size(kCostShifts))];
    for (size_t i = choices_.Below(3); i > 0; --i) AddTensor(TensorKind::kInput);
    for (size_t i = 1 + choices_.Below(kMaxNodes); i > 0; --i) AddNode();
    parts_.parameter_gradients = parts_.parameters = RandomBytes();
    ChooseOutputs();
    return TensorGraph::Create(std::move(parts_));
  }

 private:
  Bytes RandomBytes() { return Bytes(int64_t{choices_.Byte()} << byte_shift_); }
  Cost RandomCost() { return Cost(int64_t{choices_.Byte()} << cost_shift_); }

  TensorId AddTensor(TensorKind kind) {
    Tensor tensor;
    tensor.file_id = static_cast<int64_t>(parts_.tensors.size());
    tensor.name = fmt::format("t{}", parts_.tensors.size());
    tensor.kind = kind;
    tensor.bytes = RandomBytes();
    tensor.requires_grad = kind == TensorKind::kActivation && choices_.Below(8) != 7;
    return parts_.tensors.push_back(std::move(tensor));
  }

  void AddNode() {
    Node node;
    node.file_id = static_cast<int64_t>(parts_.nodes.size());
    node.name = fmt::format("n{}", parts_.nodes.size());
    const uint8_t traits = choices_.Byte();
    node.op = (traits & 1) != 0 ? "Conv" : "Relu";
    node.is_random = (traits & 2) != 0;
    const size_t known = parts_.tensors.size();
    for (size_t i = known == 0 ? 0 : choices_.Below(4); i > 0; --i) {
      // Prefers the latest tensors, so that graphs are deep.
      node.inputs.push_back(TensorId(known - 1 - choices_.Below(std::min<size_t>(known, 6))));
    }
    node.outputs.push_back(AddTensor(TensorKind::kActivation));
    if ((traits & 4) != 0) node.outputs.push_back(AddTensor(TensorKind::kActivation));
    if ((traits & 8) != 0) node.outputs.push_back(AddTensor(TensorKind::kStatistic));
    node.forward_cost = RandomCost();
    node.backward_cost = RandomCost();
    if ((traits & 16) != 0) node.forward_workspace = RandomBytes();
    if ((traits & 32) != 0) node.backward_workspace = RandomBytes();
    AddReads(&node);
    if (!node.inputs.empty() && (traits & 64) != 0) ShareMemory(&node);
    parts_.nodes.push_back(std::move(node));
  }

  void AddReads(Node* node) {
    const uint8_t which = choices_.Byte();
    int bit = 0;
    for (const auto* list : {&node->inputs, &node->outputs}) {
      for (const TensorId tensor : *list) {
        const auto& reads = node->backward_reads;
        const bool is_new = std::find(reads.begin(), reads.end(), tensor) == reads.end();
        if (is_new && (which >> (bit++ % 8) & 1) != 0) node->backward_reads.push_back(tensor);
      }
    }
  }

  // Makes the output as large as the input, as sharing memory requires.
  void ShareMemory(Node* node) {
    const TensorId input = node->inputs[choices_.Below(node->inputs.size())];
    const TensorId output = node->outputs.front();
    parts_.tensors[output].bytes = parts_.tensors[input].bytes;
    if (choices_.Flag()) node->in_place.push_back({output, input});
    if (choices_.Flag()) node->gradient_passthrough.push_back(input);
  }

  void ChooseOutputs() {
    for (const TensorId id : parts_.tensors.ids()) {
      bool is_read = false;
      for (const Node& node : parts_.nodes) {
        is_read |= std::find(node.inputs.begin(), node.inputs.end(), id) != node.inputs.end();
      }
      if (parts_.tensors[id].kind != TensorKind::kActivation) continue;
      if (!is_read || choices_.Below(16) == 15) parts_.outputs.push_back(id);
    }
  }

  Choices& choices_;
  TensorGraphParts parts_;
  int byte_shift_ = 0;
  int cost_shift_ = 0;
};

PlanRequest MakeRequest(Choices& choices, const TensorGraph& graph) {
  PlanRequest request;
  request.uses_liveness = choices.Below(4) != 3;
  request.granularity = choices.Below(4) == 3 ? Granularity::kLayer : Granularity::kNode;
  constexpr std::array kObjectives = {Objective::kTime, Objective::kTime, Objective::kAuto,
                                      Objective::kMemory};
  request.objective = kObjectives[choices.Below(kObjectives.size())];
  switch (choices.Below(4)) {
    case 0:
      break;
    case 1:
      request.budget.kind = Budget::Kind::kMin;
      break;
    case 2:
      request.budget = Budget::Of(Bytes(KeepAllPeak(graph).count() / 256 * choices.Byte()));
      break;
    default:
      request.budget.kind = Budget::Kind::kPercent;
      request.budget.percent = 1 + static_cast<double>(choices.Below(120));
  }
  return request;
}

class PlanOfGraph {
 public:
  PlanOfGraph(const TensorGraph& graph, const PlanRequest& request)
      : graph_(graph), request_(request) {}

  void Check() const {
    const Result<Plan> plan = MakePlan(graph_, request_, {});
    if (plan.ok()) {
      CheckPlanned(*plan);
    } else {
      CheckRefusal(plan.error());
    }
  }

 private:
  void Require(bool holds, std::string_view what) const {
    CKPLAN_CHECK(holds, fmt::format("{}: {}", request_.algorithm, what));
  }

  void CheckPlanned(const Plan& plan) const {
    for (const std::string& fault : CheckPlan(graph_, plan)) Require(fault.empty(), fault);
    NaiveSimulation naive(graph_, plan.schedule);
    Require(naive.Peak() == plan.figures.peak, "the naive replay finds the same peak");
    Require(naive.Overhead() == plan.figures.overhead, "the naive replay finds the same overhead");
    for (const std::string& fault : NaiveArenaFaults(graph_, plan.schedule, plan.offsets)) {
      Require(fault.empty(), fault);
    }
    if (const auto budget = plan.request.budget.in_bytes()) {
      Require(plan.figures.peak <= *budget, "the peak stays within the budget");
    }
    const Result<Plan> again = ReadPlanJson(WritePlanJson(plan, graph_), graph_, "plan.json");
    Require(again.ok() && *again == plan, "writing and reading a plan preserves it");
  }

  // The error about an infeasible budget must name a budget that is feasible.
  void CheckRefusal(const Error& error) const {
    Require(error.code == ErrorCode::kInfeasible || error.code == ErrorCode::kUnsupported ||
                error.code == ErrorCode::kUsage,
            error.message);
    if (error.code == ErrorCode::kInfeasible) return CheckAdvice(error);
    Require(request_.budget.kind != Budget::Kind::kMin || error.code != ErrorCode::kInfeasible,
            "the minimum budget is always feasible");
  }

  void CheckAdvice(const Error& error) const {
    for (const Remedy::Setting& setting : error.remedy.settings) {
      if (setting.name != "budget") continue;
      PlanRequest request = request_;
      request.budget = Budget::Of(Bytes(std::stoll(setting.value)));
      const Result<Plan> plan = MakePlan(graph_, request, {});
      Require(plan.ok(), fmt::format("{}, yet that fails", error.message));
    }
  }

  const TensorGraph& graph_;
  const PlanRequest& request_;
};

}  // namespace

void FuzzAlgorithms(FuzzInput input) {
  Choices choices(input);
  const Result<TensorGraph> graph = GraphMaker(choices).Make();
  if (!graph.ok()) return;
  PlanRequest request = MakeRequest(choices, *graph);
  for (const SolverInfo& info : AllSolvers()) {
    if (request.objective == Objective::kMemory && !info.takes_objective) continue;
    // checkmate solves an integer program for each plan, which takes longer than all other plans
    // together.
    if (info.name == "checkmate" && graph->nodes().size() > 5) continue;
    request.algorithm = info.name;
    PlanOfGraph(*graph, request).Check();
  }
}

}  // namespace ckplan
