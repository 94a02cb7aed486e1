#include "cli/common/request_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>

#include "cli/common/memory_limit.h"
#include "cli/common/request_values.h"
#include "cli/common/size_arg.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_decisions.h"
#include "lib/files/input/load_source.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/registry.h"
#include "lib/planning/planner/source.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/problem/graph/tensor_graph.h"

namespace ckplan {
namespace {

using Group = RequestFlags::Group;

constexpr int64_t kMaxAlignment = int64_t{1} << 30;
constexpr const char* kNoRestore = "--no-restore";

struct FlagRow {
  std::string_view field;
  Group group;
  std::string_view flags;
  // Placeholder for the value in help. Empty if the flag takes a fixed choice of words, or no
  // value.
  std::string_view form;
  std::string_view help;
  BudgetForms budget_forms = {};
};

// The rows are in the order of help pages.
constexpr std::array kRows = {
    FlagRow{"algorithm", Group::kAlgorithm, "-a,--algo", "NAME",
            "algorithm (default best); see `ckplan algos`"},
    FlagRow{"decisions", Group::kAlgorithm, "--decisions", "FILE",
            "with --algo given: what to keep, or a full order, as JSON or a plan"},
    FlagRow{"effort", Group::kPlanning, "--effort", "",
            "how hard best searches: an amount of work, not of time"},
    FlagRow{"order", Group::kPlanning, "--order", "",
            "for best and given: use the model's order of operations, or any order"},
    FlagRow{"memory", Group::kPlanning, "--memory", "SIZE|DEVICE",
            "limit on everything that training needs on the device: 8GiB, rtx4090"},
    FlagRow{
        "reserve", Group::kPlanning, "--reserve", "SIZE",
        "with --memory: set this much aside, instead of the estimate for CUDA and the allocator"},
    FlagRow{"budget",
            Group::kPlanning,
            "-b,--budget",
            "SIZE|P%|WORD",
            "limit on the peak: 16GiB, 60% of the keep-all peak, min, balanced",
            {.percent = true, .min = true, .balanced = true}},
    FlagRow{"total_budget",
            Group::kPlanning,
            "--budget-total",
            "SIZE|P%|balanced",
            "limit on the peak plus parameters, optimizer state and inputs",
            {.percent = true, .min = false, .balanced = true}},
    FlagRow{"added_time", Group::kPlanning, "--added-time", "P%",
            "save as much memory as possible while slowing a step by at most P%: 10%"},
    FlagRow{"paper_budget",
            Group::kPlanning,
            "--paper-budget",
            "SIZE|min",
            "limit on the objective of the algorithm's paper",
            {.percent = false, .min = true}},
    FlagRow{"keep", Group::kConstraints, "--keep", "NAME|@FILE",
            "tensors that must be kept, never run again: 'layer1*', op:Softmax"},
    FlagRow{"recompute", Group::kConstraints, "--recompute", "NAME|@FILE",
            "tensors that must be recomputed: op:Relu, '!layer4*'"},
    FlagRow{"never_rerun", Group::kConstraints, "--never-rerun", "NAME|@FILE",
            "operations that must not run twice: op:TopK"},
    FlagRow{"offload", Group::kConstraints, "--offload", "LINK[:OUT[/IN]]",
            "offload values to the host over a link, GB/s: pcie4, pcie5:50/50, c2c"},
    FlagRow{"host_memory", Group::kConstraints, "--host-memory", "SIZE",
            "limit on host memory for offloaded values: 64GiB"},
    FlagRow{"never_offload", Group::kConstraints, "--never-offload", "NAME|@FILE",
            "tensors that stay on the device: op:Softmax, 'layer1*'"},
    FlagRow{"setting", Group::kPlanning, "--knob", "NAME=N|SIZE",
            "set the algorithm's own parameter: segments=5, B=120MiB"},
    FlagRow{"objective", Group::kPlanning, "--objective", "",
            "what exact-dp and approx-dp minimize; auto: time if such a plan fits, else memory"},
    FlagRow{"granularity", Group::kPlanning, "--granularity", "",
            "decide for each node, or for each layer (conv, bn and relu as one)"},
    FlagRow{"optimizer", Group::kPlanning, "--optimizer", "",
            "optimizer whose state counts towards memory"},
    FlagRow{"master_weights", Group::kPlanning, "--master-weights", "",
            "count a float32 copy of each 16-bit parameter"},
    FlagRow{"liveness", Group::kPlanning, "--no-liveness", "",
            "free tensors a segment at a time, as the papers do"},
    FlagRow{"backward", Group::kPlanning, "--backward", "",
            "make gradients by node, as executors do, or by input, as the papers count memory"},
    FlagRow{"dims", Group::kReading, "-D,--dim", "NAME=N",
            "bind a symbolic dimension: N=64 (repeatable)"},
    FlagRow{"batch", Group::kReading, "--batch", "N",
            "set the batch size where the file fixes it or doesn't name it"},
    FlagRow{"input_shapes", Group::kReading, "--input-shape", "NAME=N,N,...",
            "set the whole shape of one input: x=2,3,64,64"},
    FlagRow{"cost_model", Group::kReading, "--cost", "MODEL",
            "cost model: flops[:DEVICE] (default), paper, unit, file:PATH"},
    FlagRow{"workspaces", Group::kReading, "--workspaces", "FILE",
            "count operator workspaces, measured by ckexec profile into FILE"},
    FlagRow{"autograd", Group::kReading, "--autograd", "",
            "which tensors backward needs: the minimum, or those PyTorch saves"},
    FlagRow{"activation_type", Group::kReading, "--activation-type", "",
            "store activations in this type; model: as the file says"},
    FlagRow{"fused", Group::kReading, "--fuse", "",
            "treat attention as one operator: wherever it is found, or where PyTorch fused it"},
    FlagRow{"restored", Group::kReading, "--restore", "",
            "treat operators that PyTorch ran as one operation as one operator"},
    FlagRow{"rounding", Group::kReading, "--rounding", "",
            "let gradients pass through Round, QuantizeLinear and the like, or end there"},
    FlagRow{"gradients", Group::kReading, "--gradients", "",
            "count parameter gradients from when they are computed: in --memory only, never, or in "
            "peaks too"},
    FlagRow{"outputs", Group::kReading, "--outputs", "NAME,...|@FILE",
            "end the step at these tensors or nodes, and leave the rest out: logits, 'head*'"},
    FlagRow{"weights", Group::kReading, "--weights", "NAME,...|@FILE",
            "train these inputs of the file as parameters: '*.weight,*.bias'"},
    FlagRow{
        "set_inputs", Group::kReading, "--set", "INPUT=VALUE",
        "set the contents of an input that decides a shape or branch: use_cache=true, n=@n.npy"},
    FlagRow{"op_shapes", Group::kReading, "--op-shape", "OP=RULE",
            "describe an operator of your own: acme::Norm=like:0, 'acme::Mul=[0.0,8];flops=16'"},
    FlagRow{"freeze", Group::kReading, "--freeze", "NAME|@FILE",
            "parameters that are not trained: '*.weight', '!*lora*'"},
    FlagRow{
        "sharding", Group::kReading, "--shard", "SYSTEM:N",
        "shard parameters and optimizer state over N devices: fsdp:8, zero1:8, zero2:8, zero3:8"},
    FlagRow{"pipeline", Group::kReading, "--pipeline", "STAGES/INDEX",
            "plan one stage of a pipeline, counted from 0: 4/0 is the first of four"},
    FlagRow{"micro_batches", Group::kReading, "--micro-batches", "N",
            "number of micro-batches in a step"},
    FlagRow{"schedule", Group::kReading, "--schedule", "", "pipeline schedule: 1F1B or GPipe"},
    FlagRow{"stage_cuts", Group::kReading, "--stage-cuts", "NAME,...",
            "first node or module of each later stage (default: balanced)"},
    FlagRow{"align", Group::kReading, "--align", "N",
            "round each buffer up to N bytes (PyTorch: 512, CUDA: 256)"},
};

// Returns the heading of the help under which the flag stands.
std::string_view SectionOf(const FlagRow& row) {
  constexpr std::array kOfCosts = {
      std::string_view("cost_model"), std::string_view("workspaces"),
      std::string_view("optimizer"),  std::string_view("master_weights"),
      std::string_view("gradients"),  std::string_view("align")};
  constexpr std::array kOfParallelism = {
      std::string_view("sharding"), std::string_view("pipeline"), std::string_view("micro_batches"),
      std::string_view("schedule"), std::string_view("stage_cuts")};
  constexpr std::array kOfSizes = {std::string_view("dims"), std::string_view("batch"),
                                   std::string_view("input_shapes")};
  // What only the algorithms of papers have.
  constexpr std::array kOfResearch = {
      std::string_view("paper_budget"), std::string_view("setting"),  std::string_view("objective"),
      std::string_view("granularity"),  std::string_view("liveness"), std::string_view("backward")};
  const auto has = [&](const auto& fields) {
    return std::find(fields.begin(), fields.end(), row.field) != fields.end();
  };
  if (has(kOfSizes)) return "Sizes of the inputs";
  if (has(kOfCosts)) return "Costs and constants";
  if (has(kOfParallelism)) return "Parallelism";
  if (has(kOfResearch)) return "Research";
  return row.group == Group::kReading ? "Model" : "Budget and algorithm";
}

bool IsBudgetRow(const FlagRow& row) {
  return std::holds_alternative<Budget PlanRequest::*>(FieldOf(row.field).member);
}

// Sizes of 30 dimensions, two for each, would be 2^30 requests. `texts` are those of the flags:
// "N=1,2", "T=3".
Result<Done> CheckCombinations(const std::vector<std::string>& texts) {
  constexpr size_t kMaxCombinations = 1000;
  size_t combinations = 1;
  for (const std::string& text : texts) {
    const size_t sizes = PartsOfList(std::string_view(text).substr(text.rfind('=') + 1)).size();
    if (sizes > kMaxCombinations / combinations) {
      return MakeError(
          ErrorCode::kUsage,
          fmt::format("-D: more than {} combinations of sizes; give fewer", kMaxCombinations));
    }
    combinations *= sizes;
  }
  return Done{};
}

Result<Done> CheckReserve(const PlanRequest& request) {
  if (!request.reserve) return Done{};
  if (!request.memory.is_given()) {
    return MakeError(ErrorCode::kUsage,
                     "--reserve is a part of the device's memory; add --memory SIZE|DEVICE");
  }
  if (*request.reserve < request.memory.bytes) return Done{};
  return MakeError(ErrorCode::kUsage,
                   fmt::format("--reserve: {} of {} leaves nothing for the step",
                               HumanBytes(*request.reserve), HumanBytes(request.memory.bytes)));
}

size_t RowOf(std::string_view field) {
  size_t row = 0;
  while (row < kRows.size() && kRows[row].field != field) ++row;
  return row;
}

std::string LongFlag(const FlagRow& row) {
  return std::string(row.flags.substr(row.flags.rfind("--")));
}

// Returns the largest value of a field that is a number.
int64_t LimitOf(const FlagRow& row) {
  if (row.field == "batch") return kMaxTotalBytes.count();
  return row.field == "micro_batches" ? kMaxMicroBatches : kMaxAlignment;
}

// Returns the flag that messages suggest. Dimensions have the short flag, as in all examples.
std::string SuggestedFlag(const FlagRow& row) { return row.field == "dims" ? "-D" : LongFlag(row); }

constexpr std::string_view kAllAlgorithms = "all";

// Rejects a list for a command that takes one value. `values` is what the list contains.
Error SeveralNamesError(const FlagRow& row, const std::string& text, std::string_view values) {
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{0}: \"{1}\" names several {2}, and this command takes one; "
                               "`ckplan compare MODEL {0} {3}` compares several",
                               SuggestedFlag(row), text, values, ShellWord(text)));
}

