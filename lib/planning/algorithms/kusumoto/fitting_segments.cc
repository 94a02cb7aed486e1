#include "lib/planning/algorithms/kusumoto/fitting_segments.h"

#include <algorithm>
#include <compare>
#include <utility>
#include <vector>

namespace ckplan {

Result<FittingSegments::Arrivals> FittingSegments::FindMinCached(const SetSelection& useful) {
  Arrivals arrivals;
  arrivals.cached.assign(static_cast<size_t>(family_.size()), kNoBytes);
  arrivals.peak.resize(static_cast<size_t>(family_.size()));
  arrivals.cached[0] = Bytes(0);
  const auto arrive = [&](size_t worker, int32_t set) {
    Bytes here = kNoBytes;
    Bytes peak;
    ForEach(
        worker, set, useful,
        [&](int32_t below, Bytes max_cached) {
          const Bytes cached = arrivals.cached[static_cast<size_t>(below)];
          return cached < here && cached <= max_cached && cached + MinMoreCached(set, below) < here;
        },
        [&](int32_t below, Bytes max_cached) {
          const auto from = static_cast<size_t>(below);
          const Bytes cached = arrivals.cached[from] + Between(family_, set, below).more_cached;
          if (cached >= here) return;
          here = cached;
          peak = std::max(arrivals.peak[from], arrivals.cached[from] + budget_ - max_cached);
        });
    arrivals.cached[static_cast<size_t>(set)] = here;
    arrivals.peak[static_cast<size_t>(set)] = peak;
  };
  CKPLAN_RETURN_IF_ERROR(workers_.RunUpwards(useful.after_first(), arrive));
  return arrivals;
}

Result<std::vector<Bytes>> FittingSegments::FindMaxCached(const SetSelection& useful) {
  // Each worker has its own numbers; the maximum counts.
  std::vector<std::vector<Bytes>> of_workers(
      workers_.count(), std::vector<Bytes>(static_cast<size_t>(family_.size()), Bytes(-1)));
  of_workers[0].back() = kNoBytes;
  const auto largest_at = [&](int32_t set) {
    Bytes largest(-1);
    for (const auto& max_cached : of_workers) {
      largest = std::max(largest, max_cached[static_cast<size_t>(set)]);
    }
    return largest;
  };
  const auto leave = [&](size_t worker, int32_t set) {
    const Bytes here = largest_at(set);
    if (here < Bytes(0)) return;
    std::vector<Bytes>& best = of_workers[worker];
    ForEach(
        worker, set, useful,
        [&](int32_t below, Bytes max_cached) {
          const Bytes known = best[static_cast<size_t>(below)];
          return max_cached > known && here - MinMoreCached(set, below) > known;
        },
        [&](int32_t below, Bytes max_cached) {
          const Bytes cached = here - Between(family_, set, below).more_cached;
          Bytes& known = best[static_cast<size_t>(below)];
          known = std::max(known, std::min(max_cached, cached));
        });
  };
  CKPLAN_RETURN_IF_ERROR(workers_.RunDownwards(useful.after_first(), leave));
  for (int32_t set = 0; set < family_.size(); ++set) {
    of_workers[0][static_cast<size_t>(set)] = largest_at(set);
  }
  return std::move(of_workers[0]);
}

Result<FittingSegments::Passable> FittingSegments::FindPassable() {
  const SetSelection all(family_);
  CKPLAN_ASSIGN_OR_RETURN(const Arrivals arrivals, FindMinCached(all));
  if (arrivals.cached.back() == kNoBytes) return Passable();
  CKPLAN_ASSIGN_OR_RETURN(std::vector<Bytes> max_cached, FindMaxCached(all));
  return Passable{SelectPassable(arrivals, max_cached, all), std::move(max_cached)};
}

SetSelection FittingSegments::SelectPassable(const Arrivals& arrivals,
                                             const std::vector<Bytes>& max_cached,
                                             const SetSelection& useful) const {
  std::vector<int32_t> passable;
  for (const int32_t set : useful.sets) {
    const auto i = static_cast<size_t>(set);
    if (arrivals.cached[i] <= max_cached[i]) passable.push_back(set);
  }
  return SetSelection(family_, std::move(passable));
}

namespace {

// Tries whether a budget just below the known one is feasible. Then bisects for the lowest feasible
// budget until the range is narrow, and settles the rest in one pass over the values that occur in
// it.
class MinBudgetSearch {
 public:
  MinBudgetSearch(const LowerSetFamily& family, SetWorkers* workers)
      : family_(family), workers_(*workers), passable_{SetSelection(family), {}} {}

