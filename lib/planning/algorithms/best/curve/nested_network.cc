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
    const bool has_others = problem.others.count > 0;
    const int32_t after_loss = has_others ? position_[At(problem.others.loss)] + 1 : 0;
    for (const int32_t moment : moments) {
      if (has_others && after_loss_ == kNoLevel && moment >= after_loss) AddLevelAfterLoss();
      AddMoment(moment);
    }
    if (has_others && after_loss_ == kNoLevel) AddLevelAfterLoss();
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
    network->after_loss_ = after_loss_;
    if (after_loss_ != kNoLevel) {
      network->fixed_bytes_of_others_ =
          network->problem_.others.count * network->levels_[after_loss_].fixed_bytes;
    }
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

  Level EmptyLevel(int32_t position) const {
    Level level;
    level.position = position;
    level.is_certain.resize(At(problem_.value_count));
    return level;
  }

  void AddMoment(int32_t position) {
    Level level = EmptyLevel(position);
    const int32_t op = order_[At(position)].index();
    for (const int32_t read : problem_.reads[op]) level.is_certain[At(read)] = true;
    level.fixed_bytes = problem_.written_bytes[At(op)] + problem_.workspace[At(op)] -
                        problem_.in_place_bytes[At(op)];
    AddLevel(std::move(level));
  }

  // No operation runs there. What the loss writes is not saved, but every plan has it, so that
  // nothing needs to be kept for it.
  void AddLevelAfterLoss() {
    const int32_t loss = problem_.others.loss;
    after_loss_ = levels_.size();
    AddLevel(EmptyLevel(position_[At(loss)] + 1));
    for (const int32_t write : problem_.writes[loss]) {
      if (levels_.back().is_certain[At(write)]) {
        levels_.back().fixed_bytes -= problem_.bytes[At(write)];
      }
    }
  }

  void AddLevel(Level level) {
    PollStop(problem_.value_count);
    const int32_t position = level.position;
    std::fill(value_node_.begin(), value_node_.end(), kNoNode);
    std::fill(op_node_.begin(), op_node_.end(), kNoNode);
    values_.clear();
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
      value_arcs_.push_back({0, value_node_[At(value)], head, value,
                             static_cast<int32_t>(levels_.size()), IsNeeded(value, position)});
      level.priced_bytes += problem_.bytes[At(value)];
    }
    levels_.push_back(std::move(level));
  }

  void Reach(int32_t value) {
    if (value_node_[At(value)] != kNoNode) return;
    value_node_[At(value)] = next_node_++;
    values_.push_back(value);
  }

  // The first level that has a node for the rerun pays for it.
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
  // For the level being added.
  std::vector<int32_t> value_node_;
  std::vector<int32_t> op_node_;
  std::vector<int32_t> values_;
  std::vector<int32_t> lower_node_;  // Each operation's rerun, at the last level that has one.
  int32_t next_node_ = kSink + 1;
  std::vector<int32_t> sources_;
  std::vector<ValueArc> value_arcs_;
  std::vector<OpArc> op_arcs_;
  std::vector<std::pair<int32_t, int32_t>> ties_;
  std::vector<Level> levels_;
  size_t after_loss_ = kNoLevel;
};

NestedNetwork::NestedNetwork(const RunProblem& problem, std::span<const OpId> order,
                             std::span<const int32_t> moments)
    : NestedNetwork(problem, moments, Builder(problem, order, moments)) {}

NestedNetwork::NestedNetwork(const RunProblem& problem, std::span<const int32_t> moments,
                             Builder builder)
    : problem_(problem),
      moments_(moments.begin(), moments.end()),
      node_count_(builder.node_count()),
      flow_(node_count_) {
  std::move(builder).Build(this);
  for (const OpArc& arc : op_arcs_) all_costs_ += problem.cost[At(arc.op)];
  SetPriceShift();
}