bool IsList(std::string_view text) { return text.find(',') != text.npos; }

// Checks what the field's type does not guarantee about its text.
Result<Done> CheckText(const FlagRow& row, const std::string& text) {
  if (row.field == "cost_model") return CheckCostModel(text);
  if (row.field == "workspaces") return Done{};
  if (text == kAllAlgorithms) return SeveralNamesError(row, text, "algorithms");
  for (const std::string& name : PartsOfList(text)) {
    if (name != kAllAlgorithms) CKPLAN_RETURN_IF_ERROR(FindSolver(name));
  }
  if (IsList(text)) return SeveralNamesError(row, text, "algorithms");
  return Done{};
}

Result<Budget> ReadBudget(const FlagRow& row, const FlagForm& form, const std::string& text) {
  const bool is_added_time = row.field == "added_time";
  const auto read = [&](const std::string& one) {
    if (row.field == "memory") return ReadMemory(form, one);
    return is_added_time ? ReadAddedTime(form, one) : ParseBudget(one, form.flag, row.budget_forms);
  };
  if (!IsList(text)) return read(text);
  for (const std::string& one : PartsOfList(text)) CKPLAN_RETURN_IF_ERROR(read(one));
  return SeveralNamesError(row, text, is_added_time ? "percentages" : "budgets");
}

