#include "lib/planning/runtimes/class_search.h"

#include <algorithm>
#include <compare>
#include <map>
#include <optional>
#include <utility>

#include "lib/base/stop.h"
#include "lib/problem/schedule/replay.h"
#include "lib/problem/schedule/schedule.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

namespace {

// Sums up the memory in use after a step.
class LiveSink {
 public:
  LiveSink(const StepTable& table, size_t step) : table_(table), wanted_(step) {}
  void Allocate(int32_t /*buffer*/, int32_t value) { live_ += BytesOf(value); }
  void Release(int32_t /*buffer*/, int32_t value) { live_ -= BytesOf(value); }
  void Make(int32_t /*value*/, int32_t /*buffer*/, int32_t /*last_read*/) {}
  void Work(int32_t /*kind*/) {}
  void EndStep(int32_t /*kind*/) {
    if (step_++ == wanted_) found_ = live_;
  }
  Bytes found() const { return found_; }

 private:
  Bytes BytesOf(int32_t value) const { return table_.bytes[static_cast<size_t>(value)]; }

  const StepTable& table_;
  const size_t wanted_;
  size_t step_ = 0;
  Bytes live_;
  Bytes found_;
};

}  // namespace

LiveBytes::LiveBytes(const JointGraph& graph) : graph_(graph), table_(TableOf(graph)) {}

Bytes LiveBytes::BeforeBackward(const std::vector<OpId>& runs) const {
  const auto first = std::find_if(runs.begin(), runs.end(),
                                  [&](OpId id) { return graph_.op(id).phase == Phase::kBackward; });
  if (first == runs.begin() || first == runs.end()) return Bytes(0);
  const Schedule schedule = ScheduleOfRuns(runs);
  const std::vector<int32_t> kinds = KindsOf(graph_, schedule);
  Replay replay(table_);
  replay.Read(kinds, schedule.frees);
  LiveSink sink(table_, static_cast<size_t>(first - runs.begin()) - 1);
  replay.Report(&sink);
  return sink.found();
}

namespace {

// Classes with more choices are not listed and sorted.
constexpr int64_t kMaxListed = 1'000'000;

// A lower score is better.
struct Score {
  int64_t excess = 0;  // The peak above the budget, in hundredths of it, rounded up.
  Cost overhead;
  Bytes peak;

  auto operator<=>(const Score&) const = default;
};

// The cost and savings of an option by itself.
struct Effect {
  Cost overhead;
  Bytes saved;  // Memory saved at the start of the backward pass.
};

class Search {
 public:
  Search(const PlanClass& plans, Bytes budget, int64_t steps)
      : plans_(plans),
        budget_(budget),
        limit_(steps),
        simulator_(plans.graph()),
        live_(plans.graph()) {
    FindEffects();
  }

  ClassPlan Find() {
    const bool lists_all = CanListAll();
    const Choice choice = lists_all ? SearchAll() : SearchHeuristically();
    const Score score = ScoreOf(choice);
    const bool is_exact = lists_all && plans_.IsComplete();
    return {choice, score.peak, score.overhead, score.excess == 0, is_exact};
  }

 private:
  struct Scored {
    Score score;
    Choice choice;
    auto operator<=>(const Scored&) const = default;
  };

  Choice KeepAllChoice() const { return Choice(plans_.unit_count(), 0); }
  const std::vector<Effect>& EffectsOf(size_t unit) const {
    return effects_.at(plans_.KindOf(unit));
  }

  void FindEffects() {
    const Bytes before = live_.BeforeBackward(plans_.RunsOf(KeepAllChoice()));
    for (size_t unit = 0; unit < plans_.unit_count(); ++unit) {
      std::vector<Effect>& effects = effects_[plans_.KindOf(unit)];
      if (!effects.empty()) continue;
      effects.push_back({Cost(0), Bytes(0)});
      for (int32_t option = 1; option < plans_.OptionCount(unit); ++option) {
        PollStop();
        Choice choice = KeepAllChoice();
        choice[unit] = option;
        const std::vector<OpId> runs = plans_.RunsOf(choice);
        effects.push_back({simulator_.Run(runs).value().overhead - BaseOverhead(),
                           before - live_.BeforeBackward(runs)});
      }
    }
  }

  // Zero, or negative if the graph has operations that nothing needs.
  Cost BaseOverhead() {
    if (!nothing_) nothing_ = simulator_.Run(plans_.RunsOf(KeepAllChoice())).value().overhead;
    return *nothing_;
  }

  Cost OverheadOf(const Choice& choice) {
    Cost sum = BaseOverhead();
    for (size_t unit = 0; unit < choice.size(); ++unit) {
      sum += EffectsOf(unit)[static_cast<size_t>(choice[unit])].overhead;
    }
    return sum;
  }

  Score ScoreOf(const Choice& choice) {
    PollStop();
    const std::vector<OpId> runs = plans_.RunsOf(choice);
    steps_ += static_cast<int64_t>(runs.size());
    const Simulation found = simulator_.Run(runs).value();
    const int64_t hundredth = std::max(budget_.count() / 100, int64_t{1});
    const int64_t above = std::max(found.peak - budget_, Bytes(0)).count();
    return {above / hundredth + (above % hundredth == 0 ? 0 : 1), found.overhead, found.peak};
  }

