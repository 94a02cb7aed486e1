#include "cli/common/request_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>

#include "cli/common/size_arg.h"
#include "lib/base/nearest_name.h"
#include "lib/base/read_file.h"
#include "lib/cost/cost_model.h"
#include "lib/emit/json_decisions.h"
#include "lib/plan/knob.h"
#include "lib/plan/request_fields.h"
#include "lib/planner/registry.h"
#include "lib/planner/source.h"

namespace ckplan {
namespace {

using Group = RequestFlags::Group;

constexpr int64_t kMaxDim = std::numeric_limits<int64_t>::max();
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();
constexpr int64_t kMaxAlignment = int64_t{1} << 30;

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
            "for given: what to keep, or a whole order, as JSON or a plan"},
    FlagRow{"effort", Group::kPlanning, "--effort", "",
            "how long best may search, in counted work"},
    FlagRow{"order", Group::kPlanning, "--order", "",
            "order of steps, for best and given: the model's, or any"},
    FlagRow{"budget", Group::kPlanning, "-b,--budget", "SIZE|P%|min",
            "limit on the peak: 16GiB, 60% of keep-all's, min (default: best adds up to 10 %)"},
    FlagRow{"total_budget",
            Group::kPlanning,
            "--budget-total",
            "SIZE|P%",
            "limit on the peak with parameters, optimizer and inputs",
            {.percent = true, .min = false}},
    FlagRow{"paper_budget",
            Group::kPlanning,
            "--paper-budget",
            "SIZE|min",
            "limit on the objective of the algorithm's paper",
            {.percent = false, .min = true}},
    FlagRow{"keep", Group::kConstraints, "--keep", "NAME|@FILE",
            "tensors to keep, never to run again: 'layer1*', op:Softmax"},
    FlagRow{"recompute", Group::kConstraints, "--recompute", "NAME|@FILE",
            "tensors not to keep for backward: op:Relu, '!layer4*'"},
    FlagRow{"never_rerun", Group::kConstraints, "--never-rerun", "NAME|@FILE",
            "operations that must not run twice: op:TopK"},
    FlagRow{"setting", Group::kPlanning, "--knob", "NAME=N|SIZE",
            "setting of the algorithm's own knob: segments=5, B=120MiB"},
    FlagRow{"objective", Group::kPlanning, "--objective", "",
            "of exact-dp and approx-dp; auto: memory if time has no plan"},
    FlagRow{"granularity", Group::kPlanning, "--granularity", "",
            "decide on nodes, or on layers: conv, bn, relu as one"},
    FlagRow{"optimizer", Group::kPlanning, "--optimizer", "",
            "optimizer whose state is counted with the constants"},
    FlagRow{"liveness", Group::kPlanning, "--no-liveness", "",
            "release tensors a segment at a time, as the papers do"},
    FlagRow{"dims", Group::kReading, "-D,--dim", "NAME=N",
            "size of a symbolic dimension; once for each"},
    FlagRow{"input_shapes", Group::kReading, "--input-shape", "NAME=N,N,...",
            "another shape for an input: x=2,3,64,64"},
    FlagRow{"cost_model", Group::kReading, "--cost", "MODEL",
            "cost model: flops[:DEVICE] (default), paper, unit, file:PATH"},
    FlagRow{"autograd", Group::kReading, "--autograd", "",
            "backward reads what it needs, or what PyTorch keeps"},
    FlagRow{"activation_type", Group::kReading, "--activation-type", "",
            "type of stored activations; model: the model's own"},
    FlagRow{"gradients", Group::kReading, "--gradients", "",
            "of parameters: constants, or in the peak as they arrive"},
    FlagRow{"freeze", Group::kReading, "--freeze", "NAME|@FILE",
            "parameters without a gradient: '*.weight', '!*lora*'"},
    FlagRow{"sharding", Group::kReading, "--shard", "SYSTEM:N",
            "constants on one of N devices: fsdp:8, zero1:8, zero2:8, zero3:8"},
    FlagRow{"pipeline", Group::kReading, "--pipeline", "STAGES/INDEX",
            "one stage of a pipeline, from 0: 4/0 is the first of four"},
    FlagRow{"micro_batches", Group::kReading, "--micro-batches", "N",
            "how many go through the pipeline in a step"},
    FlagRow{"schedule", Group::kReading, "--schedule", "",
            "of micro-batches: backward as soon as may be, or after all"},
    FlagRow{"stage_cuts", Group::kReading, "--stage-cuts", "NAME,...",
            "first node or module of each later stage (default: balanced)"},
    FlagRow{"align", Group::kReading, "--align", "N",
            "round every buffer up to N bytes (PyTorch: 512, CUDA: 256)"},
};

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
  return row.field == "micro_batches" ? kMaxMicroBatches : kMaxAlignment;
}