Result<Done> ReadEachDim(const FlagRow& row, const FlagForm& form,
                         const std::vector<std::string>& texts, DimSizes* dims) {
  for (const std::string& text : texts) {
    const size_t begin = text.rfind('=') == text.npos ? 0 : text.rfind('=') + 1;
    const std::vector<std::string> sizes = PartsOfList(std::string_view(text).substr(begin));
    if (sizes.size() == 1) continue;
    for (const std::string& size : sizes) {
      DimSizes one;
      CKPLAN_RETURN_IF_ERROR(ReadDims(form, {text.substr(0, begin) + size}, &one));
    }
    return SeveralNamesError(row, text, "sizes");
  }
  return ReadDims(form, texts, dims);
}

}  // namespace

NamePatterns PatternsInText(std::string_view text) {
  NamePatterns patterns;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    line.remove_prefix(std::min(line.find_first_not_of(" \t\r"), line.size()));
    line = line.substr(0, line.find_last_not_of(" \t\r") + 1);
    if (!line.empty() && !line.starts_with('#')) patterns.emplace_back(line);
  }
  return patterns;
}

RequestFlags::RequestFlags(Reading reading) : reading_(reading), given_(kRows.size()) {}

void RequestFlags::Add(CommandLine& line, Group group) {
  for (size_t i = 0; i < kRows.size(); ++i) {
    const bool is_constraint = kRows[i].group == Group::kConstraints && group == Group::kPlanning;
    if ((kRows[i].group != group && !is_constraint) || given_[i].is_declared) continue;
    Add(line, kRows[i].field);
  }
}