  bool is_spent() const { return steps_ >= limit_; }

  bool CanListAll() const {
    int64_t count = 1;
    const auto ops = static_cast<int64_t>(plans_.graph().ops().size());
    for (size_t unit = 0; unit < plans_.unit_count(); ++unit) {
      count *= plans_.OptionCount(unit);
      if (count > kMaxListed || count * ops > limit_) return false;
    }
    return true;
  }

  // Tries all choices by increasing overhead. Choices after one that fits can't be better.
  Choice SearchAll() {
    std::vector<std::pair<Cost, Choice>> all;
    Choice choice = KeepAllChoice();
    do {
      all.emplace_back(OverheadOf(choice), choice);
    } while (Advance(choice));
    std::sort(all.begin(), all.end());
    Scored best{ScoreOf(all.front().second), all.front().second};
    for (const auto& [overhead, each] : all) {
      if (best.score.excess == 0 && overhead > best.score.overhead) break;
      best = std::min(best, Scored{ScoreOf(each), each});
    }
    return best.choice;
  }

  // Moves to the next choice. Returns false after the last one.
  bool Advance(Choice& choice) const {
    for (size_t unit = choice.size(); unit-- > 0;) {
      if (++choice[unit] < plans_.OptionCount(unit)) return true;
      choice[unit] = 0;
    }
    return false;
  }

  // Changes all units of a kind, one after another, to an option that saves more.
  struct Upgrade {
    double cost_per_byte = 0;
    int32_t kind = 0;
    int32_t option = 0;
    auto operator<=>(const Upgrade&) const = default;
  };

  Choice SearchHeuristically() {
    Choice choice = KeepAllChoice();
    Scored best{ScoreOf(choice), choice};
    for (const Upgrade& upgrade : Upgrades()) {
      for (size_t unit = 0; unit < choice.size() && !is_spent(); ++unit) {
        if (plans_.KindOf(unit) != upgrade.kind) continue;
        choice[unit] = upgrade.option;
        Accept(choice, best);
      }
    }
    limit_ += steps_;  // Doubles the limit.
    while (!is_spent() && (Improve(best) || ImproveByPair(best))) {
    }
    return best.choice;
  }

  std::vector<Upgrade> Upgrades() const {
    std::vector<Upgrade> upgrades;
    for (const auto& [kind, effects] : effects_) AddUpgrades(kind, effects, upgrades);
    std::sort(upgrades.begin(), upgrades.end());
    return upgrades;
  }

  // Adds the options on the lower convex hull of overhead over saved bytes, starting with option 0,
  // so that each costs more per byte than the one before.
  static void AddUpgrades(int32_t kind, const std::vector<Effect>& effects,
                          std::vector<Upgrade>& upgrades) {
    size_t last = 0;
    while (true) {
      size_t next = last;
      double least = 0;
      for (size_t option = 1; option < effects.size(); ++option) {
        const Bytes saved = effects[option].saved - effects[last].saved;
        if (saved <= Bytes(0)) continue;
        const Cost more = effects[option].overhead - effects[last].overhead;
        const double slope = static_cast<double>(more.count()) / static_cast<double>(saved.count());
        if (next == last || slope < least) {
          next = option;
          least = slope;
        }
      }
      if (next == last) return;
      upgrades.push_back({least, kind, static_cast<int32_t>(next)});
      last = next;
    }
  }

  // Simulates only choices that may be better.
  bool Accept(const Choice& choice, Scored& best) {
    if (best.score.excess == 0 && OverheadOf(choice) > best.score.overhead) return false;
    const Scored scored{ScoreOf(choice), choice};
    if (scored.score >= best.score) return false;
    best = scored;
    return true;
  }

  // Applies the first change of one unit that improves the choice.
  bool Improve(Scored& best) {
    for (size_t unit = 0; unit < best.choice.size(); ++unit) {
      for (int32_t option = 0; option < plans_.OptionCount(unit); ++option) {
        if (is_spent()) return false;
        if (option == best.choice[unit]) continue;
        Choice changed = best.choice;
        changed[unit] = option;
        if (Accept(changed, best)) return true;
      }
    }
    return false;
  }

  // Applies the first change of two units that improves the choice.
  bool ImproveByPair(Scored& best) {
    for (size_t a = 0; a < best.choice.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        for (int32_t first = 0; first < plans_.OptionCount(a); ++first) {
          for (int32_t second = 0; second < plans_.OptionCount(b); ++second) {
            if (is_spent()) return false;
            if (first == best.choice[a] || second == best.choice[b]) continue;
            Choice changed = best.choice;
            changed[a] = first;
            changed[b] = second;
            if (Accept(changed, best)) return true;
          }
        }
      }
    }
    return false;
  }

  const PlanClass& plans_;
  const Bytes budget_;
  int64_t limit_;
  int64_t steps_ = 0;
  Simulator simulator_;
  const LiveBytes live_;
  std::map<int32_t, std::vector<Effect>> effects_;  // By kind of unit, and option.
  std::optional<Cost> nothing_;
};

}  // namespace

ClassPlan FindClassPlan(const PlanClass& plans, Bytes budget, int64_t steps) {
  return Search(plans, budget, steps).Find();
}

}  // namespace ckplan
