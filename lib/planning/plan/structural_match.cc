#include "lib/planning/plan/structural_match.h"

#include <algorithm>
#include <deque>
#include <initializer_list>
#include <map>
#include <string_view>
#include <utility>

namespace ckplan {
namespace {

using Row = PlanDigest::Row;
using Rows = std::vector<Row>;
using Indices = std::vector<size_t>;

// The most unmatched nodes of either plan in one run of Myers' algorithm.
constexpr size_t kMaxEdits = 500;
// Operators alone decide if they pair a tenth more nodes than operators with sizes.
constexpr double kClearlyMore = 1.1;

// A node's operator and, unless only operators are compared, its size.
using Kind = std::pair<std::string_view, Bytes>;

Kind KindOf(const Row& row, bool with_bytes) { return {row.op, with_bytes ? row.bytes : Bytes(0)}; }

// Equal numbers stand for equal kinds.
struct Numbered {
  std::vector<size_t> older;
  std::vector<size_t> newer;
};

Numbered NumberKinds(const PlanDigest& older, const PlanDigest& newer, bool with_bytes) {
  std::map<Kind, size_t> numbers;
  const auto number = [&](const Rows& rows) {
    std::vector<size_t> result;
    for (const Row& row : rows) {
      result.push_back(numbers.try_emplace(KindOf(row, with_bytes), numbers.size()).first->second);
    }
    return result;
  };
  Numbered numbered;
  numbered.older = number(older.rows);
  numbered.newer = number(newer.rows);
  return numbered;
}

struct Pair {
  size_t older = 0;
  size_t newer = 0;
};

// Returns a largest set of pairs in the same order in both plans. O(n log n).
std::vector<Pair> PairsInOrder(const RowPartners& partners) {
  constexpr size_t kNone = kNoPartner;
  std::vector<size_t> last_of_length;  // The last row of the best chain of each length.
  std::vector<size_t> before(partners.size(), kNone);
  for (size_t i = 0; i < partners.size(); ++i) {
    if (partners[i] == kNoPartner) continue;
    const auto place =
        std::lower_bound(last_of_length.begin(), last_of_length.end(), partners[i],
                         [&](size_t row, size_t newer) { return partners[row] < newer; });
    if (place != last_of_length.begin()) before[i] = *std::prev(place);
    if (place == last_of_length.end()) {
      last_of_length.push_back(i);
    } else {
      *place = i;
    }
  }
  std::vector<Pair> chain;
  size_t row = last_of_length.empty() ? kNone : last_of_length.back();
  for (; row != kNone; row = before[row]) chain.push_back({row, partners[row]});
  std::reverse(chain.begin(), chain.end());
  return chain;
}

// Aligns two sequences of rows of equal kinds by Myers' algorithm.
class Alignment {
 public:
  Alignment(const Indices& older, const Indices& newer, const Numbered& kinds)
      : older_(older), newer_(newer), kinds_(kinds) {}

  // Appends the pairs. After kMaxEdits, takes the furthest path so far and aligns the rest
  // separately.
  void Run(std::vector<Pair>* pairs) {
    while (begin_older_ < older_.size() && begin_newer_ < newer_.size()) Advance(pairs);
  }

 private:
  bool AreEqual(size_t x, size_t y) const {
    return kinds_.older[older_[begin_older_ + x]] == kinds_.newer[newer_[begin_newer_ + y]];
  }

  void Advance(std::vector<Pair>* pairs) {
    const size_t width = older_.size() - begin_older_;
    const size_t height = newer_.size() - begin_newer_;
    const size_t most = std::min(width + height, kMaxEdits);
    const size_t middle = most + 1;
    // The x that each diagonal k = x - y reaches, at index middle + k.
    std::vector<size_t> reach(2 * middle + 1);
    std::vector<std::vector<size_t>> history;
    size_t edits = 0;
    size_t last = middle;  // The diagonal of the chosen path.
    for (bool is_done = false; !is_done; ++edits) {
      history.push_back(reach);
      size_t furthest = 0;
      for (size_t k = middle - edits; k <= middle + edits; k += 2) {
        const bool is_down =
            k == middle - edits || (k != middle + edits && reach[k - 1] < reach[k + 1]);
        size_t x = edits == 0 ? 0 : is_down ? reach[k + 1] : reach[k - 1] + 1;
        if (x + middle < k) x = k - middle;  // Above the first row.
        size_t y = x + middle - k;
        while (x < width && y < height && AreEqual(x, y)) ++x, ++y;
        reach[k] = x;
        if (x <= width && y <= height && x + y >= furthest) {
          furthest = x + y;
          last = k;
        }
        if (x == width && y == height) {
          is_done = true;
          break;
        }
      }
      if (edits == most) is_done = true;
    }
    --edits;
    const size_t end_x = std::min(reach[last], width);
    const size_t end_y = std::min(reach[last] + middle - last, height);
    Trace(history, edits, last, middle, reach[last], pairs);
    begin_older_ += end_x;
    begin_newer_ += end_y;
  }