void RequestFlags::Add(CommandLine& line, std::string_view field, std::string_view form,
                       std::string_view help) {
  const FlagRow& row = kRows[RowOf(field)];
  Given& given = given_[RowOf(field)];
  given.is_declared = true;
  const CommandLine::Section section(line, SectionOf(row));
  const std::string flags(row.flags);
  if (form.empty()) form = row.form;
  if (help.empty()) help = row.help;
  const RequestMember& member = FieldOf(field).member;
  if (std::holds_alternative<WordsMember>(member)) {
    line.Choice(flags, WordChoices(FieldOf(field), reading_), help, &given.word,
                {&given.is_word_typed, OldSpellings(FieldOf(field))});
    if (field == "restored") {
      line.Flag(kNoRestore, "read the model operator by operator: --restore none --fuse none",
                &is_one_by_one_);
    }
  } else if (std::holds_alternative<bool PlanRequest::*>(member)) {
    line.Flag(flags, help, &given.is_set);
  } else if (std::holds_alternative<DimSizes PlanRequest::*>(member) ||
             std::holds_alternative<InputShapes PlanRequest::*>(member) ||
             std::holds_alternative<NamePatterns PlanRequest::*>(member)) {
    line.List(flags, form, help, &given.list);
  } else {
    line.Value(flags, form, help, &given.text);
  }
}