// Returns the flag that messages suggest. Dimensions have the short flag, as in all examples.
std::string TypedFlag(const FlagRow& row) { return row.field == "dims" ? "-D" : LongFlag(row); }

struct NamedText {
  std::string name;
  std::string_view text;
};

// Splits "NAME=TEXT", where NAME may contain "=".
Result<NamedText> SplitNamed(std::string_view text, std::string_view flag, std::string_view form) {
  const size_t equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return MakeError(ErrorCode::kUsage, fmt::format("{}: \"{}\" is not of the form {}", flag,
                                                    text.substr(0, 80), form));
  }
  return NamedText{std::string(text.substr(0, equals)), text.substr(equals + 1)};
}

Result<Done> ReadDims(const FlagRow& row, const std::vector<std::string>& texts, DimSizes* dims) {
  const std::string flag = LongFlag(row);
  for (const std::string& text : texts) {
    CKPLAN_ASSIGN_OR_RETURN(const NamedText dim, SplitNamed(text, flag, row.form));
    CKPLAN_ASSIGN_OR_RETURN(const int64_t size,
                            ParseInteger(dim.text, flag + " " + dim.name, 1, kMaxDim));
    if (!dims->emplace(dim.name, size).second) {
      return MakeError(ErrorCode::kUsage, fmt::format("{}: {} is bound twice", flag, dim.name));
    }
  }
  return Done{};
}

Result<Done> ReadShapes(const FlagRow& row, const std::vector<std::string>& texts,
                        InputShapes* shapes) {
  const std::string flag = LongFlag(row);
  for (const std::string& text : texts) {
    CKPLAN_ASSIGN_OR_RETURN(const NamedText shape, SplitNamed(text, flag, row.form));
    std::vector<int64_t> sizes;
    for (std::string_view rest = shape.text;;) {
      const size_t comma = rest.find(',');
      CKPLAN_ASSIGN_OR_RETURN(
          const int64_t size,
          ParseInteger(rest.substr(0, comma), flag + " " + shape.name, 1, kMaxDim));
      sizes.push_back(size);
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
    if (!shapes->emplace(shape.name, std::move(sizes)).second) {
      return MakeError(ErrorCode::kUsage, fmt::format("{}: {} has two shapes", flag, shape.name));
    }
  }
  return Done{};
}

// Each text is a pattern, or "@" followed by a file of patterns.
Result<Done> ReadPatterns(const FlagRow& row, const std::vector<std::string>& texts,
                          NamePatterns* patterns) {
  for (const std::string& text : texts) {
    if (!text.starts_with('@')) {
      patterns->push_back(text);
      continue;
    }
    CKPLAN_ASSIGN_OR_RETURN(const std::string file, ReadWholeFile(text.substr(1)));
    const NamePatterns listed = PatternsInText(file);
    patterns->insert(patterns->end(), listed.begin(), listed.end());
    if (!listed.empty()) continue;
    return MakeError(ErrorCode::kUsage, fmt::format("{}: \"{}\" holds no pattern; write one a line",
                                                    LongFlag(row), text.substr(1)));
  }
  return Done{};
}

Result<KnobSetting> ReadSetting(const FlagRow& row, std::string_view text) {
  const std::string flag = LongFlag(row);
  CKPLAN_ASSIGN_OR_RETURN(const NamedText setting, SplitNamed(text, flag, row.form));
  const std::vector<std::string_view> names = KnobNames();
  if (std::count(names.begin(), names.end(), setting.name) == 0) {
    const std::string meant = DidYouMean(setting.name, names);
    return MakeError(ErrorCode::kUsage, fmt::format("{}: no algorithm has a knob \"{}\"{} they "
                                                    "are {}; `ckplan algos` says whose",
                                                    flag, setting.name, meant.empty() ? ";" : meant,
                                                    fmt::join(names, ", ")));
  }
  const std::string where = flag + " " + setting.name;
  if (!IsInBytes(setting.name)) {
    CKPLAN_ASSIGN_OR_RETURN(const int64_t value, ParseInteger(setting.text, where, 0, kMaxCount));
    return KnobSetting{setting.name, value};
  }
  CKPLAN_ASSIGN_OR_RETURN(const Bytes size, ParseSize(setting.text, where));
  return KnobSetting{setting.name, size.count()};
}

Result<PipelineStage> ReadStage(const FlagRow& row, std::string_view text) {
  const std::string flag = LongFlag(row);
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) {
    return MakeError(ErrorCode::kUsage, fmt::format("{}: \"{}\" is not of the form {}", flag,
                                                    text.substr(0, 80), row.form));
  }
  PipelineStage stage;
  CKPLAN_ASSIGN_OR_RETURN(stage.stages,
                          ParseInteger(text.substr(0, slash), flag + " STAGES", 1, kMaxStages));
  CKPLAN_ASSIGN_OR_RETURN(
      stage.index, ParseInteger(text.substr(slash + 1), flag + " INDEX", 0, stage.stages - 1));
  return stage;
}

