#include "lib/files/input/size_reader.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "lib/base/stop.h"
#include "lib/planning/planner/one_device.h"
#include "lib/problem/cost/cost_model.h"

namespace ckplan {
namespace {

constexpr size_t kForPolynomial = 3;  // Readings that a quadratic polynomial needs.
constexpr size_t kMostInVain = 16;    // Readings without formulas.

int64_t* SizeIn(PlanRequest* request, const std::string& dim) {
  return dim.empty() ? &request->batch : &request->dims[dim];
}

// Calls `use` with a reference to each number that may depend on the size, always in the same
// order.
template <typename Use>
void ForEachNumber(WholeModel* model, TensorGraphParts* parts, const Use& use) {
  const auto use_bytes = [&use](Bytes& bytes) {
    int64_t count = bytes.count();
    use(count);
    bytes = Bytes(count);
  };
  for (auto& [name, size] : model->source.request.dims) use(size);
  use_bytes(model->source.buffers);
  for (Tensor& tensor : parts->tensors) use_bytes(tensor.bytes);
  for (Node& node : parts->nodes) {
    use_bytes(node.forward_workspace);
    use_bytes(node.backward_workspace);
    use_bytes(node.parameter_gradients);
  }
  use_bytes(parts->parameters);
  use_bytes(parts->parameter_gradients);
  use_bytes(*parts->optimized);
  use_bytes(parts->unsharded);
  for (OptimizedTensors& tensors : parts->optimized_tensors) use(tensors.elements);
  for (Parameter& parameter : model->parameters) {
    use_bytes(parameter.bytes);
    use(parameter.elements);
    use(parameter.rows);
  }
  for (OpWork& work : model->works) {
    use(work.forward_flops);
    use(work.backward_flops);
    use_bytes(work.forward_traffic);
    use_bytes(work.backward_traffic);
  }
}

// Costs above 0 become 1, until SetCosts.
void RemoveCosts(TensorGraphParts* parts) {
  for (Node& node : parts->nodes) {
    node.forward_cost = std::min(node.forward_cost, Cost(1));
    node.backward_cost = std::min(node.backward_cost, Cost(1));
  }
}

void SetCosts(const WholeModel& model, TensorGraphParts* parts) {
  for (const NodeId id : parts->nodes.ids()) {
    const OpCost cost = CostOf(model.cost, model.works[static_cast<size_t>(id.index())]);
    Node& node = parts->nodes[id];
    node.forward_cost = cost.forward;
    if (node.backward_cost > Cost(0)) node.backward_cost = cost.backward;
  }
}

// Compares what planning reads of models without numbers.
bool IsSameStructure(const WholeModel& a, const WholeModel& b) {
  return a.works == b.works && a.parameters == b.parameters &&
         a.source.warnings == b.source.warnings;
}

}  // namespace

void SizeReader::Learn(int64_t size, WholeModel model) {
  if (model.works.size() != model.source.graph.nodes().size()) return;  // Measured costs.
  TensorGraphParts parts = PartsOf(model.source.graph);
  RemoveCosts(&parts);
  Reading reading{size, {}};
  ForEachNumber(&model, &parts,
                [&](int64_t& number) { reading.numbers.push_back(std::exchange(number, 0)); });
  if (!structure_ || !(parts == parts_) || !IsSameStructure(model, *structure_)) {
    readings_.clear();
    parts_ = std::move(parts);
    structure_ = std::move(model);
    Source& source = structure_->source;
    source.graph = TensorGraph::Create({}).value();
    source.roles.clear();  // Like the next two, no part of the step, and slow to copy.
    source.absent_values.clear();
    source.restored.clear();
  }
  const auto place = std::find_if(readings_.begin(), readings_.end(),
                                  [size](const Reading& one) { return one.size >= size; });
  if (place != readings_.end() && place->size == size) return;
  readings_.insert(place, std::move(reading));
  FindFormulas();
  is_irregular_ = formulas_.empty() && readings_.size() >= kMostInVain;
}

// Ignores the smallest sizes if there are no formulas for them: a batch of 1 is broadcast.
void SizeReader::FindFormulas() {
  formulas_.clear();
  for (size_t first = 0; formulas_.empty() && first + kForPolynomial < readings_.size(); ++first) {
    if (auto found = FormulasFrom(first)) formulas_ = *std::move(found);
    smallest_ = readings_[first].size;
  }
}

std::optional<std::vector<SizeReader::Formula>> SizeReader::FormulasFrom(size_t first) const {
  std::vector<Formula> found;
  for (size_t i = 0; i < readings_.front().numbers.size(); ++i) {
    const std::optional<Formula> formula = FormulaOf(i, first);
    if (!formula) return std::nullopt;
    found.push_back(*formula);
  }
  return found;
}

// Returns nothing unless one formula gives the number in all readings from the first on.
std::optional<SizeReader::Formula> SizeReader::FormulaOf(size_t number, size_t first) const {
  const auto low = PolynomialFrom(first, number);
  const auto high = PolynomialFrom(readings_.size() - kForPolynomial, number);
  if (!low || !high) return std::nullopt;
  // Three readings confirm a line, but not a parabola.
  if (!(*low == *high) && (low->c != 0 || high->c != 0)) return std::nullopt;
  const auto begin = readings_.begin() + static_cast<std::ptrdiff_t>(first);
  for (const bool is_least : {true, false}) {
    const Formula formula = {*low, *high, is_least};
    if (std::all_of(begin, readings_.end(), [&](const Reading& reading) {
          return ValueAt(reading.size, formula) == reading.numbers[number];
        })) {
      return formula;
    }
  }
  return std::nullopt;
}

// Returns the polynomial through three readings; nothing if its coefficients are no integers.
std::optional<SizeReader::Polynomial> SizeReader::PolynomialFrom(size_t reading,
                                                                 size_t number) const {
  const auto& [x0, numbers0] = readings_[reading];
  const auto& [x1, numbers1] = readings_[reading + 1];
  const auto& [x2, numbers2] = readings_[reading + 2];
  const int64_t y0 = numbers0[number];
  const int64_t y1 = numbers1[number];
  const int64_t y2 = numbers2[number];
  if (y0 == y1 && y1 == y2) return Polynomial{y0, 0, 0};
  if ((y1 - y0) % (x1 - x0) != 0 || (y2 - y1) % (x2 - x1) != 0) return std::nullopt;
  const int64_t slope = (y1 - y0) / (x1 - x0);
  const int64_t change = (y2 - y1) / (x2 - x1) - slope;
  if (change % (x2 - x0) != 0) return std::nullopt;
  const int64_t c = change / (x2 - x0);
  int64_t part = 0;
  Polynomial found{y0, slope, c};
  if (__builtin_mul_overflow(c, x0 + x1, &part)) return std::nullopt;
  if (__builtin_sub_overflow(found.b, part, &found.b)) return std::nullopt;
  // At x0, all but `a` is (b + c x0) x0.
  if (__builtin_mul_overflow(c, x0, &part)) return std::nullopt;
  if (__builtin_add_overflow(found.b, part, &part)) return std::nullopt;
  if (__builtin_mul_overflow(part, x0, &part)) return std::nullopt;
  if (__builtin_sub_overflow(y0, part, &found.a)) return std::nullopt;
  return found;
}

// Returns nothing if the value is negative or too large.
std::optional<int64_t> SizeReader::ValueAt(int64_t size, const Formula& formula) {
  const auto value_of = [size](const Polynomial& polynomial) -> std::optional<int64_t> {
    int64_t value = 0;
    if (__builtin_mul_overflow(polynomial.c, size, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, polynomial.b, &value)) return std::nullopt;
    if (__builtin_mul_overflow(value, size, &value)) return std::nullopt;
    if (__builtin_add_overflow(value, polynomial.a, &value)) return std::nullopt;
    return value;
  };
  const std::optional<int64_t> low = value_of(formula.low);
  const std::optional<int64_t> high = value_of(formula.high);
  if (!low || !high) return std::nullopt;
  const int64_t value = formula.is_least ? std::min(*low, *high) : std::max(*low, *high);
  return value < 0 ? std::nullopt : std::optional(value);
}

// A kink may lie beyond the sizes that were read.
bool SizeReader::CanDerive(int64_t size) const {
  if (formulas_.empty() || is_irregular_) return false;
  const int64_t last = readings_.back().size;
  return size >= smallest_ && size <= last + last / 4;
}

std::optional<WholeModel> SizeReader::Derive(int64_t size) const {
  WholeModel model = *structure_;
  TensorGraphParts parts = parts_;
  size_t next = 0;
  bool is_valid = true;
  ForEachNumber(&model, &parts, [&](int64_t& number) {
    const std::optional<int64_t> value = ValueAt(size, formulas_[next++]);
    is_valid = is_valid && value.has_value();
    if (value) number = *value;
  });
  if (!is_valid) return std::nullopt;
  SetCosts(model, &parts);
  Result<TensorGraph> graph = TensorGraph::Create(std::move(parts));
  if (!graph.ok()) return std::nullopt;
  model.source.graph = *std::move(graph);
  model.source.is_derived = true;
  return model;
}

Result<Source> SizeReader::Read(const PlanRequest& request, const std::string& dim) {
  CKPLAN_RETURN_IF_ERROR(CheckDeviceRequest(request));
  PlanRequest other = request;
  const int64_t size = std::exchange(*SizeIn(&other, dim), 0);
  if (dim != dim_ || !(other == request_)) {
    *this = SizeReader(path_);
    request_ = std::move(other);
    dim_ = dim;
  }
  return CatchStop([&]() -> Result<Source> {
    if (CanDerive(size)) {
      if (std::optional<WholeModel> derived = Derive(size)) {
        if (dim.empty()) derived->source.request.batch = size;
        return SourceOf(*std::move(derived), request);
      }
    }
    Result<WholeModel> model = LoadWholeModel(path_, request);
    if (!model.ok()) {
      is_irregular_ = true;
      return std::move(model).error();
    }
    if (!is_irregular_) Learn(size, *model);
    return SourceOf(*std::move(model), request);
  });
}

ReadAtSize SizeReaderOf(std::string path) {
  const auto reader = std::make_shared<SizeReader>(std::move(path));
  return [reader](const PlanRequest& request, const std::string& dim) {
    return reader->Read(request, dim);
  };
}

}  // namespace ckplan
