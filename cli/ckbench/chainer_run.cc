#include "cli/ckbench/chainer_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

namespace ckplan {
namespace {

enum class ActionKind { kForward, kBackward, kForget, kForgetGradient };

// A line of the authors' schedule.
struct Action {
  ActionKind kind = ActionKind::kForward;
  size_t index = 0;          // A function; a variable for those that forget.
  std::vector<size_t> made;  // kBackward: the variables whose gradients it makes.
};

// Returns the functions in the order of the authors' program: the reverse of a depth-first search's
// postorder from one variable after another.
std::vector<size_t> OrderOf(const ChainerNetwork& network) {
  std::vector<std::vector<size_t>> readers(network.variables.size());
  std::vector<size_t> producer(network.variables.size());
  for (size_t f = 0; f < network.functions.size(); ++f) {
    producer[network.functions[f].output] = f;
    for (const size_t input : network.functions[f].inputs) readers[input].push_back(f);
  }
  std::vector<size_t> order;
  std::vector<bool> is_reached(network.variables.size());
  std::vector<std::pair<size_t, size_t>> path;  // A variable, and how many readers are done.
  for (size_t root = 0; root < network.variables.size(); ++root) {
    if (is_reached[root]) continue;
    is_reached[root] = true;
    path.emplace_back(root, 0);
    while (!path.empty()) {
      const size_t variable = path.back().first;
      const size_t done = path.back().second++;
      if (done < readers[variable].size()) {
        const size_t next = network.functions[readers[variable][done]].output;
        if (!is_reached[next]) path.emplace_back(next, 0);
        is_reached[next] = true;
        continue;
      }
      if (network.variables[variable].is_made) order.push_back(producer[variable]);
      path.pop_back();
    }
  }
  std::reverse(order.begin(), order.end());
  return order;
}

// Makes the schedule of mksch/DP.cpp, without its optimizer.
class ScheduleWriter {
 public:
  ScheduleWriter(const ChainerNetwork& network, const std::vector<int32_t>& segment_of)
      : network_(network),
        function_segment_(segment_of),
        order_(OrderOf(network)),
        segment_(network.variables.size(), kNone),
        first_predecessor_(network.variables.size(), kNone),
        held_for_(network.variables.size(), kNone),
        is_cached_(network.variables.size()),
        has_data_(network.variables.size()),
        has_gradient_(network.variables.size()),
        has_run_back_(network.functions.size()) {
    for (size_t f = 0; f < network.functions.size(); ++f) {
      segment_[network.functions[f].output] = segment_of[f];
    }
    for (const ChainerFunction& function : network.functions) {
      int32_t& first = first_predecessor_[function.output];
      for (const size_t input : function.inputs) {
        first = std::min(first, segment_[input]);
        if (segment_[input] < segment_[function.output]) is_cached_[input] = true;
      }
      for (const size_t input : function.inputs) {
        held_for_[input] = std::min(held_for_[input], first);
      }
    }
  }

  std::vector<Action> Write(int32_t segment_count) && {
    for (int32_t i = 0; i < segment_count; ++i) {
      RunForward(i);
      Forget(&has_data_, ActionKind::kForget, [&](size_t v) { return !is_cached_[v]; });
    }
    for (int32_t i = segment_count - 1; i >= 0; --i) {
      RunForward(i);
      for (auto f = order_.rbegin(); f != order_.rend(); ++f) RunBackward(*f, i);
      for (size_t v = 0; v < segment_.size(); ++v) {
        if (segment_[v] == i) has_gradient_[v] = true;
      }
      // What earlier segments still read stays: terms (iv) and (iii) of Eq. 2.
      Forget(&has_data_, ActionKind::kForget,
             [&](size_t v) { return segment_[v] >= i && held_for_[v] >= i; });
      Forget(&has_gradient_, ActionKind::kForgetGradient,
             [&](size_t v) { return first_predecessor_[v] >= i; });
    }
    return std::move(actions_);
  }

 private:
  static constexpr int32_t kNone = std::numeric_limits<int32_t>::max();

  template <typename Condition>
  void Forget(std::vector<bool>* has, ActionKind kind, const Condition& is_forgotten) {
    for (size_t v = 0; v < has->size(); ++v) {
      if (!(*has)[v] || !is_forgotten(v)) continue;
      actions_.push_back({kind, v, {}});
      (*has)[v] = false;
    }
  }

