#include "lib/planning/algorithms/best/curve/nested_network.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "lib/base/stop.h"

namespace ckplan {
namespace {

constexpr int32_t kSink = 0;
constexpr int32_t kNoNode = -1;

// The sum of capacities is at most 2^60, below the limit of MaxFlow.
constexpr int kNestedCapacityBits = 60;

// The price per byte at which all bytes cost as much as all reruns has about this many bits.
constexpr int kPriceBits = 30;

// Discounts that break ties are in parts of 2^kDiscountBits, at most about a thousandth.
constexpr int kDiscountBits = 20;
constexpr int64_t kLargestDiscount = (int64_t{1} << kDiscountBits) / 1000;

// Returns amount * 2^shift, rounded down.
__int128 ShiftRoundingDown(__int128 amount, int shift) {
  return shift >= 0 ? amount << shift : amount >> -shift;
}

int BitsOf(int64_t amount) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(std::max<int64_t>(amount, 1))));
}

}  // namespace

// Lays out the nodes and arcs of all moments, one after another.
class NestedNetwork::Builder {
 public:
  Builder(const RunProblem& problem, std::span<const OpId> order, std::span<const int32_t> moments)
      : problem_(problem),
        order_(order),
        position_(At(problem.op_count), static_cast<int32_t>(order.size())),
        last_read_(At(problem.value_count), -1),
        value_node_(At(problem.value_count)),
        op_node_(At(problem.op_count)),
        lower_node_(At(problem.op_count), kNoNode) {
    for (size_t i = 0; i < order.size(); ++i) {
      position_[At(order[i].index())] = static_cast<int32_t>(i);
      for (const int32_t read : problem.reads[order[i].index()]) {
        last_read_[At(read)] = static_cast<int32_t>(i);
      }
    }
    for (size_t moment = 0; moment < moments.size(); ++moment) {
      PollStop(problem.value_count);
      AddMoment(static_cast<int32_t>(moment), moments[moment]);
    }
  }

  int32_t node_count() const { return next_node_; }

  // Adds all arcs to the network, and hands the lists over.
  void Build(NestedNetwork* network) && {
    MaxFlow* const flow = &network->flow_;
    flow->SetTerminal(kSink, MaxFlow::Terminal::kSink);
    for (const int32_t node : sources_) flow->SetTerminal(node, MaxFlow::Terminal::kSource);
    for (ValueArc& arc : value_arcs_) arc.id = flow->AddArc(arc.tail, arc.head, 0);
    for (OpArc& arc : op_arcs_) arc.id = flow->AddArc(arc.tail, kSink, 0);
    for (const auto& [from, to] : ties_) flow->AddArc(from, to, MaxFlow::kInfinite);
    network->levels_ = std::move(levels_);
    network->value_arcs_ = std::move(value_arcs_);
    network->op_arcs_ = std::move(op_arcs_);
  }

 private:
  bool MayBeRemade(int32_t value) const {
    return problem_.may_repeat[At(problem_.producer[At(value)])];
  }
  bool IsNeeded(int32_t value, int32_t position) const {
    const int32_t producer = problem_.producer[At(value)];
    return producer >= 0 && position_[At(producer)] < position &&
           (problem_.is_result[At(value)] || last_read_[At(value)] >= position);
  }

