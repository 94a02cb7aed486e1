#include "lib/plan/request_fields.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <type_traits>

#include "lib/base/check.h"
#include "lib/base/human_bytes.h"
#include "lib/plan/knob.h"

namespace ckplan {
namespace {

using Part = RequestField::Part;
using InFile = RequestField::InFile;

constexpr std::array<std::string_view, 2> kSpokenGradients = {"with the constants",
                                                              "as they arrive"};
constexpr std::array<std::string_view, 3> kSpokenTypes = {"the model says", "float32", "bf16"};
constexpr std::array<std::string_view, 2> kSpokenLiveness = {"a segment at a time",
                                                             "as soon as nothing reads them"};

template <auto kMember>
constexpr WordsMember WordsOf(std::span<const std::string_view> words) {
  return {words, [](const PlanRequest& request) { return static_cast<size_t>(request.*kMember); },
          [](PlanRequest* request, size_t word) {
            using Enum = std::remove_reference_t<decltype(request->*kMember)>;
            request->*kMember = static_cast<Enum>(word);
          }};
}

const std::array kFields = {
    RequestField{"dims", "dims", Part::kModel, InFile::kRequired, &PlanRequest::dims,
                 "the plans are for the dimensions {} and {}; that alone changes their bytes and "
                 "times"},
    RequestField{"input_shapes", "input_shapes", Part::kModel, InFile::kRequired,
                 &PlanRequest::input_shapes,
                 "the plans are for the input shapes {} and {}; that alone changes their bytes and "
                 "times"},
    RequestField{"algorithm", "algorithm", Part::kPlan, InFile::kRequired, &PlanRequest::algorithm},
    RequestField{"objective", "objective", Part::kPlan, InFile::kRequired,
                 WordsOf<&PlanRequest::objective>(kObjectiveWords)},
    RequestField{"granularity", "granularity", Part::kPlan, InFile::kUnlessDefault,
                 WordsOf<&PlanRequest::granularity>(kGranularityWords)},
    RequestField{"effort", "effort", Part::kPlan, InFile::kUnlessDefault,
                 WordsOf<&PlanRequest::effort>(kSearchEffortWords)},
    RequestField{"order", "order", Part::kPlan, InFile::kUnlessDefault,
                 WordsOf<&PlanRequest::order>(kStepOrderWords)},
    RequestField{"budget", "budget_bytes", Part::kPlan, InFile::kRequired, &PlanRequest::budget},
    RequestField{"total_budget", "", Part::kPlan, InFile::kNever, &PlanRequest::total_budget},
    RequestField{"paper_budget", "paper_budget_bytes", Part::kPlan, InFile::kRequired,
                 &PlanRequest::paper_budget},
    RequestField{"keep", "keep", Part::kPlan, InFile::kUnlessDefault, &PlanRequest::keep},
    RequestField{"recompute", "recompute", Part::kPlan, InFile::kUnlessDefault,
                 &PlanRequest::recompute},
    RequestField{"never_rerun", "never_rerun", Part::kPlan, InFile::kUnlessDefault,
                 &PlanRequest::never_rerun},
    RequestField{"decisions", "decisions", Part::kPlan, InFile::kUnlessDefault,
                 &PlanRequest::decisions},
    RequestField{"setting", "setting", Part::kPlan, InFile::kUnlessDefault, &PlanRequest::setting},
    RequestField{"cost_model", "cost_model", Part::kGraph, InFile::kRequired,
                 &PlanRequest::cost_model,
                 "the plans' costs are by \"{}\" and \"{}\"; their times do not compare"},
    RequestField{"cost_unit", "cost_unit", Part::kGraph, InFile::kRequired,
                 &PlanRequest::cost_unit},
    RequestField{"autograd", "autograd", Part::kGraph, InFile::kRequired,
                 WordsOf<&PlanRequest::autograd>(kAutogradWords),
                 "the plans are for {} and for {} autograd; that alone changes their bytes"},
    RequestField{"activation_type", "activation_type", Part::kGraph, InFile::kUnlessDefault,
                 WordsOf<&PlanRequest::activation_type>(kActivationTypeWords),
                 "the plans store activations as {} and as {}; that alone changes their bytes and "
                 "times",
                 kSpokenTypes},
    RequestField{"gradients", "gradients", Part::kGraph, InFile::kUnlessDefault,
                 WordsOf<&PlanRequest::gradients>(kParameterGradientsWords),
                 "the plans count gradients of parameters {} and {}; that alone changes their "
                 "peaks",
                 kSpokenGradients},
    RequestField{"freeze", "freeze", Part::kGraph, InFile::kUnlessDefault, &PlanRequest::freeze,
                 "the plans freeze the parameters {} and {}; that alone changes their bytes and "
                 "times"},
    RequestField{"sharding", "sharding", Part::kGraph, InFile::kUnlessDefault,
                 &PlanRequest::sharding,
                 "the plans divide constants among devices as {} and as {}; that alone changes "
                 "their peaks with constants"},
    RequestField{"pipeline", "pipeline", Part::kGraph, InFile::kUnlessDefault,
                 &PlanRequest::pipeline,
                 "the plans are for the stages {} and {}; that alone changes their bytes and "
                 "times"},
    RequestField{
        "micro_batches", "micro_batches", Part::kGraph, InFile::kUnlessDefault,
        &PlanRequest::micro_batches,
        "the plans' numbers of micro-batches are {} and {}; that alone changes their bytes"},
    RequestField{"schedule", "pipeline_schedule", Part::kGraph, InFile::kUnlessDefault,
                 WordsOf<&PlanRequest::schedule>(kPipelineScheduleWords),
                 "the plans' micro-batches follow the schedules {} and {}; that alone changes "
                 "their bytes"},
    RequestField{"stage_cuts", "stage_cuts", Part::kGraph, InFile::kUnlessDefault,
                 &PlanRequest::stage_cuts,
                 "the plans' stages begin at {} and at {}; that alone changes their bytes and "
                 "times"},
    RequestField{"optimizer", "optimizer", Part::kPlan, InFile::kRequired,
                 WordsOf<&PlanRequest::optimizer>(kOptimizerWords),
                 "the plans count the state of the optimizers {} and {}; that alone changes their "
                 "peaks with constants"},
    RequestField{
        "align", "align_bytes", Part::kGraph, InFile::kRequired, &PlanRequest::align_bytes,
        "the plans round buffers up to multiples of {} and of {} bytes; that alone changes "
        "their bytes"},
    RequestField{
        "liveness", "liveness", Part::kPlan, InFile::kRequired, &PlanRequest::uses_liveness,
        "the plans release tensors {} and {}; that alone changes their bytes", kSpokenLiveness},
};

std::string BudgetText(const Budget& budget) {
  switch (budget.kind) {
    case Budget::Kind::kNone:
      return "";
    case Budget::Kind::kBytes:
      return std::to_string(budget.bytes.count());
    case Budget::Kind::kPercent:
      return fmt::format("{}%", budget.percent);
    case Budget::Kind::kMin:
      return "min";
  }
  return "";
}

// The texts of one kind of member, by its value.
struct Texts {
  using List = std::vector<std::string>;
  static List OrNone(std::string text) { return text.empty() ? List() : List{std::move(text)}; }
  static List Of(const std::string& text) { return OrNone(text); }
  // A number is at least 1 where there is one.
  static List Of(int64_t number) { return number == 0 ? List() : List{std::to_string(number)}; }
  static List Of(bool value) { return {value ? "yes" : "no"}; }
  static List Of(const Budget& budget) { return OrNone(BudgetText(budget)); }
  static List Of(const NamePatterns& patterns) { return patterns; }
  static List Of(const std::optional<KnobSetting>& setting) {
    return setting ? List{TextOf(*setting)} : List();
  }
  static List Of(const std::optional<PipelineStage>& stage) {
    return stage ? List{TextOf(*stage)} : List();
  }
  static List Of(const std::optional<Sharding>& sharding) {
    return sharding ? List{TextOf(*sharding)} : List();
  }
  // Where they were read from is not known any more; a plan file holds them as well.
  static List Of(const std::optional<Decisions>& decisions) {
    return decisions ? List{"plan.json"} : List();
  }
  static List Of(const DimSizes& dims) {
    List texts;
    for (const auto& [name, size] : dims) texts.push_back(fmt::format("{}={}", name, size));
    return texts;
  }
  static List Of(const InputShapes& shapes) {
    List texts;
    for (const auto& [name, shape] : shapes) {
      texts.push_back(fmt::format("{}={}", name, fmt::join(shape, ",")));
    }
    return texts;
  }
};

// The value as RequestField::difference shows it.
std::string Spoken(const RequestField& field, const PlanRequest& request) {
  if (const auto* budget = std::get_if<Budget PlanRequest::*>(&field.member)) {
    const std::optional<Bytes> bytes = (request.**budget).in_bytes();
    if (bytes) return fmt::format("{} ({} bytes)", HumanBytes(*bytes), bytes->count());
  }
  if (!field.spoken.empty()) {
    const auto* words = std::get_if<WordsMember>(&field.member);
    const auto* flag = std::get_if<bool PlanRequest::*>(&field.member);
    const size_t at = words != nullptr ? words->get(request) : size_t{request.**flag};
    return std::string(field.spoken[at]);
  }
  const std::vector<std::string> texts = TextsOf(field, request);
  return texts.empty() ? "none" : fmt::format("{}", fmt::join(texts, " "));
}

bool IsEqual(const RequestField& field, const PlanRequest& a, const PlanRequest& b) {
  PlanRequest copy = b;
  CopyField(field, a, &copy);
  return copy == b;
}

}  // namespace

std::span<const RequestField> RequestFields() { return kFields; }

const RequestField& FieldOf(std::string_view name) {
  const auto found = std::find_if(kFields.begin(), kFields.end(),
                                  [&](const RequestField& field) { return field.name == name; });
  CKPLAN_CHECK(found != kFields.end(), "a field is asked for by a name of the table");
  return *found;
}

std::vector<std::string> TextsOf(const RequestField& field, const PlanRequest& request) {
  if (const auto* words = std::get_if<WordsMember>(&field.member)) {
    return {std::string(words->words[words->get(request)])};
  }
  return std::visit(
      [&](auto member) -> std::vector<std::string> {
        if constexpr (std::is_same_v<decltype(member), WordsMember>) {
          return {};
        } else {
          return Texts::Of(request.*member);
        }
      },
      field.member);
}

bool IsDefault(const RequestField& field, const PlanRequest& request) {
  return IsEqual(field, request, PlanRequest());
}

void CopyField(const RequestField& field, const PlanRequest& from, PlanRequest* to) {
  std::visit(
      [&](auto member) {
        if constexpr (std::is_same_v<decltype(member), WordsMember>) {
          member.set(to, member.get(from));
        } else {
          to->*member = from.*member;
        }
      },
      field.member);
}

std::vector<std::string> DifferencesOf(const PlanRequest& older, const PlanRequest& newer) {
  std::vector<std::string> sentences;
  for (const RequestField& field : kFields) {
    if (field.difference.empty() || IsEqual(field, older, newer)) continue;
    sentences.push_back(
        fmt::format(fmt::runtime(field.difference), Spoken(field, older), Spoken(field, newer)));
  }
  return sentences;
}

std::vector<RequestDifference> EachDifference(const PlanRequest& older, const PlanRequest& newer) {
  std::vector<RequestDifference> differences;
  for (const RequestField& field : kFields) {
    if (IsEqual(field, older, newer)) continue;
    const auto typed = [&](const PlanRequest& request) {
      return fmt::format("{}", fmt::join(TextsOf(field, request), " "));
    };
    RequestDifference difference{field.name, typed(older), typed(newer), Spoken(field, older),
                                 Spoken(field, newer)};
    if (std::holds_alternative<std::optional<Decisions> PlanRequest::*>(field.member)) {
      // They are too long to stand here.
      difference.older = older.decisions ? "given" : "";
      difference.newer = !newer.decisions ? "" : older.decisions ? "others" : "given";
      difference.spoken_older = older.decisions ? "given" : "none";
      difference.spoken_newer = newer.decisions ? difference.newer : "none";
    }
    differences.push_back(std::move(difference));
  }
  return differences;
}

bool HaveSameCosts(const PlanRequest& a, const PlanRequest& b) {
  return a.cost_model == b.cost_model && a.cost_unit == b.cost_unit;
}

}  // namespace ckplan