  void RunForward(int32_t segment) {
    for (const size_t f : order_) {
      const size_t output = network_.functions[f].output;
      if (function_segment_[f] != segment || has_data_[output]) continue;
      actions_.push_back({ActionKind::kForward, f, {}});
      has_data_[output] = true;
    }
  }

  // Makes the gradients of the function's inputs in the segment, and at its first step those of its
  // parameters. A result that its backward reads and a later segment released is made again.
  void RunBackward(size_t f, int32_t segment) {
    const ChainerFunction& function = network_.functions[f];
    std::vector<size_t> made;
    bool runs = false;
    for (const size_t v : function.gradients) {
      const bool is_made = network_.variables[v].is_made;
      if (is_made ? segment_[v] != segment : has_run_back_[f]) continue;
      made.push_back(v);
      runs |= is_made;
    }
    runs |= made.size() == function.gradients.size() && function_segment_[f] == segment;
    if (!runs) return;
    const std::vector<size_t>& reads = function.reads;
    const bool is_made_again =
        !has_data_[function.output] &&
        std::find(reads.begin(), reads.end(), function.output) != reads.end();
    if (is_made_again) actions_.push_back({ActionKind::kForward, f, {}});
    actions_.push_back({ActionKind::kBackward, f, std::move(made)});
    if (is_made_again) actions_.push_back({ActionKind::kForget, function.output, {}});
    has_run_back_[f] = true;
  }

  const ChainerNetwork& network_;
  const std::vector<int32_t>& function_segment_;
  const std::vector<size_t> order_;
  // By variable; kNone for inputs and parameters.
  std::vector<int32_t> segment_;
  std::vector<int32_t> first_predecessor_;  // The first segment of an input of its function.
  std::vector<int32_t> held_for_;           // The first segment whose backward needs it.
  std::vector<bool> is_cached_;
  std::vector<bool> has_data_;
  std::vector<bool> has_gradient_;
  std::vector<bool> has_run_back_;  // By function.
  std::vector<Action> actions_;
};

// Moves each release right after the last step that reads or makes what it releases, as the
// optimizer of mksch/DP.cpp does.
std::vector<Action> WithLiveness(const ChainerNetwork& network, std::vector<Action> actions) {
  std::vector<size_t> data_touched(network.variables.size());
  std::vector<size_t> gradient_touched(network.variables.size());
  std::vector<std::vector<Action>> steps;  // A step, and what is released after it.
  for (Action& action : actions) {
    if (action.kind == ActionKind::kForget) {
      steps[data_touched[action.index]].push_back(std::move(action));
      continue;
    }
    if (action.kind == ActionKind::kForgetGradient) {
      steps[gradient_touched[action.index]].push_back(std::move(action));
      continue;
    }
    const ChainerFunction& function = network.functions[action.index];
    const size_t now = steps.size();
    if (action.kind == ActionKind::kForward) {
      for (const size_t input : function.inputs) data_touched[input] = now;
      data_touched[function.output] = now;
    } else {
      for (const size_t read : function.reads) data_touched[read] = now;
      gradient_touched[function.output] = now;
      for (const size_t v : action.made) gradient_touched[v] = now;
    }
    steps.emplace_back().push_back(std::move(action));
  }
  std::vector<Action> moved;
  for (std::vector<Action>& step : steps) {
    std::move(step.begin(), step.end(), std::back_inserter(moved));
  }
  return moved;
}

// CuPy's pool: how much is in use, and the most so far.
struct Pool {
  Bytes used;
  Bytes peak;
};

// Memory of the pool, in use while an array refers to it.
class Block {
 public:
  Block(Bytes bytes, Pool* pool) : bytes_(bytes), pool_(pool) {
    pool_->used += bytes_;
    pool_->peak = std::max(pool_->peak, pool_->used);
  }
  ~Block() { pool_->used -= bytes_; }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

 private:
  const Bytes bytes_;
  Pool* const pool_;
};

using Array = std::shared_ptr<const Block>;

// Runs a schedule as scripts/run_schedule.py does.
class ChainerRunner {
 public:
  explicit ChainerRunner(const ChainerNetwork& network)
      : network_(network),
        data_(network.variables.size()),
        gradients_(network.variables.size()),
        held_(network.functions.size()),
        is_read_(network.variables.size()) {
    for (size_t v = 0; v < network.variables.size(); ++v) {
      if (!network.variables[v].is_made) data_[v] = New(v);
    }
    for (const ChainerFunction& function : network.functions) {
      for (const size_t input : function.inputs) is_read_[input] = true;
    }
  }

