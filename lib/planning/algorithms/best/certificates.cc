#include "lib/planning/algorithms/best/certificates.h"

#include <algorithm>
#include <limits>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "lib/base/stop.h"
#include "lib/problem/graph/max_flow.h"

namespace ckplan {

std::vector<bool> RequiredOps(const RunProblem& problem) {
  std::vector<bool> is_required = problem.is_needed;
  for (int32_t op = problem.op_count - 1; op >= 0; --op) {
    if (!is_required[static_cast<size_t>(op)]) continue;
    for (const int32_t read : problem.reads[op]) {
      is_required[static_cast<size_t>(problem.producer[static_cast<size_t>(read)])] = true;
    }
  }
  return is_required;
}

Runs RequiredOwnOrder(const RunProblem& problem) {
  const std::vector<bool> is_required = RequiredOps(problem);
  Runs order;
  for (int32_t op = 0; op < problem.op_count; ++op) {
    if (is_required[static_cast<size_t>(op)]) order.emplace_back(op);
  }
  return order;
}

namespace {

constexpr int32_t kNone = -1;

// No sum here exceeds kMaxTotalBytes, because each value counts at most once.
class WorkingSets {
 public:
  // Values that can be offloaded need not stay anywhere.
  explicit WorkingSets(const RunProblem& problem, const std::vector<bool>& may_move = {})
      : problem_(problem),
        may_move_(may_move.empty() ? std::vector<bool>(problem.bytes.size()) : may_move),
        is_required_(RequiredOps(problem)),
        kept_beside_(static_cast<size_t>(problem.op_count)),
        reader_of_(kept_beside_.size(), kNone),
        before_reader_of_(kept_beside_.size(), kNone),
        after_producer_of_(kept_beside_.size(), kNone) {}

  // Returns the operation with the largest working set, or the producer of a result whose last run
  // needs more.
  std::pair<int64_t, OpId> Largest(int64_t max_work) {
    const std::vector<int64_t> bytes = Find(max_work);
    std::pair<int64_t, OpId> largest = BoundAtEnd();
    for (size_t op = 0; op < bytes.size(); ++op) {
      if (bytes[op] > largest.first) largest = {bytes[op], OpId(op)};
    }
    return largest;
  }

 private:
  // Returns the working set of each operation that every plan must run, and zero for the others.
  std::vector<int64_t> Find(int64_t max_work) {
    AddUnrepeatable(max_work);
    std::vector<int64_t> bytes(static_cast<size_t>(problem_.op_count));
    for (int32_t op = 0; op < problem_.op_count; ++op) {
      const auto at = static_cast<size_t>(op);
      if (is_required_[at]) bytes[at] = Alone(op) + kept_beside_[at];
    }
    return bytes;
  }

  // The last run among the producers of results needs its own working set, with all results in
  // memory. Which producer comes last is unknown, so the minimum counts.
  std::pair<int64_t, OpId> BoundAtEnd() const {
    int64_t results = 0;
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      if (IsCountedResult(value)) results += BytesOf(value);
    }
    std::pair<int64_t, OpId> least{std::numeric_limits<int64_t>::max(), OpId()};
    for (int32_t op = 0; op < problem_.op_count; ++op) {
      int64_t own_results = 0;
      bool makes_result = false;
      for (const int32_t write : problem_.writes[op]) {
        makes_result = makes_result || IsCountedResult(write);
        if (IsCountedResult(write)) own_results += BytesOf(write);
      }
      for (const int32_t read : problem_.reads[op]) {
        if (IsCountedResult(read)) own_results += BytesOf(read);
      }
      if (makes_result) least = std::min(least, {results - own_results + Alone(op), OpId(op)});
    }
    return least.second.is_none() ? std::pair{int64_t{0}, OpId()} : least;
  }

  int64_t BytesOf(int32_t value) const { return problem_.bytes[static_cast<size_t>(value)]; }
  bool IsCountedResult(int32_t value) const {
    const auto at = static_cast<size_t>(value);
    return problem_.is_result[at] && !may_move_[at] && BytesOf(value) > 0;
  }

  int64_t Alone(int32_t op) const {
    const auto at = static_cast<size_t>(op);
    int64_t bytes = problem_.written_bytes[at] + problem_.workspace[at];
    for (const int32_t read : problem_.reads[op]) bytes += BytesOf(read);
    return bytes - problem_.in_place_bytes[at];
  }

  // A value that can't be recomputed lives from its only run to its last reader: it is in memory at
  // the first runs of all operations in between. Visits the largest such values first.
  void AddUnrepeatable(int64_t max_work) {
    std::vector<int32_t> values;
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      const int32_t producer = problem_.producer[static_cast<size_t>(value)];
      if (producer == kNone || BytesOf(value) == 0) continue;
      const auto at = static_cast<size_t>(producer);
      const bool must_stay = !problem_.may_repeat[at] && !may_move_[static_cast<size_t>(value)];
      if (is_required_[at] && must_stay) values.push_back(value);
    }
    std::stable_sort(values.begin(), values.end(),
                     [&](int32_t a, int32_t b) { return BytesOf(a) > BytesOf(b); });
    for (const int32_t value : values) {
      PollStop();
      if (work_ > max_work) return;
      AddBetween(value);
    }
  }