  Result<MinBudgetResult> Run(std::optional<Bytes> known) {
    const Bytes keep_nothing = 2 * family_.whole().memory;  // {V} always fits this.
    if (known) {
      CKPLAN_RETURN_IF_ERROR(Try(std::min(*known, keep_nothing)));
    } else {
      CKPLAN_RETURN_IF_ERROR(FindFeasible(keep_nothing));
    }
    // A smaller family's lowest budget is often the lowest of all; one pass proves it.
    CKPLAN_RETURN_IF_ERROR(TryJustBelow());
    const Bytes narrow(feasible_.count() / 1024);
    while (feasible_ - infeasible_ > narrow + Bytes(1)) {
      CKPLAN_RETURN_IF_ERROR(Try(Bytes((infeasible_.count() + feasible_.count()) / 2)));
    }
    for (int i = 0; i < kLastTries; ++i) CKPLAN_RETURN_IF_ERROR(TryJustBelow());
    if (!is_settled()) {
      CKPLAN_ASSIGN_OR_RETURN(feasible_, SettleRest());
    }
    if (passable_budget_ != feasible_) return MinBudgetResult{feasible_, std::nullopt};
    return MinBudgetResult{feasible_, std::move(passable_)};
  }

 private:
  // A sequence that leads to a set: the memory it caches, and its highest Eq. 2 value so far.
  struct Way {
    Bytes cached;
    Bytes peak;
    auto operator<=>(const Way&) const = default;
  };
  static constexpr size_t kMaxUnsorted = 1024;
  static constexpr int kDoublings = 8;
  static constexpr int kLastTries = 3;

  bool is_settled() const { return feasible_ - infeasible_ <= Bytes(1); }

  Result<Done> TryJustBelow() { return is_settled() ? Done{} : Try(feasible_ - Bytes(1)); }

  // Doubles a small guess until it is feasible. Small guesses are fast because few segments fit.
  Result<Done> FindFeasible(Bytes whole) {
    for (int shift = kDoublings; feasible_ == kNoBytes; --shift) {
      CKPLAN_RETURN_IF_ERROR(Try(Bytes(whole.count() >> shift)));
    }
    return Done{};
  }

  // Lowers a feasible guess to the peak of the sequence found. From then on, skips sets that no
  // sequence within it can pass.
  Result<Done> Try(Bytes guess) {
    FittingSegments segments(family_, guess, &workers_);
    CKPLAN_ASSIGN_OR_RETURN(const auto arrivals, segments.FindMinCached(passable_.sets));
    if (arrivals.cached.back() == kNoBytes) {
      infeasible_ = guess;
      return Done{};
    }
    feasible_ = arrivals.peak.back();
    CKPLAN_ASSIGN_OR_RETURN(passable_.max_cached, segments.FindMaxCached(passable_.sets));
    passable_.sets = segments.SelectPassable(arrivals, passable_.max_cached, passable_.sets);
    passable_budget_ = guess;
    return Done{};
  }

  // Keeps the Pareto-optimal ways to each set. Treats all infeasible peaks as equal, so that few
  // ways differ.
  Result<Bytes> SettleRest() {
    FittingSegments segments(family_, feasible_, &workers_);
    std::vector<std::vector<Way>> ways(static_cast<size_t>(family_.size()));
    ways[0].push_back({Bytes(0), infeasible_ + Bytes(1)});
    const auto settle = [&](size_t worker, int32_t set) {
      std::vector<Way> reached;
      segments.ForEach(
          worker, set, passable_.sets,
          [&](int32_t below, Bytes max_cached) {
            const std::vector<Way>& from = ways[static_cast<size_t>(below)];
            return !from.empty() && from.front().cached <= max_cached;
          },
          [&](int32_t below, Bytes max_cached) {
            const std::vector<Way>& from = ways[static_cast<size_t>(below)];
            const Bytes more_cached = Between(family_, set, below).more_cached;
            workers_.meter().Add(static_cast<int64_t>(from.size()));
            for (const Way& way : from) {
              if (way.cached > max_cached) break;
              const Bytes needed = way.cached + feasible_ - max_cached;
              reached.push_back({way.cached + more_cached, std::max(way.peak, needed)});
            }
            if (reached.size() > kMaxUnsorted) KeepBest(&reached);
          });
      KeepBest(&reached);
      reached.shrink_to_fit();
      ways[static_cast<size_t>(set)] = std::move(reached);
    };
    CKPLAN_RETURN_IF_ERROR(workers_.RunUpwards(passable_.sets.after_first(), settle));
    CKPLAN_CHECK(!ways.back().empty(), "the search starts from a feasible budget");
    return ways.back().back().peak;
  }

  // Sorts by cached memory, and drops each way whose peak is not below that of all earlier ones.
  static void KeepBest(std::vector<Way>* ways) {
    std::sort(ways->begin(), ways->end());
    size_t kept = 0;
    for (const Way& way : *ways) {
      if (kept == 0 || way.peak < (*ways)[kept - 1].peak) (*ways)[kept++] = way;
    }
    ways->resize(kept);
  }

  const LowerSetFamily& family_;
  SetWorkers& workers_;
  Bytes feasible_ = kNoBytes;
  Bytes infeasible_{-1};  // This budget and all lower ones are infeasible.
  // The lowest feasible guess, and the sets that a sequence within it may pass.
  Bytes passable_budget_ = kNoBytes;
  FittingSegments::Passable passable_;
};

}  // namespace

Result<MinBudgetResult> FindMinBudget(const LowerSetFamily& family, std::optional<Bytes> known,
                                      SetWorkers* workers) {
  return MinBudgetSearch(family, workers).Run(known);
}

}  // namespace ckplan
