#include "lib/executor/core/constant_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "lib/base/check.h"
#include "lib/base/units.h"
#include "lib/executor/core/loss.h"

namespace ckplan {

int64_t BufferAlignment(const Backend& backend) {
  constexpr int64_t kCacheLine = 64;
  return std::max(kCacheLine, backend.alignment());  // Both powers of two.
}

int64_t AlignedBytes(int64_t bytes, const Backend& backend) {
  const int64_t alignment = BufferAlignment(backend);
  return (bytes + alignment - 1) / alignment * alignment;
}

ConstantGradients::ConstantGradients(const Backend& backend, const StepGraph& step,
                                     const std::vector<std::unique_ptr<PreparedOp>>& constant_ops)
    : backend_(backend),
      step_(step),
      contributions_(step.constants.size(), 0),
      scratch_(step.constants.size(), 0) {
  CountContributions();
  SumScratch(constant_ops);
}

// Visits operators from last to first, so that all contributions to an operator's outputs are
// known.
void ConstantGradients::CountContributions() {
  const auto add = [this](ConstantId constant, int64_t count) {
    int64_t& sum = contributions_[step_.constants[constant].root];
    sum = std::min(kCallsCap, sum + count);
  };
  for (const StepNode& node : step_.nodes) {
    for (const size_t position : node.trained_positions) add(node.inputs[position].constant, 1);
  }
  for (size_t at = step_.constant_ops.size(); at-- > 0;) {
    const ConstantOp& op = step_.constant_ops[at];
    int64_t arriving = 0;
    for (const ConstantId output : op.outputs) {
      if (!output.is_none()) arriving = std::min(kCallsCap, arriving + contributions_[output]);
    }
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.spec.inputs[i].has_gradient) continue;
      add(op.inputs[i], arriving);
      calls_ = std::min(kCallsCap, calls_ + arriving);
    }
  }
}

// Starts at the leaves, so that the scratch sizes of an operator's inputs are known.
void ConstantGradients::SumScratch(const std::vector<std::unique_ptr<PreparedOp>>& constant_ops) {
  const auto own = [this](ConstantId id) {
    return AlignedBytes(step_.constants[id].operand.bytes(), backend_);
  };
  for (const ConstantId id : step_.constants.ids()) {
    if (step_.constants[id].producer < 0) scratch_[id] = own(id);
  }
  for (size_t at = 0; at < step_.constant_ops.size(); ++at) {
    const ConstantOp& op = step_.constant_ops[at];
    int64_t below = 0;
    for (size_t i = 0; i < op.inputs.size(); ++i) {
      if (!op.spec.inputs[i].has_gradient) continue;
      below = std::max(below, scratch_[step_.constants[op.inputs[i]].root]);
    }
    below += AlignedBytes(constant_ops[at]->workspace().backward, backend_);
    for (const ConstantId output : op.outputs) {
      if (!output.is_none()) scratch_[output] = own(output) + below;
    }
  }
}

bool ConstantGradients::IsDirect(ConstantId constant) const {
  const ConstantId root = step_.constants[constant].root;
  return step_.constants[root].producer < 0 && contributions_[root] == 1;
}

int64_t ConstantGradients::ScratchBytes(const StepNode& node) const {
  int64_t largest = 0;
  for (const size_t position : node.trained_positions) {
    const ConstantId constant = node.inputs[position].constant;
    if (IsDirect(constant)) continue;
    largest = std::max(largest, scratch_[step_.constants[constant].root]);
  }
  return largest;
}