// Each text is one name, or several names with commas between them.
Result<Done> ReadNames(const FlagRow& row, const std::vector<std::string>& texts,
                       std::vector<std::string>* names) {
  for (const std::string& text : texts) {
    for (size_t at = 0; at <= text.size();) {
      const size_t end = std::min(text.find(',', at), text.size());
      if (end == at) {
        return MakeError(ErrorCode::kUsage, fmt::format("{}: \"{}\" has a name without a letter",
                                                        LongFlag(row), text.substr(0, 80)));
      }
      names->push_back(text.substr(at, end - at));
      at = end + 1;
    }
  }
  return Done{};
}

Result<Sharding> ReadSharding(const FlagRow& row, const std::string& text) {
  const std::string flag = LongFlag(row);
  const size_t colon = text.find(':');
  const std::string_view name = std::string_view(text).substr(0, colon);
  const auto* const system =
      std::find(std::begin(kShardingSystems), std::end(kShardingSystems), name);
  if (system == std::end(kShardingSystems)) {
    const std::string meant = DidYouMean(name, kShardingSystems);
    return MakeError(
        ErrorCode::kUsage,
        fmt::format("{}: nothing is known of \"{}\"{} the systems are {}", flag, name.substr(0, 80),
                    meant.empty() ? ";" : meant, fmt::join(kShardingSystems, ", ")));
  }
  if (colon == std::string::npos) {
    return MakeError(ErrorCode::kUsage,
                     fmt::format("{}: \"{}\" is not of the form {}: among how many devices?", flag,
                                 name, row.form));
  }
  CKPLAN_ASSIGN_OR_RETURN(
      const int64_t devices,
      ParseInteger(std::string_view(text).substr(colon + 1), fmt::format("{} {}", flag, name),
                   kMinShardingDevices, kMaxShardingDevices));
  return Sharding{static_cast<ShardingSystem>(system - std::begin(kShardingSystems)), devices};
}

// Checks what the field's type does not guarantee about its text.
Result<Done> CheckText(std::string_view field, const std::string& text) {
  if (field == "cost_model") return CheckCostModel(text);
  CKPLAN_RETURN_IF_ERROR(FindSolver(text));
  return Done{};
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

RequestFlags::RequestFlags() : given_(kRows.size()) {}

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
  const std::string flags(row.flags);
  if (form.empty()) form = row.form;
  if (help.empty()) help = row.help;
  const RequestMember& member = FieldOf(field).member;
  if (const auto* words = std::get_if<WordsMember>(&member)) {
    line.Choice(flags, {words->words.begin(), words->words.end()}, help, &given.word);
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

Result<Done> RequestFlags::ReadField(size_t row_index, const Given& given, PlanRequest* request) {
  const FlagRow& row = kRows[row_index];
  const RequestMember& member = FieldOf(row.field).member;
  if (const auto* words = std::get_if<WordsMember>(&member)) {
    for (size_t i = 0; i < words->words.size(); ++i) {
      if (words->words[i] == given.word) words->set(request, i);
    }
  }
  if (const auto* flag = std::get_if<bool PlanRequest::*>(&member)) {
    if (given.is_set) request->** flag = !(PlanRequest().**flag);
  }
  if (const auto* dims = std::get_if<DimSizes PlanRequest::*>(&member)) {
    return ReadDims(row, given.list, &(request->**dims));
  }
  if (const auto* shapes = std::get_if<InputShapes PlanRequest::*>(&member)) {
    return ReadShapes(row, given.list, &(request->**shapes));
  }
  if (const auto* patterns = std::get_if<NamePatterns PlanRequest::*>(&member)) {
    return row.field == "stage_cuts" ? ReadNames(row, given.list, &(request->**patterns))
                                     : ReadPatterns(row, given.list, &(request->**patterns));
  }
  if (!given.text) return Done{};
  if (const auto* budget = std::get_if<Budget PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**budget,
                            ParseBudget(*given.text, LongFlag(row), row.budget_forms));
  }
  if (const auto* setting = std::get_if<std::optional<KnobSetting> PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**setting, ReadSetting(row, *given.text));
  }
  if (const auto* stage = std::get_if<std::optional<PipelineStage> PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**stage, ReadStage(row, *given.text));
  }
  if (const auto* sharding = std::get_if<std::optional<Sharding> PlanRequest::*>(&member)) {
    CKPLAN_ASSIGN_OR_RETURN(request->**sharding, ReadSharding(row, *given.text));
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
    CKPLAN_RETURN_IF_ERROR(CheckText(row.field, *given.text));
    request->** text = *given.text;
  }
  return Done{};
}

