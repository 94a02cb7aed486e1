#include "lib/problem/cost/cost_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ckplan {

namespace {

// TensorGraph::Create refuses longer times anyway; the bound keeps the cast below defined.
constexpr double kMaxCostNs = 1e18;

Cost Rounded(double nanoseconds) {
  return Cost(std::max<int64_t>(1, std::llround(std::min(nanoseconds, kMaxCostNs))));
}

double RooflineNs(const Device& device, const OpWork& work, int64_t flops, Bytes traffic) {
  const double rate = !work.uses_matrix_units  ? device.vector_flops_per_second
                      : work.has_half_operands ? device.half_matrix_flops_per_second
                                               : device.matrix_flops_per_second;
  const double compute_ns = static_cast<double>(flops) / rate * 1e9;
  const double memory_ns = static_cast<double>(traffic.count()) / device.bytes_per_second * 1e9;
  return std::max(compute_ns, memory_ns) + device.launch_ns;
}

}  // namespace

std::string CostModel::name() const {
  switch (kind) {
    case CostKind::kFlops:
      return "flops:" + device.name;
    case CostKind::kPaper:
      return "paper";
    case CostKind::kUnit:
      return "unit";
    case CostKind::kFile:
      return "file";
  }
  CKPLAN_CHECK(false, "every kind of cost is handled above");
}

std::string_view CostModel::unit() const {
  return kind == CostKind::kFlops || kind == CostKind::kFile ? "ns" : "1";
}

Result<CostModel> ParseCostModel(std::string_view text) {
  CostModel model;
  const size_t colon = text.find(':');
  const std::string_view kind = text.substr(0, colon);
  const bool has_argument = colon != std::string_view::npos;
  const std::string_view argument = has_argument ? text.substr(colon + 1) : std::string_view{};
  if (kind == "flops") {
    model.kind = CostKind::kFlops;
    CKPLAN_ASSIGN_OR_RETURN(model.device, FindDevice(has_argument ? argument : kDefaultDevice));
    return model;
  }
  if (kind == "file" && !argument.empty()) {
    model.kind = CostKind::kFile;
    model.path = std::string(argument);
    return model;
  }
  if (kind == "paper" && !has_argument) {
    model.kind = CostKind::kPaper;
    return model;
  }
  if (kind == "unit" && !has_argument) {
    model.kind = CostKind::kUnit;
    return model;
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("no cost model is spelled \"{}\"; use flops, flops:DEVICE, paper, "
                               "unit or file:COSTS.json",
                               text));
}

OpCost CostOf(const CostModel& model, const OpWork& work) {
  switch (model.kind) {
    case CostKind::kFlops:
      return {Rounded(RooflineNs(model.device, work, work.forward_flops, work.forward_traffic)),
              Rounded(RooflineNs(model.device, work, work.backward_flops, work.backward_traffic))};
    case CostKind::kPaper: {
      // The papers give no separate cost for the backward pass, so backward costs as much as
      // forward.
      const Cost cost(work.is_convolution ? 10 : 1);
      return {cost, cost};
    }
    case CostKind::kUnit:
      return {Cost(1), Cost(1)};
    case CostKind::kFile:
      break;
  }
  CKPLAN_CHECK(false, "measured costs are looked up by node name, not computed");
}

}  // namespace ckplan