  // Appends the pairs on the path that ends on diagonal `k` at `x`.
  void Trace(const std::vector<std::vector<size_t>>& history, size_t edits, size_t k, size_t middle,
             size_t x, std::vector<Pair>* pairs) const {
    const size_t first = pairs->size();
    for (;; --edits) {
      const std::vector<size_t>& reach = history[edits];
      const bool is_down =
          k == middle - edits || (k != middle + edits && reach[k - 1] < reach[k + 1]);
      size_t start = edits == 0 ? 0 : is_down ? reach[k + 1] : reach[k - 1] + 1;
      if (start + middle < k) start = k - middle;
      for (; x > start; --x) {
        const size_t y = x + middle - k;
        pairs->push_back({older_[begin_older_ + x - 1], newer_[begin_newer_ + y - 1]});
      }
      if (edits == 0) break;
      k = is_down ? k + 1 : k - 1;
      x = reach[k];
    }
    std::reverse(pairs->begin() + static_cast<std::ptrdiff_t>(first), pairs->end());
  }

  const Indices& older_;
  const Indices& newer_;
  const Numbered& kinds_;
  size_t begin_older_ = 0;
  size_t begin_newer_ = 0;
};

class StructuralMatcher {
 public:
  StructuralMatcher(const PlanDigest& older, const PlanDigest& newer, RowPartners* partners)
      : older_(older),
        newer_(newer),
        partners_(*partners),
        reverse_(newer.rows.size(), kNoPartner) {
    Restore(named_partners_);
    named_ = CountPairs();
  }

  size_t Run() && {
    const size_t by_bytes = PairBy({true, false});
    const RowPartners partners_by_bytes = partners_;
    Restore(named_partners_);
    const size_t by_operator = PairBy({false});
    // For a different batch or type, equal sizes mean different nodes, and fewer nodes are paired.
    if (kClearlyMore * static_cast<double>(by_bytes) >= static_cast<double>(by_operator)) {
      Restore(partners_by_bytes);
    }
    const size_t all = CountPairs();
    if (2 * all < std::min(older_.rows.size(), newer_.rows.size())) {
      partners_ = named_partners_;
      return 0;
    }
    return all - named_;
  }

 private:
  // Pairs rows by kind, with sizes or without, in this order. Returns the number of pairs.
  size_t PairBy(std::initializer_list<bool> with_bytes) {
    for (const bool has_bytes : with_bytes) {
      const RowPartners before = partners_;
      const Numbered kinds = NumberKinds(older_, newer_, has_bytes);
      AlignGaps(kinds);
      PairUniqueKinds(kinds);
      DropUnsupported(before);
    }
    return CountPairs();
  }

  void Restore(const RowPartners& partners) {
    partners_ = partners;
    std::fill(reverse_.begin(), reverse_.end(), kNoPartner);
    for (size_t i = 0; i < partners_.size(); ++i) {
      if (partners_[i] != kNoPartner) reverse_[partners_[i]] = i;
    }
  }

  size_t CountPairs() const {
    return partners_.size() -
           static_cast<size_t>(std::count(partners_.begin(), partners_.end(), kNoPartner));
  }

  void Join(size_t older, size_t newer) {
    partners_[older] = newer;
    reverse_[newer] = older;
  }

  static Indices FreeRows(const RowPartners& partners, size_t begin, size_t end) {
    Indices rows;
    for (size_t i = begin; i < end; ++i) {
      if (partners[i] == kNoPartner) rows.push_back(i);
    }
    return rows;
  }

  void AlignGaps(const Numbered& kinds) {
    std::vector<Pair> anchors = PairsInOrder(partners_);
    anchors.push_back({older_.rows.size(), newer_.rows.size()});
    std::vector<Pair> found;
    Pair begin;
    for (const Pair& anchor : anchors) {
      const Indices older = FreeRows(partners_, begin.older, anchor.older);
      const Indices newer = FreeRows(reverse_, begin.newer, anchor.newer);
      Alignment(older, newer, kinds).Run(&found);
      begin = {anchor.older + 1, anchor.newer + 1};
    }
    for (const Pair& pair : found) Join(pair.older, pair.newer);
  }

