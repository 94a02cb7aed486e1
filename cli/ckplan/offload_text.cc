#include "cli/ckplan/offload_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/ckplan/plan_summary.h"
#include "lib/base/text.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/schedule/transfers.h"

namespace ckplan {
namespace {

// How much slower a link may turn out than its default rate, which is 85 % of the nominal one.
constexpr int64_t kSlowerPercent = 15;

std::string GigabytesText(int64_t bytes_per_second) {
  constexpr double kGigabyte = 1e9;
  return fmt::format("{:g} GB/s", static_cast<double>(bytes_per_second) / kGigabyte);
}

std::string AddedText(const TrainingStep& step, Cost added) {
  return SignedPercent(Ratio(added.count(), step.cost().count()));
}

// Says why nothing is moved.
std::string NothingMoved(const Plan& plan) {
  const Result<const SolverInfo*> info = FindSolver(plan.request.algorithm);
  const bool moves =
      info.ok() && ((*info)->name == kBestAlgorithm || (*info)->prepare_offload != nullptr);
  return moves ? "nothing is offloaded"
               : fmt::format("{} does not offload; best does", plan.request.algorithm);
}

}  // namespace

std::string LinkText(const Link& link) {
  constexpr double kMicrosecond = 1000;
  const std::string rates =
      link.out_bytes_per_second == link.in_bytes_per_second
          ? GigabytesText(link.out_bytes_per_second) + " each way"
          : fmt::format("{} out and {} in", GigabytesText(link.out_bytes_per_second),
                        GigabytesText(link.in_bytes_per_second));
  return fmt::format("{}, {}, {} duplex, {:g} us a copy", link.name, rates, NameOf(link.duplex),
                     static_cast<double>(link.latency_ns) / kMicrosecond);
}

std::string LinkLine(const PlanRequest& request, size_t label_width) {
  if (!request.offload) return "";
  const std::string limit = request.host_budget ? fmt::format(", at most {} on the host",
                                                              HumanBytes(*request.host_budget))
                                                : "";
  return fmt::format("  {:<{}}{}{}\n", "offload", label_width, LinkText(*request.offload), limit);
}

std::vector<std::string> OffloadTexts(const TrainingStep& step, const Plan& plan) {
  if (!plan.request.offload || !plan.figures.offload) return {};
  const OffloadFigures& figures = *plan.figures.offload;
  std::vector<std::string> lines = {LinkText(*plan.request.offload)};
  const Transfers transfers = TransfersOf(step, plan.schedule);
  if (transfers.copies.empty()) {
    lines.push_back(NothingMoved(plan));
    return lines;
  }
  const auto outs = static_cast<size_t>(
      std::count_if(transfers.copies.begin(), transfers.copies.end(),
                    [](const LinkCopy& copy) { return copy.way == CopyWay::kOut; }));
  const std::string limit =
      plan.request.host_budget ? fmt::format(" of {}", HumanBytes(*plan.request.host_budget)) : "";
  lines.push_back(fmt::format("{} copies out and {} in, {} together; {}{} on the host", outs,
                              transfers.copies.size() - outs, HumanBytes(figures.transferred),
                              HumanBytes(figures.host_peak), limit));
  const Transfers slower =
      TransfersOver(plan.request.offload->AtPercent(100 - kSlowerPercent), step, plan.schedule);
  const double waiting = Ratio(figures.stall.count(), step.cost().count());
  lines.push_back(
      fmt::format("{:.1f}% of a step is waiting; over a link {} % slower the time is {}",
                  100 * waiting, kSlowerPercent, AddedText(step, slower.makespan - step.cost())));
  if (figures.host_arena > figures.host_peak) {
    lines.push_back(fmt::format("one slab on the host has {}", HumanBytes(figures.host_arena)));
  }
  return lines;
}

}  // namespace ckplan
