#include "lib/planning/planner/module_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "lib/base/stop.h"
#include "lib/problem/schedule/expand.h"
#include "lib/problem/schedule/lower.h"
#include "lib/problem/schedule/simulate.h"

namespace ckplan {

namespace {

// A start wraps every module of which the plan recomputes at least this share of the bytes.
constexpr std::array kStartShares = {1.0, 0.5, 0.01};
// The search improves this many of the best starts.
constexpr size_t kImprovedStarts = 3;

// The modules by path, in the order of their first calls.
struct ModuleTree {
  struct Module {
    std::string path;
    std::string class_name;
    std::vector<size_t> children;
    int64_t call_count = 0;
  };
  std::vector<Module> modules;
  std::vector<size_t> module_of_call;
};

ModuleTree TreeOf(const ModuleCalls& calls) {
  ModuleTree tree;
  std::map<std::string, size_t> by_path;
  for (const ModuleCall& call : calls.calls) {
    const auto [entry, is_new] = by_path.try_emplace(call.path, tree.modules.size());
    if (is_new) {
      tree.modules.push_back({call.path, call.class_name, {}, 0});
      if (call.parent >= 0) {
        const size_t parent = tree.module_of_call[static_cast<size_t>(call.parent)];
        tree.modules[parent].children.push_back(entry->second);
      }
    }
    ++tree.modules[entry->second].call_count;
    tree.module_of_call.push_back(entry->second);
  }
  return tree;
}

using Choice = std::vector<bool>;  // By module: whether it is wrapped.

// A lower score is better.
struct Score {
  // The excess of the peak over the budget, in percent, rounded up. Coarse, so that no module is
  // recomputed just to save a few bytes if the budget is out of reach.
  int64_t excess = 0;
  Cost overhead;
  Bytes peak;
  int64_t wrapped = 0;

  auto operator<=>(const Score&) const = default;
};

struct Scored {
  Score score;
  Choice choice;

  auto operator<=>(const Scored&) const = default;
};

class Search {
 public:
  Search(const TrainingStep& step, const ModuleCalls& calls, Bytes budget)
      : step_(step),
        graph_(step.forward()),
        calls_(calls),
        tree_(TreeOf(calls)),
        budget_(budget),
        simulator_(step) {}

  const ModuleTree& tree() const { return tree_; }
  bool is_spent() const { return steps_ >= kModuleSearchSteps; }

  // Returns the outermost wrapped call that each node is in, or -1.
  IdVector<NodeId, int32_t> RegionsOf(const Choice& choice) const {
    // Callers come before their calls, so the parent's `outermost` is known.
    std::vector<int32_t> outermost(calls_.calls.size(), -1);
    for (size_t i = 0; i < outermost.size(); ++i) {
      const int32_t parent = calls_.calls[i].parent;
      if (parent >= 0) outermost[i] = outermost[static_cast<size_t>(parent)];
      if (outermost[i] < 0 && choice[tree_.module_of_call[i]]) {
        outermost[i] = static_cast<int32_t>(i);
      }
    }
    IdVector<NodeId, int32_t> regions(graph_.nodes().size(), -1);
    for (const NodeId node : graph_.nodes().ids()) {
      const int32_t call = calls_.call_of[node];
      if (call >= 0) regions[node] = outermost[static_cast<size_t>(call)];
    }
    return regions;
  }

  Schedule ScheduleOf(const Choice& choice) const {
    return LowerCheckpoints(graph_, RenumberRegions(RegionsOf(choice)));
  }

  Score ScoreOf(const Choice& choice) {
    PollStop();
    const Schedule schedule = InFormOf(step_, ScheduleOf(choice));
    steps_ += static_cast<int64_t>(schedule.steps.size() + calls_.calls.size());
    const Simulation simulation = simulator_.Run(schedule).value();
    return {ExcessOf(simulation.peak), simulation.overhead, simulation.peak,
            std::count(choice.begin(), choice.end(), true)};
  }

