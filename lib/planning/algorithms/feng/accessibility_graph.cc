#include "lib/planning/algorithms/feng/accessibility_graph.h"

#include <algorithm>
#include <deque>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

// The shortest path to a position. A position that is not reached has no `length`.
struct Arrival {
  std::optional<Bytes> length;
  int32_t from = -1;
};

// The positions with an edge to the current one that fits the max term. The first position in the
// queue has the shortest path from 0; the others have longer paths or come later.
class Window {
 public:
  void Add(int32_t position, Bytes length) {
    while (!positions_.empty() && positions_.back().second > length) positions_.pop_back();
    positions_.push_back({position, length});
  }
  void DropBefore(int32_t position) {
    while (!positions_.empty() && positions_.front().first < position) positions_.pop_front();
  }
  const std::pair<int32_t, Bytes>* Shortest() const {
    return positions_.empty() ? nullptr : &positions_.front();
  }

 private:
  std::deque<std::pair<int32_t, Bytes>> positions_;
};

// passed[p] is the memory of all items before position p and of the vertices at 1 .. p.
std::vector<Bytes> MemoryPassed(const ChainItems& items) {
  std::vector<Bytes> passed = {Bytes(0)};
  for (size_t i = 0; i < items.memory.size(); ++i) {
    const Bytes vertex = i < items.vertices.size() ? items.vertices[i] : Bytes(0);
    passed.push_back(passed.back() + items.memory[i] + vertex);
  }
  return passed;
}

}  // namespace

std::optional<AccessiblePath> ShortestAccessiblePath(const ChainItems& items, Bytes max_term) {
  const std::vector<Bytes> passed = MemoryPassed(items);
  std::vector<Arrival> arrivals(passed.size());
  arrivals[0].length = Bytes(0);
  Window window;
  size_t nearest = 0;  // The first position from which an edge to the current one fits.
  for (size_t b = 1; b < passed.size(); ++b) {
    PollStop();
    if (arrivals[b - 1].length) window.Add(static_cast<int32_t>(b - 1), *arrivals[b - 1].length);
    const Bytes vertex = b <= items.vertices.size() ? items.vertices[b - 1] : Bytes(0);
    while (nearest < b && passed[b] - vertex - passed[nearest] > max_term) ++nearest;
    window.DropBefore(static_cast<int32_t>(nearest));
    Arrival& here = arrivals[b];
    if (const auto* shortest = window.Shortest()) {
      here = {shortest->second + vertex, shortest->first};
    } else if (items.divided[b - 1] && arrivals[b - 1].length) {
      here = {*arrivals[b - 1].length + *items.divided[b - 1] + vertex,
              static_cast<int32_t>(b - 1)};
    }
  }
  if (!arrivals.back().length) return std::nullopt;
  AccessiblePath path;
  path.kept = *arrivals.back().length;
  for (int32_t at = arrivals.back().from; at > 0; at = arrivals[static_cast<size_t>(at)].from) {
    path.stops.push_back(at);
  }
  std::reverse(path.stops.begin(), path.stops.end());
  return path;
}

}  // namespace ckplan