Result<Done> RequestFlags::ReadRow(size_t row_index, const Given& given, PlanRequest* request) {
  const FlagRow& row = kRows[row_index];
  const FlagForm form{LongFlag(row), row.form};
  const RequestMember& member = FieldOf(row.field).member;
  if (std::holds_alternative<WordsMember>(member)) {
    SetByTypedWord(FieldOf(row.field), given.word, request);
  }
  if (const auto* flag = std::get_if<bool PlanRequest::*>(&member)) {
    if (given.is_set) request->** flag = !(PlanRequest().**flag);
  }
  if (const auto* dims = std::get_if<DimSizes PlanRequest::*>(&member)) {
    return ReadEachDim(row, form, given.list, &(request->**dims));
  }
  if (const auto* shapes = std::get_if<InputShapes PlanRequest::*>(&member)) {
    return ReadShapes(form, given.list, &(request->**shapes));
  }
  if (const auto* patterns = std::get_if<NamePatterns PlanRequest::*>(&member)) {
    std::vector<std::string>* const list = &(request->**patterns);
    if (row.field == "stage_cuts") return ReadNames(form, given.list, list);
    if (row.field == "set_inputs") return ReadSetInputs(form, given.list, list);
    if (row.field == "op_shapes") return ReadOpShapes(form, given.list, list);
    const bool takes_lists = row.field == "outputs" || row.field == "weights";
    return takes_lists ? ReadPatternLists(form, given.list, list)
                       : ReadPatterns(form, given.list, list);
  }
  if (!given.text) return Done{};
  if (const auto* budget = std::get_if<Budget PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**budget, ReadBudget(row, form, *given.text));
  }
  if (const auto* setting = std::get_if<std::optional<KnobSetting> PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**setting, ReadSetting(form, *given.text));
  }
  if (const auto* stage = std::get_if<std::optional<PipelineStage> PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**stage, ReadStage(form, *given.text));
  }
  if (const auto* sharding = std::get_if<std::optional<Sharding> PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**sharding, ReadSharding(form, *given.text));
  }
  if (const auto* link = std::get_if<std::optional<Link> PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**link, ReadLink(form, *given.text));
  }
  if (const auto* size = std::get_if<std::optional<Bytes> PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**size, ParseSize(*given.text, LongFlag(row)));
  }
  if (const auto* decisions = std::get_if<std::optional<Decisions> PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(const std::string text, ReadJsonFile(*given.text, "decisions.json"));
    CKPLAN_ASSIGN_OR_RETURN(request->**decisions, ReadDecisionsJson(text, *given.text));
  }
  if (const auto* number = std::get_if<int64_t PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**number,
                            ParseInteger(*given.text, LongFlag(row), 1, LimitOf(row)));
  }
  if (const auto* text = std::get_if<std::string PlanRequest::*>(&member)) {
    CKPLAN_RETURN_IF_ERROR(CheckText(row, *given.text));
    request->** text = *given.text;
  }
  return Done{};
}

bool RequestFlags::IsImplied(size_t row) const {
  return HasDefaultOfReading(kRows[row].field, reading_) && given_[row].is_declared &&
         !given_[row].is_word_typed;
}

void RequestFlags::ReadOneByOne(PlanRequest* request) const {
  if (!is_one_by_one_) return;
  for (const std::string_view name : {"fused", "restored"}) {
    if (!given_[RowOf(name)].is_word_typed) ResetField(FieldOf(name), request);
  }
}

Result<PlanRequest> RequestFlags::Read() const {
  PlanRequest request;
  request.optional_dims = optional_dims_;
  std::vector<std::string> budgets;
  for (size_t i = 0; i < kRows.size(); ++i) {
    CKPLAN_RETURN_IF_ERROR(ReadRow(i, given_[i], &request));
    if (IsBudgetRow(kRows[i]) && given_[i].text) budgets.push_back(LongFlag(kRows[i]));
    if (IsImplied(i)) request.implied.insert(std::string(kRows[i].field));
  }
  ReadOneByOne(&request);
  if (budgets.size() <= 1) {
    CKPLAN_RETURN_IF_ERROR(CheckReserve(request));
    return request;
  }
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{} cannot be combined", fmt::join(budgets, " and ")));
}

