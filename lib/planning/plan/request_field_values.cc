// The values of request fields: as text, copied and compared.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "lib/base/text.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/request_fields.h"

namespace ckplan {
namespace {

std::string BudgetText(const Budget& budget) {
  switch (budget.kind) {
    case Budget::Kind::kNone:
      return "";
    case Budget::Kind::kBytes:
      return !budget.device.empty() ? budget.device : std::to_string(budget.bytes.count());
    case Budget::Kind::kPercent:
      return fmt::format("{}%", budget.percent);
    case Budget::Kind::kMin:
      return "min";
    case Budget::Kind::kBalanced:
      return "balanced";
  }
  return "";
}

// Converts values to texts, for each type of member.
struct Texts {
  using List = std::vector<std::string>;
  static List OrNone(std::string text) { return text.empty() ? List() : List{std::move(text)}; }
  static List Of(const std::string& text) { return OrNone(text); }
  // Numbers start at 1; 0 means unset.
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
  static List Of(const std::optional<Link>& link) { return link ? List{TextOf(*link)} : List(); }
  static List Of(const std::optional<Bytes>& bytes) {
    return bytes ? List{std::to_string(bytes->count())} : List();
  }
  static List Of(const std::optional<Sharding>& sharding) {
    return sharding ? List{TextOf(*sharding)} : List();
  }
  // Their own file is not known any more, but a plan file contains them too.
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

// The value as messages show it.
std::string ValueText(const RequestField& field, const PlanRequest& request) {
  if (const auto* budget = std::get_if<Budget PlanRequest::*>(&field.member)) {
    const std::optional<Bytes> bytes = (request.**budget).in_bytes();
    if (bytes) return fmt::format("{} ({} bytes)", HumanBytes(*bytes), bytes->count());
  }
  if (const auto* amount = std::get_if<std::optional<Bytes> PlanRequest::*>(&field.member)) {
    const std::optional<Bytes>& bytes = request.**amount;
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
  return std::visit(
      [&](auto member) {
        if constexpr (std::is_same_v<decltype(member), WordsMember>) {
          return member.get(a) == member.get(b);
        } else {
          return a.*member == b.*member;
        }
      },
      field.member);
}

}  // namespace

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

std::string PhraseOf(const RequestField& field, const PlanRequest& request) {
  if (field.part == RequestField::Part::kModel) return ValueText(field, request);
  std::string words(field.words.empty() ? field.name : field.words);
  std::replace(words.begin(), words.end(), '_', ' ');
  return fmt::format("{} {}", words, ValueText(field, request));
}

bool IsDefault(const RequestField& field, const PlanRequest& request) {
  return IsEqual(field, request, PlanRequest());
}

void ResetField(const RequestField& field, PlanRequest* request) {
  CopyField(field, PlanRequest(), request);
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
  for (const RequestField& field : RequestFields()) {
    if (field.difference.empty() || IsEqual(field, older, newer)) continue;
    sentences.push_back(fmt::format(fmt::runtime(field.difference), ValueText(field, older),
                                    ValueText(field, newer)));
  }
  return sentences;
}

std::vector<RequestDifference> ListDifferences(const PlanRequest& older, const PlanRequest& newer) {
  std::vector<RequestDifference> differences;
  for (const RequestField& field : RequestFields()) {
    if (IsEqual(field, older, newer)) continue;
    const auto typed = [&](const PlanRequest& request) {
      return fmt::format("{}", fmt::join(TextsOf(field, request), " "));
    };
    RequestDifference difference{field.name, typed(older), typed(newer), ValueText(field, older),
                                 ValueText(field, newer)};
    if (std::holds_alternative<std::optional<Decisions> PlanRequest::*>(field.member)) {
      // Decisions are too long to show.
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
  // A graph file's own costs have an unknown unit, which offload takes as ns.
  constexpr std::string_view kOwnCosts = "graph";
  return a.cost_model == b.cost_model && (a.cost_unit == b.cost_unit || a.cost_model == kOwnCosts);
}

}  // namespace ckplan