namespace {

template <typename T>
void Put(std::vector<std::byte>& bytes, size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

void PutNumber(std::vector<std::byte>& bytes, ElementType type, size_t index, double real,
               int64_t integer) {
  switch (type) {
    case ElementType::kFloat32:
      return Put(bytes, index, static_cast<float>(real));
    case ElementType::kBFloat16:
      CKPLAN_CHECK(false, "values that don't depend on the batch are float32");
      return;
    case ElementType::kInt32:
      return Put(bytes, index, static_cast<int32_t>(integer));
    case ElementType::kInt64:
      return Put(bytes, index, integer);
    case ElementType::kBool:
      return Put(bytes, index, static_cast<uint8_t>(integer != 0));
  }
}

std::vector<std::byte> KnownBytes(const Operand& operand) {
  std::vector<std::byte> bytes(static_cast<size_t>(operand.bytes()));
  const KnownValue& known = *operand.known;
  for (size_t i = 0; i < static_cast<size_t>(operand.elements()); ++i) {
    PutNumber(bytes, operand.type, i, i < known.reals.size() ? known.reals[i] : 0,
              i < known.ints.size() ? known.ints[i] : 0);
  }
  return bytes;
}

std::vector<std::byte> FilledBytes(const Operand& operand, double fill) {
  std::vector<std::byte> bytes(static_cast<size_t>(operand.bytes()));
  for (size_t i = 0; i < static_cast<size_t>(operand.elements()); ++i) {
    PutNumber(bytes, operand.type, i, fill, static_cast<int64_t>(fill));
  }
  return bytes;
}

bool HasGradient(const StepGraph& step, const ConstantOp& op) {
  return std::any_of(op.outputs.begin(), op.outputs.end(), [&](ConstantId id) {
    return !id.is_none() && step.constants[id].has_gradient;
  });
}

}  // namespace

ConstantStore::ConstantStore(Backend& backend, const StepGraph& step,
                             const StepOperators& operators, uint64_t seed)
    : backend_(&backend),
      step_(&step),
      operators_(&operators),
      seed_(seed),
      gradients_of_(backend, step, operators.constant_ops),
      memory_(step.constants.size(), nullptr),
      gradients_(step.constants.size(), nullptr),
      statistics_(step.constant_ops.size(), nullptr),
      inputs_(step.graph.tensors().size(), nullptr) {}

ConstantStore::ConstantStore(ConstantStore&& other) noexcept
    : backend_(other.backend_),
      step_(other.step_),
      operators_(other.operators_),
      seed_(other.seed_),
      updates_(other.updates_),
      gradients_of_(std::move(other.gradients_of_)),
      memory_(std::move(other.memory_)),
      gradients_(std::move(other.gradients_)),
      statistics_(std::move(other.statistics_)),
      inputs_(std::move(other.inputs_)),
      trained_(std::move(other.trained_)),
      usage_(other.usage_) {
  other.memory_ = {};
  other.gradients_ = {};
  other.statistics_ = {};
  other.inputs_ = {};
}

ConstantStore::~ConstantStore() {
  for (void* memory : memory_) backend_->Release(memory);
  for (void* memory : gradients_) backend_->Release(memory);
  for (void* memory : statistics_) backend_->Release(memory);
  for (void* memory : inputs_) backend_->Release(memory);
}

Result<ConstantStore> ConstantStore::Create(Backend& backend, const StepGraph& step,
                                            const StepOperators& operators,
                                            const WeightFile& weights, uint64_t seed) {
  ConstantStore store(backend, step, operators, seed);
  CKPLAN_RETURN_IF_ERROR(store.CheckMemory());
  CKPLAN_RETURN_IF_ERROR(store.FillLeaves(weights));
  CKPLAN_RETURN_IF_ERROR(store.Evaluate(false));
  store.DropUnread();
  CKPLAN_RETURN_IF_ERROR(store.AllocateGradients());
  CKPLAN_RETURN_IF_ERROR(store.FillInputs());
  return store;
}

// The store's peak is either right after Evaluate, with all constants, or during the step, with
// leaves, gradients and the batch. The step's other memory is not known yet.
Result<Done> ConstantStore::CheckMemory() const {
  int64_t constants = 0;
  int64_t kept = 0;
  const auto add = [](int64_t& sum, const Operand& operand) {
    sum = CheckedAdd(sum, operand.bytes()).value_or(std::numeric_limits<int64_t>::max());
  };
  for (const ConstantId id : step_->constants.ids()) {
    const StepConstant& constant = step_->constants[id];
    if (constant.root == id) add(constants, constant.operand);
    if (constant.root == id && constant.is_leaf_in_file) add(kept, constant.operand);
    if (constant.is_trained) add(kept, constant.operand);
  }
  for (const StepInput& input : step_->inputs) add(kept, input.operand);
  const int64_t needed = std::max(constants, kept);
  const int64_t left = backend_->AvailableBytes();
  if (needed <= left) return Done{};
  return MakeError(
      ErrorCode::kInfeasible,
      fmt::format("parameters, their gradients, other constants and the batch need {} bytes of "
                  "memory, and the {} backend has {} left; use a smaller batch or model",
                  needed, backend_->name(), left));
}

Result<void*> ConstantStore::Allocate(int64_t bytes, Bytes& counted) {
  counted += Bytes(bytes);
  return backend_->Allocate(bytes);
}

Result<Done> ConstantStore::FillLeaves(const WeightFile& weights) {
  for (const ConstantId id : step_->constants.ids()) {
    const StepConstant& constant = step_->constants[id];
    if (constant.root != id || constant.producer >= 0) continue;
    const bool is_parameter =
        constant.is_trained ||
        (constant.is_leaf_in_file && constant.operand.type == ElementType::kFloat32);
    CKPLAN_ASSIGN_OR_RETURN(
        memory_[id],
        Allocate(constant.operand.bytes(), is_parameter ? usage_.parameters : usage_.derived));
    std::vector<std::byte> bytes;
    // A trained leaf filled with a single number stands for a weight that an old exporter left out,
    // so it gets random contents instead.
    if (constant.fill && !constant.is_trained) {
      bytes = FilledBytes(constant.operand, *constant.fill);
    } else if (constant.operand.known && !constant.fill) {
      bytes = KnownBytes(constant.operand);
      if (is_parameter) ++usage_.leaves_from_file;
    } else {
      CKPLAN_ASSIGN_OR_RETURN(bytes, ReadOrGenerate(constant, weights));
    }
    backend_->Upload(memory_[id], bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  return Done{};
}

Result<std::vector<std::byte>> ConstantStore::ReadOrGenerate(const StepConstant& constant,
                                                             const WeightFile& weights) {
  CKPLAN_ASSIGN_OR_RETURN(WeightContents read, weights.Read(constant.name, constant.operand));
  if (read.bytes) {
    ++usage_.leaves_from_file;
    return *std::move(read.bytes);
  }
  ++usage_.leaves_from_seed;
  ++usage_.absent[static_cast<size_t>(read.absent)];
  return SeededConstant(seed_, constant);
}

// Runs the constant operators in order, even those with known results: they are few and small.
Result<Done> ConstantStore::Evaluate(bool only_trained) {
  for (size_t i = 0; i < step_->constant_ops.size(); ++i) {
    if (only_trained && !HasGradient(*step_, step_->constant_ops[i])) continue;
    CKPLAN_RETURN_IF_ERROR(Evaluate(i));
  }
  return Done{};
}

Result<Done> ConstantStore::Evaluate(size_t index) {
  const ConstantOp& op = step_->constant_ops[index];
  PreparedOp& prepared = *operators_->constant_ops[index];
  std::vector<const void*> inputs;
  for (const ConstantId input : op.inputs) inputs.push_back(constant(input));
  std::vector<void*> outputs;
  for (const ConstantId output : op.outputs) {
    if (!output.is_none() && memory_[output] == nullptr) {
      CKPLAN_ASSIGN_OR_RETURN(memory_[output],
                              Allocate(step_->constants[output].operand.bytes(), usage_.derived));
    }
    outputs.push_back(output.is_none() ? nullptr : memory_[output]);
  }
  void*& statistic = statistics_[index];
  if (op.spec.statistic_bytes > 0 && statistic == nullptr) {
    CKPLAN_ASSIGN_OR_RETURN(statistic, Allocate(op.spec.statistic_bytes, usage_.derived));
  }
  CKPLAN_ASSIGN_OR_RETURN(const DeviceBlock workspace,
                          DeviceBlock::Allocate(*backend_, Bytes(prepared.workspace().forward)));
  prepared.Forward({inputs, outputs, statistic, workspace.get(), SeedOf(op)});
  backend_->Synchronize();
  return Done{};
}

// Backward gets the same seed as its forward, because both run between the same two updates.
uint64_t ConstantStore::SeedOf(const ConstantOp& op) const {
  return SeedFor(seed_ + updates_, op.spec.name);
}

// Releases constants that are only read to compute other constants, unless a gradient passes
// through them.
void ConstantStore::DropUnread() {
  IdVector<ConstantId, char> is_read(step_->constants.size(), 0);
  const auto read = [&](ConstantId id) {
    if (!id.is_none()) is_read[step_->constants[id].root] = 1;
  };
  for (const StepNode& node : step_->nodes) {
    for (const Binding& input : node.inputs) read(input.constant);
  }
  for (const ConstantOp& op : step_->constant_ops) {
    if (!HasGradient(*step_, op)) continue;
    for (const ConstantId id : op.inputs) read(id);
    for (const ConstantId id : op.outputs) read(id);
  }
  for (const ConstantId id : memory_.ids()) {
    const StepConstant& constant = step_->constants[id];
    if (is_read[id] != 0 || memory_[id] == nullptr || constant.is_leaf_in_file) continue;
    backend_->Release(memory_[id]);
    memory_[id] = nullptr;
    usage_.derived -= Bytes(constant.operand.bytes());
  }
}

Result<Done> ConstantStore::AllocateGradients() {
  for (const ConstantId id : step_->constants.ids()) {
    if (!step_->constants[id].is_trained) continue;
    trained_.push_back(id);
    CKPLAN_ASSIGN_OR_RETURN(
        gradients_[id], Allocate(step_->constants[id].operand.bytes(), usage_.parameter_gradients));
  }
  ClearGradients();
  return Done{};
}

Result<Done> ConstantStore::FillInputs() {
  for (const StepInput& input : step_->inputs) {
    CKPLAN_ASSIGN_OR_RETURN(inputs_[input.tensor], Allocate(input.operand.bytes(), usage_.inputs));
    const std::vector<std::byte> bytes = SeededInput(seed_, input);
    backend_->Upload(inputs_[input.tensor], bytes.data(), static_cast<int64_t>(bytes.size()));
  }
  return Done{};
}

const void* ConstantStore::constant(ConstantId id) const {
  return id.is_none() ? nullptr : memory_[step_->constants[id].root];
}

const void* ConstantStore::input(TensorId tensor) const { return inputs_[tensor]; }

const void* ConstantStore::gradient(ConstantId leaf) const { return gradients_[leaf]; }

void ConstantStore::ClearGradients() {
  for (const ConstantId id : trained_) {
    backend_->Zero(gradients_[id], step_->constants[id].operand.bytes());
  }
}

void ConstantStore::BackwardConstant(const StepNode& node, PreparedOp& op, const BackwardCall& call,
                                     size_t position, void* scratch) {
  const ConstantId constant = node.inputs[position].constant;
  const ConstantId root = step_->constants[constant].root;
  if (gradients_of_.IsDirect(constant)) {
    return op.BackwardInput(call, position, gradients_[root]);
  }
  op.BackwardInput(call, position, scratch);
  PropagateGradient(root, static_cast<char*>(scratch));
}

// Propagates the gradient of `root`, stored at `gradient`, to the leaves. The memory after that
// gradient is scratch. Iterative because chains may be long.
void ConstantStore::PropagateGradient(ConstantId root, char* gradient) {
  struct Visit {
    ConstantId root;
    char* gradient = nullptr;
    size_t next_input = 0;
  };
  std::vector<Visit> path = {{root, gradient}};
  while (!path.empty()) {
    Visit& visit = path.back();
    const StepConstant& constant = step_->constants[visit.root];
    if (constant.producer < 0) {
      backend_->AddScaled(gradients_[visit.root], visit.gradient, ElementType::kFloat32, 1,
                          constant.operand.elements());
      path.pop_back();
      continue;
    }
    const ConstantOp& op = step_->constant_ops[static_cast<size_t>(constant.producer)];
    while (visit.next_input < op.inputs.size() && !op.spec.inputs[visit.next_input].has_gradient) {
      ++visit.next_input;
    }
    if (visit.next_input == op.inputs.size()) {
      path.pop_back();
      continue;
    }
    const size_t position = visit.next_input++;
    char* const next = PropagateThrough(visit.root, visit.gradient, position);
    path.push_back({step_->constants[op.inputs[position]].root, next});
  }
}

// Computes the gradient of one input of the operator that computes `root`, in the scratch memory
// after the gradient of `root`. Returns its address.
char* ConstantStore::PropagateThrough(ConstantId root, char* gradient, size_t position) {
  const StepConstant& constant = step_->constants[root];
  const auto at = static_cast<size_t>(constant.producer);
  const ConstantOp& op = step_->constant_ops[at];
  std::vector<const void*> inputs;
  std::vector<const void*> outputs;
  std::vector<const void*> output_gradients;
  for (const ConstantId id : op.inputs) inputs.push_back(this->constant(id));
  for (const ConstantId id : op.outputs) {
    outputs.push_back(this->constant(id));
    output_gradients.push_back(id == root ? gradient : nullptr);
  }
  PreparedOp& producer = *operators_->constant_ops[at];
  char* const workspace = gradient + AlignedBytes(constant.operand.bytes(), *backend_);
  char* const next = workspace + AlignedBytes(producer.workspace().backward, *backend_);
  const BackwardCall call{inputs,          outputs,   output_gradients,
                          statistics_[at], workspace, SeedOf(op)};
  producer.BackwardInput(call, position, next);
  return next;
}

std::vector<float> ConstantStore::DownloadGradient(ConstantId leaf) const {
  const Operand& operand = step_->constants[leaf].operand;
  std::vector<float> gradient(static_cast<size_t>(operand.elements()));
  backend_->Download(gradient.data(), gradients_[leaf], operand.bytes());
  return gradient;
}

Result<Done> ConstantStore::Descend(float rate) {
  for (const ConstantId id : trained_) {
    backend_->AddScaled(memory_[id], gradients_[id], ElementType::kFloat32, -rate,
                        step_->constants[id].operand.elements());
  }
  ++updates_;
  return Evaluate(true);
}

}  // namespace ckplan
