#include "lib/algorithms/best/step_view.h"

#include <algorithm>
#include <optional>

#include "lib/joint/run_timeline.h"

namespace ckplan {
namespace {

constexpr size_t kMaxTops = 3;

// Steps in a row above the budget, and the best of them.
struct Stretch {
  int64_t top = 0;
  std::optional<size_t> step;
};

}  // namespace

int64_t StepView::Peak() const { return *std::max_element(bytes.begin(), bytes.end()); }

StepView ViewSteps(const JointGraph& graph, std::span<const OpId> order, const Runs& runs) {
  StepView view;
  for (const Bytes bytes : BuildRunTimeline(graph, runs).step_bytes) {
    view.bytes.push_back(bytes.count());
  }
  size_t next = 0;
  for (const OpId op : runs) {
    view.position.push_back(static_cast<int32_t>(next));
    if (next < order.size() && order[next] == op) ++next;
  }
  return view;
}

std::vector<size_t> TopsAbove(const StepView& view, int64_t budget,
                              const std::function<bool(size_t)>& may_take) {
  std::vector<Stretch> stretches;
  bool is_inside = false;
  for (size_t k = 0; k < view.bytes.size(); ++k) {
    const bool is_above = view.bytes[k] > budget;
    if (is_above && !is_inside) stretches.emplace_back();
    is_inside = is_above;
    if (!is_above) continue;
    Stretch& stretch = stretches.back();
    stretch.top = std::max(stretch.top, view.bytes[k]);
    const bool is_higher = !stretch.step || view.bytes[k] > view.bytes[*stretch.step];
    if (is_higher && may_take(k)) stretch.step = k;
  }
  std::erase_if(stretches, [](const Stretch& stretch) { return !stretch.step; });
  std::stable_sort(stretches.begin(), stretches.end(),
                   [](const Stretch& a, const Stretch& b) { return a.top > b.top; });
  if (stretches.size() > kMaxTops) stretches.resize(kMaxTops);
  std::vector<size_t> tops;
  for (const Stretch& stretch : stretches) tops.push_back(*stretch.step);
  return tops;
}

}  // namespace ckplan