  void AddMoment(int32_t moment, int32_t position) {
    std::fill(value_node_.begin(), value_node_.end(), kNoNode);
    std::fill(op_node_.begin(), op_node_.end(), kNoNode);
    values_.clear();
    Level level;
    level.is_certain.resize(At(problem_.value_count));
    const int32_t op = order_[At(position)].index();
    for (const int32_t read : problem_.reads[op]) level.is_certain[At(read)] = true;
    level.fixed_bytes = problem_.written_bytes[At(op)] + problem_.workspace[At(op)] -
                        problem_.in_place_bytes[At(op)];
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      const bool is_needed = IsNeeded(value, position);
      if (is_needed && !MayBeRemade(value)) level.is_certain[At(value)] = true;
      if (level.is_certain[At(value)]) level.fixed_bytes += problem_.bytes[At(value)];
      if (problem_.bytes[At(value)] == 0) level.is_certain[At(value)] = true;
      if (!is_needed || level.is_certain[At(value)]) continue;
      sources_.push_back(next_node_);
      Reach(value);
    }
    for (size_t next = 0; next < values_.size(); ++next) {
      const int32_t value = values_[next];
      const int32_t head =
          MayBeRemade(value) ? NodeOfRerun(problem_.producer[At(value)], level) : kSink;
      value_arcs_.push_back(
          {0, value_node_[At(value)], head, value, moment, IsNeeded(value, position)});
    }
    levels_.push_back(std::move(level));
  }

  void Reach(int32_t value) {
    if (value_node_[At(value)] != kNoNode) return;
    value_node_[At(value)] = next_node_++;
    values_.push_back(value);
  }

  // The first moment that has a node for the rerun pays for it.
  int32_t NodeOfRerun(int32_t op, const Level& level) {
    if (op_node_[At(op)] != kNoNode) return op_node_[At(op)];
    const int32_t node = op_node_[At(op)] = next_node_++;
    const int32_t lower = std::exchange(lower_node_[At(op)], node);
    if (lower == kNoNode) {
      op_arcs_.push_back({0, node, op, DiscountOf(op)});
    } else {
      ties_.emplace_back(node, lower);
    }
    for (const int32_t read : problem_.reads[op]) {
      if (level.is_certain[At(read)]) continue;
      Reach(read);
      ties_.emplace_back(node, value_node_[At(read)]);
    }
    return node;
  }

  int32_t DiscountOf(int32_t op) const {
    const auto count = static_cast<int64_t>(order_.size());
    return static_cast<int32_t>(kLargestDiscount * (count - position_[At(op)]) / count);
  }

  const RunProblem& problem_;
  const std::span<const OpId> order_;
  std::vector<int32_t> position_;   // Each operation's position in the order.
  std::vector<int32_t> last_read_;  // The position of each value's last reader.
  // For the moment being added.
  std::vector<int32_t> value_node_;
  std::vector<int32_t> op_node_;
  std::vector<int32_t> values_;
  std::vector<int32_t> lower_node_;  // Each operation's rerun, at the last moment that has one.
  int32_t next_node_ = kSink + 1;
  std::vector<int32_t> sources_;
  std::vector<ValueArc> value_arcs_;
  std::vector<OpArc> op_arcs_;
  std::vector<std::pair<int32_t, int32_t>> ties_;
  std::vector<Level> levels_;
};

NestedNetwork::NestedNetwork(const RunProblem& problem, std::span<const OpId> order,
                             std::span<const int32_t> moments)
    : NestedNetwork(problem, moments, Builder(problem, order, moments)) {}

NestedNetwork::NestedNetwork(const RunProblem& problem, std::span<const int32_t> moments,
                             Builder builder)
    : problem_(problem),
      moments_(moments.begin(), moments.end()),
      node_count_(builder.node_count()),
      flow_(node_count_),
      priced_bytes_(moments.size()) {
  std::move(builder).Build(this);
  for (const ValueArc& arc : value_arcs_) priced_bytes_[At(arc.moment)] += BytesOf(arc);
  for (const OpArc& arc : op_arcs_) all_costs_ += problem.cost[At(arc.op)];
  SetPriceShift();
}

void NestedNetwork::SetPriceShift() {
  int64_t most = 1;
  for (const int64_t bytes : priced_bytes_) most = std::max(most, bytes);
  price_shift_ = std::clamp(kPriceBits + BitsOf(most) - BitsOf(all_costs_), 0, kMaxPriceBits);
}

int64_t NestedNetwork::Solve() {
  const int64_t least_cut = flow_.Solve();
  side_ = flow_.LeastSourceSide();
  return least_cut;
}

