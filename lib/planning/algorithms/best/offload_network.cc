#include "lib/planning/algorithms/best/offload_network.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace ckplan {

CopyTimes CopyTimesOf(const RunProblem& problem, const Link& link, std::vector<bool> may_move) {
  CopyTimes times{std::move(may_move), {}, {}, link.duplex == Duplex::kHalf};
  const auto time_of = [&](CopyWay way, int64_t bytes) {
    return std::min(link.TimeOf(way, Bytes(bytes)), kMaxTotalCost).count();
  };
  for (const int64_t bytes : problem.bytes) {
    times.out.push_back(time_of(CopyWay::kOut, bytes));
    times.in.push_back(time_of(CopyWay::kIn, bytes));
  }
  return times;
}

MomentNetwork::MomentNetwork(const RunProblem& problem, std::span<const OpId> order, size_t moment,
                             const std::vector<bool>& may_move)
    : problem_(problem),
      may_move_(may_move),
      is_before_(At(problem.op_count)),
      is_needed_(At(problem.value_count)),
      is_certain_(At(problem.value_count)),
      network_(problem.value_count + problem.op_count + 1),
      sink_(problem.value_count + problem.op_count),
      is_in_network_(At(sink_)) {
  FindNeeded(order, moment);
  FindCertain(order[moment].index());
  network_.SetTerminal(sink_, MaxFlow::Terminal::kSink);
  for (int32_t value = 0; value < problem.value_count; ++value) {
    if (!IsNeeded(value) || IsFree(value)) continue;
    network_.SetTerminal(value, MaxFlow::Terminal::kSource);
    Reach(value);
  }
  for (size_t next = 0; next < values_.size(); ++next) AddValue(values_[next]);
}

int64_t MomentNetwork::Solve() {
  const int64_t least_cut = network_.Solve();
  side_ = network_.LeastSourceSide();
  return least_cut;
}

bool MomentNetwork::IsMadeBefore(int32_t value) const {
  const int32_t producer = problem_.producer[At(value)];
  return producer >= 0 && is_before_[At(producer)];
}

bool MomentNetwork::MayBeRemade(int32_t value) const {
  return problem_.may_repeat[At(problem_.producer[At(value)])];
}

void MomentNetwork::FindNeeded(std::span<const OpId> order, size_t moment) {
  for (size_t i = 0; i < moment; ++i) is_before_[At(order[i].index())] = true;
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    if (IsMadeBefore(value)) is_needed_[At(value)] = problem_.is_result[At(value)];
  }
  for (size_t i = moment; i < order.size(); ++i) {
    for (const int32_t read : problem_.reads[order[i].index()]) {
      if (IsMadeBefore(read)) is_needed_[At(read)] = true;
    }
  }
}

void MomentNetwork::FindCertain(int32_t op) {
  for (const int32_t read : problem_.reads[op]) is_certain_[At(read)] = true;
  for (int32_t value = 0; value < problem_.value_count; ++value) {
    const bool may_move = !may_move_.empty() && may_move_[At(value)];
    if (IsNeeded(value) && (problem_.bytes[At(value)] == 0 || (!may_move && !MayBeRemade(value)))) {
      is_certain_[At(value)] = true;
    }
    if (is_certain_[At(value)]) certain_bytes_ += problem_.bytes[At(value)];
  }
}

void MomentNetwork::Reach(int32_t value) {
  if (is_in_network_[At(value)]) return;
  is_in_network_[At(value)] = true;
  values_.push_back(value);
}

void MomentNetwork::AddValue(int32_t value) {
  const int32_t producer = problem_.producer[At(value)];
  const int32_t head = MayBeRemade(value) ? NodeOfOp(producer) : sink_;
  const int64_t bytes = problem_.bytes[At(value)];
  value_arcs_.push_back({network_.AddArc(value, head, bytes), value, head, bytes});
  if (head == sink_ || is_in_network_[At(head)]) return;
  is_in_network_[At(head)] = true;
  const int64_t cost = problem_.cost[At(producer)];
  op_arcs_.push_back({network_.AddArc(head, sink_, cost), producer, cost});
  for (const int32_t read : problem_.reads[producer]) {
    if (IsFree(read)) continue;
    network_.AddArc(head, read, MaxFlow::kInfinite);
    Reach(read);
  }
}