std::vector<std::string> RequestFlags::TakeUnboundDims() {
  std::vector<std::string> names;
  std::vector<std::string>& list = given_[RowOf("dims")].list;
  const auto is_bound = [](const std::string& text) { return text.find('=') != text.npos; };
  const auto unbound = std::stable_partition(list.begin(), list.end(), is_bound);
  std::move(unbound, list.end(), std::back_inserter(names));
  list.erase(unbound, list.end());
  return names;
}

Result<std::vector<RequestFlags>> RequestFlags::EachCombinationOfDims() const {
  const size_t row = RowOf("dims");
  CKPLAN_RETURN_IF_ERROR(CheckCombinations(given_[row].list));
  std::vector<RequestFlags> combinations = {*this};
  combinations.front().given_[row].list.clear();
  for (const std::string& text : given_[row].list) {
    const size_t begin = text.rfind('=') == text.npos ? 0 : text.rfind('=') + 1;
    std::vector<RequestFlags> longer;
    for (const RequestFlags& flags : combinations) {
      for (const std::string& size : PartsOfList(std::string_view(text).substr(begin))) {
        longer.push_back(flags);
        longer.back().given_[row].list.push_back(text.substr(0, begin) + size);
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

std::vector<RequestFlags> RequestFlags::EachBudget() const {
  std::vector<RequestFlags> each = {*this};
  for (size_t row = 0; row < kRows.size(); ++row) {
    if (!IsBudgetRow(kRows[row]) || !given_[row].text) continue;
    std::vector<RequestFlags> more;
    std::set<std::string> seen;
    for (const std::string& text : PartsOfList(*given_[row].text)) {
      if (!seen.insert(text).second) continue;
      for (RequestFlags flags : each) {
        flags.given_[row].text = text;
        more.push_back(std::move(flags));
      }
    }
    each = std::move(more);
  }
  return each;
}

bool RequestFlags::HasList() const {
  for (size_t row = 0; row < kRows.size(); ++row) {
    const bool is_listed = kRows[row].field == "algorithm" || IsBudgetRow(kRows[row]);
    const std::string text = is_listed ? given_[row].text.value_or("") : "";
    if (IsList(text) || text == kAllAlgorithms) return true;
  }
  const std::vector<std::string>& dims = given_[RowOf("dims")].list;
  return std::any_of(dims.begin(), dims.end(), [](const std::string& text) {
    return IsList(text.substr(text.rfind('=') + 1));
  });
}

void RequestFlags::LeaveOut(std::string_view field) {
  given_[RowOf(field)].text.reset();
  given_[RowOf(field)].list.clear();
}

std::string RequestFlags::BudgetField() const {
  for (size_t row = 0; row < kRows.size(); ++row) {
    if (IsBudgetRow(kRows[row]) && given_[row].text) return std::string(kRows[row].field);
  }
  return "";
}

Result<Done> RequestFlags::ReadField(std::string_view field, PlanRequest* request) const {
  const size_t row = RowOf(field);
  return ReadRow(row, given_[row], request);
}

std::string RequestFlags::Typed(std::string_view field) const {
  const Given& given = given_[RowOf(field)];
  const std::string flag = SuggestedFlag(kRows[RowOf(field)]);
  std::vector<std::string> typed;
  for (const std::string& text : given.list) typed.push_back(flag + " " + ShellWord(text));
  if (given.text) typed.push_back(flag + " " + ShellWord(*given.text));
  const bool has_words = std::holds_alternative<WordsMember>(FieldOf(field).member);
  if (has_words && !given.word.empty()) {
    const bool is_default = given.word == WordChoices(FieldOf(field), reading_).front();
    if (!is_default) typed.push_back(flag + " " + given.word);
  }
  return fmt::format("{}", fmt::join(typed, " "));
}

std::optional<std::string> RequestFlags::ValueOf(std::string_view field) const {
  return given_[RowOf(field)].text;
}

std::string RequestFlags::BareBudgetHint(Bytes typical) const {
  for (size_t i = 0; i < kRows.size(); ++i) {
    const bool is_size =
        IsBudgetRow(kRows[i]) && kRows[i].field != "added_time" && kRows[i].field != "memory";
    if (!given_[i].text || !is_size) continue;
    return BareNumberHint(*given_[i].text, typical, kRows[i].budget_forms);
  }
  return "";
}

std::optional<std::string> RequestFlags::CostFile() const {
  const std::optional<std::string> text = ValueOf("cost_model");
  if (!text) return std::nullopt;
  const Result<CostModel> cost = ParseCostModel(*text);
  if (!cost.ok() || cost->kind != CostKind::kFile) return std::nullopt;
  return cost->path;
}

FilesOfPlan RequestFlags::PlanFiles() const {
  return {ValueOf("cost_model"), ValueOf("workspaces")};
}

bool IsBudgetFlag(std::string_view flag) {
  return std::any_of(kRows.begin(), kRows.end(),
                     [&](const FlagRow& row) { return IsBudgetRow(row) && LongFlag(row) == flag; });
}

std::string FlagOf(const std::string& field) {
  if (field == kMemoryLimitField) {  // It is not part of the plan's request.
    const std::string_view setting = DescribeMemoryLimit().setting;
    return setting.empty() ? "--memory-limit" : std::string(setting);
  }
  const size_t row = RowOf(field);
  return row == kRows.size() ? field : SuggestedFlag(kRows[row]);
}

namespace {

// Returns the flag of a field that takes words, as typed; "" if the word is the default.
std::string WordFlagFor(const FlagRow& row, const PlanRequest& request) {
  const bool is_one_by_one =
      request.fused == FusedOperators::kNone && request.restored == RestoredOperators::kNone;
  if (is_one_by_one && row.field == "fused") return "";
  if (is_one_by_one && row.field == "restored") return std::string(" ") + kNoRestore;
  const std::string_view word = WordToType(FieldOf(row.field), request);
  return word.empty() ? "" : fmt::format(" {} {}", SuggestedFlag(row), word);
}

// A whole number of bytes in the largest unit in which it stays whole: "8GiB". Returns other texts
// as they are.
std::string InLargestUnit(const std::string& text) {
  constexpr std::array<std::string_view, 3> kUnits = {"KiB", "MiB", "GiB"};
  int64_t count = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc() || rest != text.data() + text.size() || count <= 0) return text;
  std::string_view unit;
  for (size_t i = 0; i < kUnits.size() && count % 1024 == 0; ++i) {
    count /= 1024;
    unit = kUnits[i];
  }
  return fmt::format("{}{}", count, unit);
}

bool IsSize(const RequestField& field) {
  return std::holds_alternative<Budget PlanRequest::*>(field.member) ||
         std::holds_alternative<std::optional<Bytes> PlanRequest::*>(field.member);
}

}  // namespace

std::string FlagsFor(const PlanRequest& request) {
  using Part = RequestField::Part;
  std::string text;
  for (const Part part : {Part::kModel, Part::kPlan, Part::kGraph}) {
    for (const FlagRow& row : kRows) {
      const RequestField& field = FieldOf(row.field);
      // The algorithm is included even if it is the default, because the default may change.
      const bool is_said = !IsDefault(field, request) || row.group == Group::kAlgorithm;
      if (field.part != part) continue;
      if (std::holds_alternative<WordsMember>(field.member)) text += WordFlagFor(row, request);
      if (!is_said || std::holds_alternative<WordsMember>(field.member)) continue;
      if (std::holds_alternative<bool PlanRequest::*>(field.member)) {
        text += " " + SuggestedFlag(row);
        continue;
      }
      for (const std::string& value : TextsOf(field, request)) {
        text += fmt::format(" {} {}", SuggestedFlag(row),
                            ShellWord(IsSize(field) ? InLargestUnit(value) : value));
      }
    }
  }
  return text;
}

std::string MessageOf(const Error& error) {
  const Remedy& remedy = error.remedy;
  if (remedy.settings.empty()) return error.message;
  std::string text = fmt::format("{}; {}", error.message, remedy.advice);
  for (const Remedy::Setting& setting : remedy.settings) {
    text += " " + FlagOf(setting.name);
    if (!setting.value.empty()) text += " " + setting.value;
  }
  return text;
}

}  // namespace ckplan
