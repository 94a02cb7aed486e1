#include "lib/planning/algorithms/best/step_view.h"

#include <algorithm>

#include "lib/problem/schedule/timeline.h"

namespace ckplan {
namespace {

// Consecutive steps above the budget, and the best of them.
struct Stretch {
  int64_t top = 0;
  std::optional<size_t> step;
};

}  // namespace

int64_t StepView::Peak() const { return *std::max_element(bytes.begin(), bytes.end()); }

StepView ViewSteps(const JointGraph& graph, std::span<const OpId> order, const Runs& runs) {
  StepView view;
  for (const Bytes bytes : BuildTimeline(graph, runs).step_bytes) {
    view.bytes.push_back(bytes.count());
  }
  size_t next = 0;
  for (const OpId op : runs) {
    view.position.push_back(static_cast<int32_t>(next));
    if (next < order.size() && order[next] == op) ++next;
  }
  return view;
}

std::optional<size_t> TopAbove(const StepView& view, int64_t budget,
                               const std::function<bool(size_t)>& may_take) {
  Stretch highest;
  Stretch stretch;
  const auto end_stretch = [&] {
    if (stretch.step && stretch.top > highest.top) highest = stretch;
    stretch = {};
  };
  for (size_t k = 0; k < view.bytes.size(); ++k) {
    if (view.bytes[k] <= budget) {
      end_stretch();
      continue;
    }
    stretch.top = std::max(stretch.top, view.bytes[k]);
    const bool is_higher = !stretch.step || view.bytes[k] > view.bytes[*stretch.step];
    if (is_higher && may_take(k)) stretch.step = k;
  }
  end_stretch();
  return highest.step;
}

}  // namespace ckplan