  // Pairs kinds that occur in one unpaired row of each plan, and from there their neighbours.
  void PairUniqueKinds(const Numbered& kinds) {
    const auto rows_by_kind = [](const RowPartners& partners, const std::vector<size_t>& kind_of) {
      std::map<size_t, Indices> rows;
      for (size_t i = 0; i < partners.size(); ++i) {
        if (partners[i] == kNoPartner) rows[kind_of[i]].push_back(i);
      }
      return rows;
    };
    const std::map<size_t, Indices> older = rows_by_kind(partners_, kinds.older);
    const std::map<size_t, Indices> newer = rows_by_kind(reverse_, kinds.newer);
    std::deque<Pair> pending;
    for (const auto& [kind, rows] : older) {
      const auto others = newer.find(kind);
      if (rows.size() != 1 || others == newer.end() || others->second.size() != 1) continue;
      Join(rows.front(), others->second.front());
      pending.push_back({rows.front(), others->second.front()});
    }
    const auto pair_neighbours = [&](size_t i, size_t j) {
      if (i >= partners_.size() || j >= reverse_.size()) return;  // Also wraps below 0.
      const bool is_free = partners_[i] == kNoPartner && reverse_[j] == kNoPartner;
      if (!is_free || kinds.older[i] != kinds.newer[j]) return;
      Join(i, j);
      pending.push_back({i, j});
    };
    for (; !pending.empty(); pending.pop_front()) {
      const Pair pair = pending.front();
      pair_neighbours(pair.older + 1, pair.newer + 1);
      pair_neighbours(pair.older - 1, pair.newer - 1);
    }
  }

  // For each row, returns the nearest paired row before or after it.
  static Indices FindNearestPaired(const RowPartners& partners, bool is_before) {
    Indices nearest(partners.size(), kNoPartner);
    size_t last = kNoPartner;
    for (size_t n = 0; n < partners.size(); ++n) {
      const size_t i = is_before ? n : partners.size() - 1 - n;
      nearest[i] = last;
      if (partners[i] != kNoPartner) last = i;
    }
    return nearest;
  }

  // Drops pairs that are not in `before` and whose neighbours differ between the plans.
  void DropUnsupported(const RowPartners& before) {
    std::vector<bool> is_supported(partners_.size());
    for (const bool is_before : {true, false}) {
      const Indices near_older = FindNearestPaired(partners_, is_before);
      const Indices near_newer = FindNearestPaired(reverse_, is_before);
      for (size_t i = 0; i < partners_.size(); ++i) {
        if (partners_[i] == kNoPartner) continue;
        const size_t near = near_older[i];
        const size_t partner = near == kNoPartner ? kNoPartner : partners_[near];
        if (near_newer[partners_[i]] == partner) is_supported[i] = true;
      }
    }
    for (size_t i = 0; i < partners_.size(); ++i) {
      if (partners_[i] == kNoPartner || before[i] != kNoPartner || is_supported[i]) continue;
      reverse_[partners_[i]] = kNoPartner;
      partners_[i] = kNoPartner;
    }
  }

  const PlanDigest& older_;
  const PlanDigest& newer_;
  RowPartners& partners_;
  RowPartners reverse_;
  const RowPartners named_partners_ = partners_;
  size_t named_ = 0;
};

}  // namespace

void DropWrongNamePairs(const PlanDigest& older, const PlanDigest& newer, RowPartners* partners) {
  size_t pairs = 0;
  size_t false_pairs = 0;
  for (size_t i = 0; i < partners->size(); ++i) {
    if ((*partners)[i] == kNoPartner) continue;
    ++pairs;
    if (older.rows[i].op != newer.rows[(*partners)[i]].op) ++false_pairs;
  }
  // About a third of unrelated nodes have the same operator by chance.
  const bool drops_all = 3 * false_pairs > pairs;
  for (size_t i = 0; i < partners->size(); ++i) {
    size_t& partner = (*partners)[i];
    if (partner == kNoPartner) continue;
    if (drops_all || older.rows[i].op != newer.rows[partner].op) partner = kNoPartner;
  }
}

size_t PairByStructure(const PlanDigest& older, const PlanDigest& newer, RowPartners* partners) {
  return StructuralMatcher(older, newer, partners).Run();
}

}  // namespace ckplan