// Capacities are costs times 2^scale, rounded down, for the largest scale at which their sum is at
// most 2^kNestedCapacityBits. Each is at most the true one, so the cut is, too.
//
// Nothing overflows 128 bits: prices are at most 2^60, and bytes less than 2^56; the scale is at
// most price_shift_, so a product is shifted to the right.
BoundLine NestedNetwork::Cut(std::span<const int64_t> prices, Ties ties) {
  __int128 all_prices = 0;
  for (size_t i = 0; i < prices.size(); ++i) {
    all_prices += static_cast<__int128>(prices[i]) * priced_bytes_[i];
  }
  const __int128 all = (all_prices >> price_shift_) + all_costs_ + 1;
  constexpr __int128 kLimit = __int128{1} << kNestedCapacityBits;
  int scale = 0;
  while (scale < price_shift_ && ShiftRoundingDown(all, scale + 1) <= kLimit) ++scale;
  while (ShiftRoundingDown(all, scale) > kLimit) --scale;
  for (const ValueArc& arc : value_arcs_) {
    const __int128 price = static_cast<__int128>(prices[At(arc.moment)]) * BytesOf(arc);
    flow_.SetCapacity(arc.id, static_cast<int64_t>(ShiftRoundingDown(price, scale - price_shift_)));
  }
  for (const OpArc& arc : op_arcs_) {
    __int128 capacity = ShiftRoundingDown(problem_.cost[At(arc.op)], scale);
    if (ties == Ties::kBreak) capacity -= (capacity * arc.discount) >> kDiscountBits;
    flow_.SetCapacity(arc.id, static_cast<int64_t>(capacity));
  }
  BoundLine line{static_cast<__int128>(Solve()) << (price_shift_ - scale), 0, price_shift_};
  for (size_t i = 0; i < prices.size(); ++i) {
    line.at_zero += static_cast<__int128>(prices[i]) * fixed_bytes(i);
    line.slope += prices[i];
  }
  return line;
}

int64_t NestedNetwork::MinBytes(size_t moment) {
  for (const ValueArc& arc : value_arcs_) {
    flow_.SetCapacity(arc.id, At(arc.moment) == moment ? BytesOf(arc) : 0);
  }
  for (const OpArc& arc : op_arcs_) flow_.SetCapacity(arc.id, 0);
  return Solve() + fixed_bytes(moment);
}

NestedChoice NestedNetwork::Choice() const {
  NestedChoice choice{0, std::vector<int64_t>(moment_count())};
  for (const ValueArc& arc : value_arcs_) {
    if (IsCut(arc)) choice.bytes[At(arc.moment)] += BytesOf(arc);
  }
  for (const OpArc& arc : op_arcs_) {
    if (side_[At(arc.tail)]) choice.cost += problem_.cost[At(arc.op)];
  }
  return choice;
}

NestedChoice NestedNetwork::KeepAll() const {
  NestedChoice choice{0, std::vector<int64_t>(moment_count())};
  for (const ValueArc& arc : value_arcs_) {
    if (arc.is_needed) choice.bytes[At(arc.moment)] += BytesOf(arc);
  }
  return choice;
}

std::vector<std::vector<int32_t>> NestedNetwork::ListKeptByMoment() const {
  std::vector<std::vector<int32_t>> kept(moment_count());
  for (const ValueArc& arc : value_arcs_) {
    if (IsCut(arc)) kept[At(arc.moment)].push_back(arc.value);
  }
  return kept;
}

std::vector<bool> NestedNetwork::FindKeptAt(size_t moment) const {
  std::vector<bool> kept = levels_[moment].is_certain;
  for (const ValueArc& arc : value_arcs_) {
    if (At(arc.moment) == moment && IsCut(arc)) kept[At(arc.value)] = true;
  }
  return kept;
}

}  // namespace ckplan