Result<PlanRequest> RequestFlags::Read() const {
  PlanRequest request;
  std::vector<std::string> budgets;
  for (size_t i = 0; i < kRows.size(); ++i) {
    CKPLAN_RETURN_IF_ERROR(ReadField(i, given_[i], &request));
    const bool is_budget =
        std::holds_alternative<Budget PlanRequest::*>(FieldOf(kRows[i].field).member);
    if (is_budget && given_[i].text) budgets.push_back(LongFlag(kRows[i]));
  }
  if (budgets.size() <= 1) return request;
  return MakeError(ErrorCode::kUsage,
                   fmt::format("{} exclude each other", fmt::join(budgets, " and ")));
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

std::vector<RequestFlags> RequestFlags::EachCombinationOfDims() const {
  const size_t row = RowOf("dims");
  std::vector<RequestFlags> combinations = {*this};
  combinations.front().given_[row].list.clear();
  for (const std::string& text : given_[row].list) {
    const size_t begin = text.rfind('=') == text.npos ? 0 : text.rfind('=') + 1;
    std::vector<RequestFlags> longer;
    for (const RequestFlags& flags : combinations) {
      for (size_t at = begin; at <= text.size();) {
        const size_t end = std::min(text.find(',', at), text.size());
        longer.push_back(flags);
        longer.back().given_[row].list.push_back(text.substr(0, begin) + text.substr(at, end - at));
        at = end + 1;
      }
    }
    combinations = std::move(longer);
  }
  return combinations;
}

std::string RequestFlags::Typed(std::string_view field) const {
  const Given& given = given_[RowOf(field)];
  const std::string flag = TypedFlag(kRows[RowOf(field)]);
  std::vector<std::string> typed;
  for (const std::string& text : given.list) typed.push_back(flag + " " + text);
  if (given.text) typed.push_back(flag + " " + *given.text);
  return fmt::format("{}", fmt::join(typed, " "));
}

std::optional<std::string> RequestFlags::ValueOf(std::string_view field) const {
  return given_[RowOf(field)].text;
}

std::string RequestFlags::BareBudgetHint(Bytes typical) const {
  for (size_t i = 0; i < kRows.size(); ++i) {
    const RequestMember& member = FieldOf(kRows[i].field).member;
    if (!given_[i].text || !std::holds_alternative<Budget PlanRequest::*>(member)) continue;
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

std::string FlagOf(const std::string& field) {
  if (field == kMemoryLimitField) return "--memory-limit";  // It is not part of the plan's request.
  const size_t row = RowOf(field);
  return row == kRows.size() ? field : TypedFlag(kRows[row]);
}

std::string FlagsFor(const PlanRequest& request) {
  using Part = RequestField::Part;
  std::string text;
  for (const Part part : {Part::kModel, Part::kPlan, Part::kGraph}) {
    for (const FlagRow& row : kRows) {
      const RequestField& field = FieldOf(row.field);
      // The algorithm is included even if it is the default, because the default may change.
      const bool is_said = !IsDefault(field, request) || row.group == Group::kAlgorithm;
      if (field.part != part || !is_said) continue;
      if (std::holds_alternative<bool PlanRequest::*>(field.member)) {
        text += " " + TypedFlag(row);
        continue;
      }
      for (const std::string& value : TextsOf(field, request)) {
        text += fmt::format(" {} {}", TypedFlag(row), ShellWord(value));
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