  Bytes Run(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      switch (action.kind) {
        case ActionKind::kForward:
          Forward(action.index);
          break;
        case ActionKind::kBackward:
          Backward(action);
          break;
        case ActionKind::kForget:
          data_[action.index].reset();
          break;
        case ActionKind::kForgetGradient:
          gradients_[action.index].reset();
          break;
      }
    }
    return pool_.peak;
  }

 private:
  Array New(size_t like) {
    constexpr int64_t kUnit = 512;  // Chainer's memory pool rounds up to this.
    const int64_t units = (network_.variables[like].bytes.count() + kUnit - 1) / kUnit;
    return std::make_shared<const Block>(Bytes(units * kUnit), &pool_);
  }

  void Forward(size_t f) {
    const ChainerFunction& function = network_.functions[f];
    const std::string_view kind = function.kind;
    held_[f].clear();  // The function's new object takes the place of the old one.
    if (kind == "GetItem" || kind == "Reshape") {
      data_[function.output] = data_[function.inputs.front()];
    } else {
      data_[function.output] = New(function.output);
    }
    if (kind == "LocalResponseNormalization") {
      held_[f] = {data_[function.output], New(function.output)};
    } else if (kind == "Dropout") {
      held_[f] = {New(function.output)};
    } else if (kind == "SoftmaxCrossEntropy") {
      held_[f] = {New(function.inputs.front())};
    }
    if (!is_read_[function.output]) gradients_[function.output] = New(function.output);
  }

  void Backward(const Action& action) {
    const ChainerFunction& function = network_.functions[action.index];
    const std::string_view kind = function.kind;
    const bool is_view = kind == "Add" || kind == "Concat" || kind == "Reshape";
    Array temporary;
    if (kind == "LocalResponseNormalization") temporary = New(function.output);
    std::vector<std::pair<size_t, Array>> made;
    for (const size_t v : action.made) {
      const bool is_label = kind == "SoftmaxCrossEntropy" && !network_.variables[v].is_made;
      if (!is_label) made.emplace_back(v, is_view ? gradients_[function.output] : New(v));
    }
    temporary.reset();
    std::vector<Array> sums;
    for (const auto& [v, array] : made) sums.push_back(gradients_[v] ? New(v) : array);
    for (size_t i = 0; i < made.size(); ++i) gradients_[made[i].first] = std::move(sums[i]);
  }

  Pool pool_;  // Outlives the arrays.
  const ChainerNetwork& network_;
  std::vector<Array> data_;
  std::vector<Array> gradients_;
  std::vector<std::vector<Array>> held_;  // By the object of each function.
  std::vector<bool> is_read_;
};

}  // namespace

Bytes ChainerPeak(const ChainerNetwork& network, const std::vector<int32_t>& segment_of,
                  int32_t segment_count, bool has_liveness) {
  std::vector<Action> actions = ScheduleWriter(network, segment_of).Write(segment_count);
  if (has_liveness) actions = WithLiveness(network, std::move(actions));
  return ChainerRunner(network).Run(actions);
}

Result<Bytes> ChainerPeak(const ChainerNetwork& network, std::string_view schedule,
                          const std::string& where) {
  std::vector<Action> actions;
  const size_t count = network.functions.size();
  int64_t number = 0;
  std::istringstream lines{std::string(schedule)};
  for (std::string line; std::getline(lines, line);) {
    ++number;
    std::istringstream words(line);
    std::string verb;
    std::string side;
    Action action;
    bool is_good = words >> verb && words >> action.index;
    if (verb == "compute") {
      is_good = is_good && action.index < 2 * count;
      const bool is_backward = is_good && action.index >= count;
      if (is_backward) {
        action.kind = ActionKind::kBackward;
        action.index -= count;
        const std::vector<size_t>& gradients = network.functions[action.index].gradients;
        for (size_t input = 0; words >> input;) {
          is_good = is_good && input < gradients.size();
          if (is_good) action.made.push_back(gradients[input]);
        }
      }
    } else {
      is_good = is_good && verb == "forget" && action.index < network.variables.size() &&
                words >> side && (side == "forward" || side == "backward");
      action.kind = side == "forward" ? ActionKind::kForget : ActionKind::kForgetGradient;
    }
    if (!is_good) {
      return MakeError(ErrorCode::kInvalidInput,
                       fmt::format("{}: line {}: \"{}\" is no line of a schedule for this network",
                                   where, number, line));
    }
    actions.push_back(std::move(action));
  }
  return ChainerRunner(network).Run(actions);
}

}  // namespace ckplan