  // Moves until a whole round over the modules brings no improvement.
  void Improve(Scored& best) {
    bool is_better = true;
    while (is_better) {
      is_better = false;
      for (size_t module = 0; module < best.choice.size() && !is_spent(); ++module) {
        for (Choice& moved : MovesOf(best.choice, module)) {
          is_better = Accept(std::move(moved), best) || is_better;
        }
      }
    }
  }

  // Adds or removes two modules, or swaps them. Returns whether that improved the choice.
  bool ImproveByPair(Scored& best) {
    for (size_t a = 0; a < best.choice.size(); ++a) {
      for (size_t b = 0; b < a && !is_spent(); ++b) {
        Choice moved = best.choice;
        moved[a] = !moved[a];
        moved[b] = !moved[b];
        if (Accept(std::move(moved), best)) return true;
      }
    }
    return false;
  }

 private:
  bool Accept(Choice moved, Scored& best) {
    const Score score = ScoreOf(moved);
    if (score >= best.score) return false;
    best = {score, std::move(moved)};
    return true;
  }

  int64_t ExcessOf(Bytes peak) const {
    const int64_t hundredth = std::max(budget_.count() / 100, int64_t{1});
    const int64_t above = std::max(peak - budget_, Bytes(0)).count();
    return above / hundredth + (above % hundredth == 0 ? 0 : 1);
  }

  // Renumbers regions below the node count, since there may be more calls than nodes.
  static IdVector<NodeId, int32_t> RenumberRegions(IdVector<NodeId, int32_t> regions) {
    std::map<int32_t, int32_t> numbers;
    for (int32_t& region : regions) {
      if (region < 0) continue;
      region = numbers.try_emplace(region, static_cast<int32_t>(numbers.size())).first->second;
    }
    return regions;
  }

  // Returns two moves: toggle the module; and toggle it while removing or adding its children
  // instead.
  std::vector<Choice> MovesOf(const Choice& choice, size_t module) const {
    std::vector<Choice> moves = {choice};
    moves.back()[module] = !choice[module];
    const std::vector<size_t>& children = tree_.modules[module].children;
    if (children.empty()) return moves;
    moves.push_back(moves.back());
    for (const size_t child : children) moves.back()[child] = choice[module];
    return moves;
  }

  const TrainingStep step_;
  const TensorGraph& graph_;
  const ModuleCalls& calls_;
  const ModuleTree tree_;
  const Bytes budget_;
  Simulator simulator_;
  int64_t steps_ = 0;
};

Bytes OutputBytes(const TensorGraph& graph, NodeId node) {
  Bytes sum;
  for (const TensorId output : graph.node(node).outputs) sum += graph.tensor(output).bytes;
  return sum;
}

// Returns, for each module, the share of its nodes' results that the plan recomputes, from 0 to 1.
std::vector<double> RecomputedShares(const TensorGraph& graph, const ModuleCalls& calls,
                                     const ModuleTree& tree, const Plan& plan) {
  std::vector<Bytes> all(tree.modules.size());
  std::vector<Bytes> recomputed(tree.modules.size());
  for (const NodeId node : graph.nodes().ids()) {
    const Bytes bytes = OutputBytes(graph, node);
    const bool is_recomputed = plan.decisions[node].recompute_count > 0;
    for (int32_t call = calls.call_of[node]; call >= 0; call = calls.call(call).parent) {
      const size_t module = tree.module_of_call[static_cast<size_t>(call)];
      all[module] += bytes;
      if (is_recomputed) recomputed[module] += bytes;
    }
  }
  std::vector<double> shares;
  for (size_t i = 0; i < all.size(); ++i) {
    const bool is_empty = all[i] == Bytes(0);
    shares.push_back(is_empty ? 0.0
                              : static_cast<double>(recomputed[i].count()) /
                                    static_cast<double>(all[i].count()));
  }
  return shares;
}

// Collects the best starts.
class Starts {
 public:
  explicit Starts(Search& search) : search_(search) {}

  void Consider(Choice choice) {
    Scored scored{search_.ScoreOf(choice), std::move(choice)};
    const auto place = std::lower_bound(best_.begin(), best_.end(), scored);
    if (place != best_.end() && *place == scored) return;
    best_.insert(place, std::move(scored));
    if (best_.size() > kImprovedStarts) best_.pop_back();
  }