namespace {

constexpr int kFractionBits = 30;  // In the prices of windows.
constexpr int64_t kWholePrice = int64_t{1} << kFractionBits;
constexpr int kMultiplierBits = 40;  // In the price of a byte.
// The sum of all capacities is below 2^kCapacityBits.
constexpr int kCapacityBits = 60;
constexpr int64_t kMaxCapacity = int64_t{1} << kCapacityBits;
constexpr int kMaxShift = 40;

// Returns min(amount · 2^exponent, kMaxCapacity), rounded down.
int64_t ScaleDown(__int128 amount, int exponent) {
  if (exponent <= -127) return 0;
  if (exponent <= 0)
    return static_cast<int64_t>(std::min<__int128>(amount >> -exponent, kMaxCapacity));
  if (exponent >= kCapacityBits) return amount > 0 ? kMaxCapacity : 0;
  return amount > (kMaxCapacity >> exponent) ? kMaxCapacity
                                             : static_cast<int64_t>(amount) << exponent;
}

// Does the same, rounded up.
int64_t ScaleUp(__int128 amount, int exponent) {
  if (exponent >= 0) return ScaleDown(amount, exponent);
  if (exponent <= -120) return amount > 0 ? 1 : 0;
  return ScaleDown(amount + (__int128{1} << -exponent) - 1, exponent);
}

}  // namespace

struct OffloadNetwork::WholePrices {
  // λ is per_byte · 2^exponent.
  int64_t per_byte = 0;
  int exponent = 0;
  // In units of 2^-kFractionBits.
  std::vector<int64_t> by_window;
  std::vector<int64_t> out_at;  // For copies of values written at each position.
  std::vector<int64_t> in_at;   // For copies of values first read at each position.
  int64_t all_in = 0;           // The sum over all windows for copies back.
};

OffloadNetwork::OffloadNetwork(const RunProblem& problem, const CopyTimes& times,
                               std::span<const OpId> order, size_t moment)
    : times_(times),
      moment_(static_cast<int32_t>(moment)),
      network_(problem, order, moment, times.may_move),
      clock_(order.size() + 1),
      made_at_(At(problem.value_count), -1),
      first_read_at_(At(problem.value_count), static_cast<int32_t>(order.size())) {
  for (size_t i = 0; i < order.size(); ++i) {
    clock_[i + 1] = clock_[i] + problem.cost[At(order[i].index())];
    for (const int32_t write : problem.writes[order[i].index()]) {
      made_at_[At(write)] = static_cast<int32_t>(i);
    }
  }
  for (size_t i = order.size(); i-- > moment;) {
    for (const int32_t read : problem.reads[order[i].index()]) {
      first_read_at_[At(read)] = static_cast<int32_t>(i);
    }
  }
}

int64_t OffloadNetwork::LengthOf(const CopyWindow& window) const {
  const int32_t begin = window.is_out ? window.position : moment_;
  const int32_t end = window.is_out ? moment_ : window.position;
  return begin >= end ? 0 : clock_[At(end)] - clock_[At(begin + 1)];
}

int64_t OffloadNetwork::CopiesIn(const MomentChoice& choice, const CopyWindow& window) const {
  int64_t sum = 0;
  for (const int32_t value : choice.loaded) {
    if (window.is_out && MadeAt(value) >= window.position) sum += times_.out[At(value)];
    if (!window.is_out && FirstReadAt(value) <= window.position) sum += times_.in[At(value)];
  }
  return sum;
}

MomentChoice OffloadNetwork::KeepAll() const {
  MomentChoice choice = {0, 0, network_.is_certain(), {}};
  for (const ValueArc& arc : network_.value_arcs()) {
    if (!network_.IsNeeded(arc.value)) continue;
    choice.kept[At(arc.value)] = true;
    choice.bytes += arc.bytes;
  }
  return choice;
}

MomentChoice OffloadNetwork::KeepMinBytes() {
  for (const ValueArc& arc : network_.value_arcs()) {
    network_.SetCapacity(arc.id, MayMove(arc.value) ? 0 : arc.bytes);
  }
  for (const OpArc& arc : network_.op_arcs()) network_.SetCapacity(arc.id, 0);
  network_.Solve();
  WholePrices prices;
  prices.per_byte = 1;
  prices.out_at.assign(clock_.size(), 0);
  prices.in_at.assign(clock_.size(), 0);
  return ChoiceOfCut(prices);
}

std::pair<MomentChoice, int64_t> OffloadNetwork::Cut(const CopyPrices& prices,
                                                     std::span<const CopyWindow> windows,
                                                     int64_t room) {
  const WholePrices rounded = RoundPrices(prices, windows);
  const int shift = ShiftFor(rounded);
  for (const ValueArc& arc : network_.value_arcs()) {
    network_.SetCapacity(arc.id, CapacityOf(rounded, arc, shift));
  }
  for (const OpArc& arc : network_.op_arcs()) {
    const __int128 price = static_cast<__int128>(kWholePrice - rounded.all_in) * arc.cost;
    network_.SetCapacity(arc.id, ScaleDown(price, shift - kFractionBits));
  }
  const int64_t least_cut = network_.Solve();
  return {ChoiceOfCut(rounded), BoundOf(rounded, windows, room, least_cut, shift)};
}