void NestedNetwork::SetPriceShift() {
  int64_t most = 1;
  for (size_t i = 0; i < levels_.size(); ++i) {
    most = std::max(most, levels_[i].priced_bytes * (IsAfterLoss(i) ? problem_.others.count : 1));
  }
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
// Nothing overflows 128 bits: prices are at most 2^60, and bytes, times the micro-batches, less
// than 2^56; the scale is at most price_shift_, so a product is shifted to the right.
BoundLine NestedNetwork::Cut(std::span<const int64_t> prices, Ties ties) {
  std::vector<__int128> price_at(levels_.size());
  for (size_t i = 0; i < prices.size(); ++i) {
    price_at[LevelOf(i)] = prices[i];
    if (after_loss_ != kNoLevel)
      price_at[after_loss_] += problem_.others.count * __int128{prices[i]};
  }
  __int128 all_prices = 0;
  for (size_t i = 0; i < levels_.size(); ++i) all_prices += price_at[i] * levels_[i].priced_bytes;
  const __int128 all = (all_prices >> price_shift_) + all_costs_ + 1;
  constexpr __int128 kLimit = __int128{1} << kNestedCapacityBits;
  int scale = 0;
  while (scale < price_shift_ && ShiftRoundingDown(all, scale + 1) <= kLimit) ++scale;
  while (ShiftRoundingDown(all, scale) > kLimit) --scale;
  for (const ValueArc& arc : value_arcs_) {
    const __int128 price = price_at[At(arc.level)] * BytesOf(arc);
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
    const size_t level = At(arc.level);
    const int64_t of_others = IsAfterLoss(level) ? problem_.others.count * BytesOf(arc) : 0;
    flow_.SetCapacity(arc.id, level == LevelOf(moment) ? BytesOf(arc) : of_others);
  }
  for (const OpArc& arc : op_arcs_) flow_.SetCapacity(arc.id, 0);
  return Solve() + fixed_bytes(moment);
}

void NestedNetwork::AddBytes(const ValueArc& arc, NestedChoice* choice) const {
  const size_t level = At(arc.level);
  if (!IsAfterLoss(level)) {
    choice->bytes[level - (level > after_loss_ ? 1 : 0)] += BytesOf(arc);
    return;
  }
  for (int64_t& bytes : choice->bytes) bytes += problem_.others.count * BytesOf(arc);
}

NestedChoice NestedNetwork::Choice() const {
  NestedChoice choice{0, std::vector<int64_t>(moment_count())};
  for (const ValueArc& arc : value_arcs_) {
    if (IsCut(arc)) AddBytes(arc, &choice);
  }
  for (const OpArc& arc : op_arcs_) {
    if (side_[At(arc.tail)]) choice.cost += problem_.cost[At(arc.op)];
  }
  return choice;
}

NestedChoice NestedNetwork::KeepAll() const {
  NestedChoice choice{0, std::vector<int64_t>(moment_count())};
  for (const ValueArc& arc : value_arcs_) {
    if (arc.is_needed) AddBytes(arc, &choice);
  }
  return choice;
}

int64_t NestedNetwork::BytesOfOthers() const {
  int64_t bytes = fixed_bytes_of_others_;
  for (const ValueArc& arc : value_arcs_) {
    if (IsAfterLoss(At(arc.level)) && IsCut(arc)) bytes += problem_.others.count * BytesOf(arc);
  }
  return bytes;
}

std::vector<std::vector<int32_t>> NestedNetwork::ListKeptByLevel() const {
  std::vector<std::vector<int32_t>> kept(levels_.size());
  for (const ValueArc& arc : value_arcs_) {
    if (IsCut(arc)) kept[At(arc.level)].push_back(arc.value);
  }
  return kept;
}

std::vector<bool> NestedNetwork::FindKeptAt(size_t level) const {
  std::vector<bool> kept = levels_[level].is_certain;
  for (const ValueArc& arc : value_arcs_) {
    if (At(arc.level) == level && IsCut(arc)) kept[At(arc.value)] = true;
  }
  return kept;
}

}  // namespace ckplan