  std::vector<Scored> Take() && { return std::move(best_); }

 private:
  Search& search_;
  std::vector<Scored> best_;  // Best first.
};

std::vector<Scored> FindStarts(Search& search, const std::vector<double>& recomputed_shares) {
  const std::vector<ModuleTree::Module>& modules = search.tree().modules;
  Starts starts(search);
  starts.Consider(Choice(modules.size(), false));
  const auto consider_where = [&](const auto& is_wrapped) {
    Choice choice(modules.size());
    for (size_t i = 0; i < choice.size(); ++i) choice[i] = is_wrapped(i);
    starts.Consider(std::move(choice));
  };
  for (const double least : kStartShares) {
    consider_where([&](size_t i) { return recomputed_shares[i] >= least; });
  }
  std::set<std::string_view> classes;
  for (const ModuleTree::Module& module : modules) classes.insert(module.class_name);
  for (const std::string_view name : classes) {
    if (search.is_spent()) break;
    consider_where([&](size_t i) { return modules[i].class_name == name; });
  }
  return std::move(starts).Take();
}

Choice FindChoice(Search& search, const std::vector<double>& recomputed_shares) {
  std::vector<Scored> found = FindStarts(search, recomputed_shares);
  for (Scored& each : found) search.Improve(each);
  Scored best = *std::min_element(found.begin(), found.end());
  while (search.ImproveByPair(best)) search.Improve(best);
  return best.choice;
}

// Returns the figures of the wrapped modules, computed from the forward runs after each node's
// first.
std::vector<WrappedModule> WrappedModules(const TensorGraph& graph, const ModuleTree& tree,
                                          const Choice& choice,
                                          const IdVector<NodeId, int32_t>& regions,
                                          const Schedule& schedule) {
  std::vector<WrappedModule> rows(tree.modules.size());
  std::vector<int64_t> runs(graph.nodes().size(), 0);
  const auto row_of = [&](NodeId node) -> WrappedModule& {
    return rows[tree.module_of_call[static_cast<size_t>(regions[node])]];
  };
  for (const Step& step : schedule.steps) {
    if (step.kind != StepKind::kForward || regions[step.node()] < 0) continue;
    WrappedModule& row = row_of(step.node());
    if (runs[static_cast<size_t>(step.index)]++ == 0) {
      ++row.node_count;
    } else {
      row.recomputed += OutputBytes(graph, step.node());
      row.overhead += graph.node(step.node()).forward_cost;
    }
  }
  std::vector<WrappedModule> wrapped;
  for (size_t i = 0; i < rows.size(); ++i) {
    if (!choice[i] || rows[i].node_count == 0) continue;  // Inside another wrapped module.
    rows[i].path = tree.modules[i].path;
    rows[i].class_name = tree.modules[i].class_name;
    rows[i].call_count = tree.modules[i].call_count;
    wrapped.push_back(std::move(rows[i]));
  }
  return wrapped;
}

}  // namespace

Result<ModulePlan> FindModulePlan(const TrainingStep& step, const ModuleCalls& modules,
                                  const Plan& plan) {
  const TensorGraph& graph = step.forward();
  if (modules.empty()) {
    return MakeError(ErrorCode::kUnsupported,
                     fmt::format("{} does not record its nodes' modules; export it with "
                                 "torch.onnx.export(dynamo=True)",
                                 plan.model.name));
  }
  ModulePlan found;
  found.budget = std::max(plan.figures.peak, plan.request.budget.in_bytes().value_or(Bytes(0)));
  Search search(step, modules, found.budget);
  const Choice choice = FindChoice(search, RecomputedShares(graph, modules, search.tree(), plan));
  const Score score = search.ScoreOf(choice);
  found.peak = score.peak;
  found.overhead = score.overhead;
  const IdVector<NodeId, int32_t> regions = search.RegionsOf(choice);
  found.modules = WrappedModules(graph, search.tree(), choice, regions, search.ScheduleOf(choice));
  return found;
}

}  // namespace ckplan