  // Adds the value to all descendants of its producer that don't read it and are ancestors of a
  // reader; if it is a result, to all descendants that don't read it. Operations have higher
  // numbers than their ancestors, so all of these lie between the producer and the last reader.
  void AddBetween(int32_t value) {
    const bool is_result = problem_.is_result[static_cast<size_t>(value)];
    const int32_t producer = problem_.producer[static_cast<size_t>(value)];
    int32_t last = is_result ? problem_.op_count - 1 : producer;
    for (const int32_t reader : problem_.readers[value]) {
      const auto at = static_cast<size_t>(reader);
      reader_of_[at] = value;
      if (!is_required_[at]) continue;
      before_reader_of_[at] = value;
      last = std::max(last, reader);
    }
    work_ += static_cast<int64_t>(problem_.readers[value].size());
    if (!is_result) MarkAncestors(value, producer, last);
    after_producer_of_[static_cast<size_t>(producer)] = value;
    for (int32_t op = producer + 1; op <= last; ++op) {
      const std::span<const int32_t> reads = problem_.reads[op];
      work_ += static_cast<int64_t>(reads.size()) + 1;
      const bool is_after_producer = std::any_of(reads.begin(), reads.end(), [&](int32_t read) {
        return after_producer_of_[ProducerOf(read)] == value;
      });
      if (!is_after_producer) continue;
      const auto at = static_cast<size_t>(op);
      after_producer_of_[at] = value;
      const bool is_kept = is_result || before_reader_of_[at] == value;
      if (is_kept && reader_of_[at] != value) kept_beside_[at] += BytesOf(value);
    }
  }

  // Marks the ancestors of the value's readers among operations after its producer.
  void MarkAncestors(int32_t value, int32_t producer, int32_t last_reader) {
    for (int32_t op = last_reader; op > producer; --op) {
      const std::span<const int32_t> reads = problem_.reads[op];
      work_ += static_cast<int64_t>(reads.size()) + 1;
      if (before_reader_of_[static_cast<size_t>(op)] != value) continue;
      for (const int32_t read : reads) before_reader_of_[ProducerOf(read)] = value;
    }
  }

  size_t ProducerOf(int32_t value) const {
    return static_cast<size_t>(problem_.producer[static_cast<size_t>(value)]);
  }

  const RunProblem& problem_;
  const std::vector<bool> may_move_;
  const std::vector<bool> is_required_;
  std::vector<int64_t> kept_beside_;  // In bytes, by operation.
  // By operation, the last visited value that it reads; that it or a required descendant reads;
  // that it or an ancestor produces.
  std::vector<int32_t> reader_of_;
  std::vector<int32_t> before_reader_of_;
  std::vector<int32_t> after_producer_of_;
  int64_t work_ = 0;
};

// The network's nodes are the required operations, by their numbers in the graph; one per value
// with several readers; and one for the end. A source side is a downset of operations:
//
//   reader ──inf──▶ producer          if an operation has run, the producers of its inputs have
//   producer ──bytes──▶ value ──inf──▶ reader      live, if the producer has run and a reader has
//   not producer ──bytes──▶ end           a result, live whenever its producer has run
class OrderCuts {
 public:
  OrderCuts(const RunProblem& problem, std::vector<bool> is_required)
      : problem_(problem),
        is_required_(std::move(is_required)),
        end_(problem.op_count + problem.value_count),
        network_(end_ + 1),
        upper_(static_cast<size_t>(problem.op_count), kNone) {
    network_.SetTerminal(end_, MaxFlow::Terminal::kSink);
    for (int32_t op = 0; op < problem.op_count; ++op) {
      if (!is_required_[static_cast<size_t>(op)]) continue;
      for (const int32_t read : problem.reads[op]) {
        network_.AddArc(op, problem.producer[static_cast<size_t>(read)], MaxFlow::kInfinite);
      }
      for (const int32_t write : problem.writes[op]) AddValue(write);
    }
    BoundByOwnOrder();
  }

  // Returns the largest memory that any operation needs when it runs, and that operation, if it is
  // above `bound`.
  std::pair<int64_t, OpId> RaiseBound(std::pair<int64_t, OpId> bound, int64_t max_work) {
    while (network_.work() + work_ <= max_work) {
      const auto most = std::max_element(upper_.begin(), upper_.end());
      work_ += problem_.op_count;
      if (most == upper_.end() || *most <= bound.first) break;
      const auto op = static_cast<int32_t>(most - upper_.begin());
      const int64_t bytes = Cut(op);
      *most = kNone;
      if (bytes > bound.first) bound = {bytes, OpId(op)};
    }
    return bound;
  }