OffloadNetwork::WholePrices OffloadNetwork::RoundPrices(const CopyPrices& prices,
                                                        std::span<const CopyWindow> windows) const {
  WholePrices whole;
  int exponent = 0;
  const double fraction = std::frexp(std::max(prices.per_byte, 0.0), &exponent);
  whole.per_byte = static_cast<int64_t>(std::ldexp(fraction, kMultiplierBits));
  whole.exponent = exponent - kMultiplierBits;
  whole.out_at.assign(clock_.size(), 0);
  whole.in_at.assign(clock_.size(), 0);
  int64_t left[2] = {kWholePrice, kWholePrice};
  for (size_t w = 0; w < windows.size(); ++w) {
    const double price = std::clamp(prices.by_window[w], 0.0, 1.0);
    int64_t& rest = left[windows[w].is_out ? 0 : 1];
    const int64_t rounded = std::min<int64_t>(rest, std::llround(std::ldexp(price, kFractionBits)));
    rest -= rounded;
    whole.by_window.push_back(rounded);
    (windows[w].is_out ? whole.out_at : whole.in_at)[At(windows[w].position)] += rounded;
  }
  whole.all_in = kWholePrice - left[1];
  for (size_t i = 1; i < clock_.size(); ++i) {
    whole.out_at[i] += whole.out_at[i - 1];
    whole.in_at[clock_.size() - 1 - i] += whole.in_at[clock_.size() - i];
  }
  return whole;
}

__int128 OffloadNetwork::CopyPrice(const WholePrices& prices, int32_t value) const {
  return static_cast<__int128>(prices.out_at[At(MadeAt(value))]) * times_.out[At(value)] +
         static_cast<__int128>(prices.in_at[At(FirstReadAt(value))]) * times_.in[At(value)];
}

// Returns a shift at which the sum of all capacities is below kMaxCapacity.
int OffloadNetwork::ShiftFor(const WholePrices& prices) const {
  double sum = 1;
  for (const ValueArc& arc : network_.value_arcs()) {
    double price = std::ldexp(static_cast<double>(prices.per_byte) * static_cast<double>(arc.bytes),
                              prices.exponent);
    if (MayMove(arc.value)) {
      price = std::min(
          price, std::ldexp(static_cast<double>(CopyPrice(prices, arc.value)), -kFractionBits));
    }
    sum += price;
  }
  for (const OpArc& arc : network_.op_arcs()) sum += static_cast<double>(arc.cost);
  int exponent = 0;
  std::frexp(sum, &exponent);
  return std::min(kMaxShift, kCapacityBits - 1 - exponent);
}

int64_t OffloadNetwork::CapacityOf(const WholePrices& prices, const ValueArc& arc,
                                   int shift) const {
  const int64_t keeping =
      ScaleDown(static_cast<__int128>(prices.per_byte) * arc.bytes, shift + prices.exponent);
  if (!MayMove(arc.value)) return keeping;
  return std::min(keeping, ScaleDown(CopyPrice(prices, arc.value), shift - kFractionBits));
}

// Returns the smallest integer cost that is at least the Lagrangian's value at these prices.
int64_t OffloadNetwork::BoundOf(const WholePrices& prices, std::span<const CopyWindow> windows,
                                int64_t room, int64_t least_cut, int shift) const {
  __int128 bound = least_cut;
  bound -= ScaleUp(static_cast<__int128>(prices.per_byte) * room, shift + prices.exponent);
  for (size_t w = 0; w < windows.size(); ++w) {
    const auto price = static_cast<__int128>(prices.by_window[w]);
    bound -= ScaleUp(price * LengthOf(windows[w]), shift - kFractionBits);
  }
  if (bound <= 0) return 0;
  // Lowering a lower bound keeps it valid, and no plan is that slow.
  if (shift <= 0) return ScaleDown(bound, -shift);
  return static_cast<int64_t>((bound + (__int128{1} << shift) - 1) >> shift);
}

MomentChoice OffloadNetwork::ChoiceOfCut(const WholePrices& prices) const {
  MomentChoice choice = {0, 0, network_.is_certain(), {}};
  for (const ValueArc& arc : network_.value_arcs()) {
    if (!network_.IsCut(arc)) continue;
    const double keeping = std::ldexp(
        static_cast<double>(prices.per_byte) * static_cast<double>(arc.bytes), prices.exponent);
    const bool is_loaded =
        MayMove(arc.value) &&
        std::ldexp(static_cast<double>(CopyPrice(prices, arc.value)), -kFractionBits) < keeping;
    if (is_loaded) {
      choice.loaded.push_back(arc.value);
    } else {
      choice.kept[At(arc.value)] = true;
      choice.bytes += arc.bytes;
    }
  }
  for (const OpArc& arc : network_.op_arcs()) {
    if (network_.IsCut(arc)) choice.cost += arc.cost;
  }
  return choice;
}

}  // namespace ckplan