 private:
  // Returns the bytes that the operation needs beyond the values across the boundary, which include
  // its reads.
  int64_t BytesBeyondBoundary(int32_t op) const {
    const auto at = static_cast<size_t>(op);
    return problem_.written_bytes[at] + problem_.workspace[at] - problem_.in_place_bytes[at];
  }

  void AddValue(int32_t value) {
    const auto at = static_cast<size_t>(value);
    const int64_t bytes = problem_.bytes[at];
    if (bytes == 0) return;
    if (problem_.is_result[at]) {
      network_.AddArc(problem_.producer[at], end_, bytes);
      return;
    }
    std::vector<int32_t> readers;
    for (const int32_t reader : problem_.readers[value]) {
      if (is_required_[static_cast<size_t>(reader)]) readers.push_back(reader);
    }
    if (readers.size() == 1) network_.AddArc(problem_.producer[at], readers[0], bytes);
    if (readers.size() <= 1) return;
    const int32_t node = problem_.op_count + value;
    network_.AddArc(problem_.producer[at], node, bytes);
    for (const int32_t reader : readers) network_.AddArc(node, reader, MaxFlow::kInfinite);
  }

  // The operations before another one in the own order are one of its downsets.
  void BoundByOwnOrder() {
    std::vector<int32_t> last_reader(static_cast<size_t>(problem_.value_count), kNone);
    for (int32_t value = 0; value < problem_.value_count; ++value) {
      for (const int32_t reader : problem_.readers[value]) {
        if (is_required_[static_cast<size_t>(reader)]) {
          last_reader[static_cast<size_t>(value)] = reader;
        }
      }
    }
    int64_t live = 0;
    for (int32_t op = 0; op < problem_.op_count; ++op) {
      if (!is_required_[static_cast<size_t>(op)]) continue;
      upper_[static_cast<size_t>(op)] = live + BytesBeyondBoundary(op);
      for (const int32_t write : problem_.writes[op]) {
        const auto at = static_cast<size_t>(write);
        if (problem_.is_result[at] || last_reader[at] != kNone) live += problem_.bytes[at];
      }
      for (const int32_t read : problem_.reads[op]) {
        const auto at = static_cast<size_t>(read);
        if (!problem_.is_result[at] && last_reader[at] == op) live -= problem_.bytes[at];
      }
    }
  }

  int64_t Cut(int32_t op) {
    SetTerminals(op, MaxFlow::Terminal::kSource, MaxFlow::Terminal::kSink);
    const int64_t boundary = network_.Solve();
    BoundByDownset(network_.LargestSourceSide(), boundary);
    SetTerminals(op, MaxFlow::Terminal::kNone, MaxFlow::Terminal::kNone);
    return boundary + BytesBeyondBoundary(op);
  }

  // Infinite arcs tie all ancestors to the producers of the inputs, and all descendants to the
  // operation.
  void SetTerminals(int32_t op, MaxFlow::Terminal inputs, MaxFlow::Terminal itself) {
    for (const int32_t read : problem_.reads[op]) {
      network_.SetTerminal(problem_.producer[static_cast<size_t>(read)], inputs);
    }
    network_.SetTerminal(op, itself);
  }

  // The downset is valid for every operation outside it whose inputs it produces.
  void BoundByDownset(const std::vector<bool>& downset, int64_t boundary) {
    for (int32_t op = 0; op < problem_.op_count; ++op) {
      const auto at = static_cast<size_t>(op);
      if (upper_[at] == kNone || downset[at]) continue;
      const std::span<const int32_t> reads = problem_.reads[op];
      work_ += static_cast<int64_t>(reads.size()) + 1;
      const bool is_next = std::all_of(reads.begin(), reads.end(), [&](int32_t read) {
        return downset[static_cast<size_t>(problem_.producer[static_cast<size_t>(read)])];
      });
      if (is_next) upper_[at] = std::min(upper_[at], boundary + BytesBeyondBoundary(op));
    }
  }

  const RunProblem& problem_;
  const std::vector<bool> is_required_;
  const int32_t end_;
  MaxFlow network_;
  std::vector<int64_t> upper_;  // By operation: an upper bound on its need; kNone once its cut
                                // is computed.
  int64_t work_ = 0;
};

}  // namespace

Certificates FindCertificates(const RunProblem& problem, int64_t max_work) {
  Certificates found;
  std::tie(found.least_peak_any_plan, found.at) = WorkingSets(problem).Largest(max_work);
  std::tie(found.least_peak_once_any_order, found.once_at) =
      OrderCuts(problem, RequiredOps(problem))
          .RaiseBound({found.least_peak_any_plan, found.at}, max_work);
  return found;
}

std::pair<int64_t, OpId> MinPeakWithCopies(const RunProblem& problem,
                                           const std::vector<bool>& may_move, int64_t max_work) {
  return WorkingSets(problem, may_move).Largest(max_work);
}

}  // namespace ckplan
