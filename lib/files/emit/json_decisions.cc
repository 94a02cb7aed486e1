#include "lib/files/emit/json_decisions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <optional>
#include <unordered_map>
#include <utility>

#include "lib/base/stop.h"
#include "lib/files/emit/json_plan_words.h"

namespace ckplan {
namespace {

using Form = Decisions::Form;

// Follows the order of Decisions::Form.
constexpr std::array<std::string_view, 5> kForms = {"kept", "checkpoints", "mirror_counts",
                                                    "lower_sets", "order"};
constexpr std::array kStepWords = {kForwardStep, kLossStep,         kBackwardStep,
                                   kFreeStep,    kFreeGradientStep, kRunStep,
                                   kOutStep,     kDropStep,         kInStep};
constexpr std::array kStepKinds = {StepKind::kForward, StepKind::kLoss,         StepKind::kBackward,
                                   StepKind::kFree,    StepKind::kFreeGradient, StepKind::kRun,
                                   StepKind::kOut,     StepKind::kDrop,         StepKind::kIn};
constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

// ---- Writing ----

void WriteName(const NameOrId& what, JsonWriter* json) {
  if (what.name.empty()) {
    json->Integer(what.id);
  } else {
    json->Text(what.name);
  }
}

void WriteNames(const std::vector<NameOrId>& names, JsonWriter* json) {
  json->BeginArray(JsonLayout::kInline);
  for (const NameOrId& what : names) WriteName(what, json);
  json->End();
}

void WriteStep(const DecidedStep& step, JsonWriter* json) {
  json->BeginArray(JsonLayout::kInline);
  json->Text(kStepWords[static_cast<size_t>(step.kind)]);
  if (step.kind != StepKind::kLoss) WriteName(step.what, json);
  json->End();
}

// ---- Reading ----

NameOrId ReadName(const JsonView& json) {
  if (json.is_file_id()) return {"", json.Integer()};
  NameOrId what{json.Text(), -1};
  if (json.is_text() && what.name.empty()) json.Fault("a name must not be empty");
  return what;
}

std::vector<NameOrId> ReadNames(const JsonView& json) {
  std::vector<NameOrId> names;
  for (size_t i = 0; i < json.size(); ++i) names.push_back(ReadName(json.at(i)));
  return names;
}

StepKind ReadStepKind(const JsonView& json) {
  return kStepKinds[json.Choice({kStepWords.begin(), kStepWords.end()})];
}

// Reads a step; `read_what` reads its node or tensor.
template <typename ReadWhat>
DecidedStep ReadStep(const JsonView& json, ReadWhat read_what) {
  PollStop();
  if (!json.is_array() || json.size() == 0) {
    json.Fault(
        "must be a step: [\"f\", node], [\"loss\"], [\"b\", node] or [\"free\", tensor]; in a "
        "joint graph [\"r\", operation], [\"out\", value], [\"drop\", value] or [\"in\", value]");
    return {};
  }
  DecidedStep step{ReadStepKind(json.at(0)), {}};
  const size_t length = step.kind == StepKind::kLoss ? 1 : 2;
  if (json.size() != length) {
    json.Fault(fmt::format("must have {} entries", length));
  } else if (length == 2) {
    step.what = read_what(step.kind, json.at(1));
  }
  return step;
}

// Maps the ids of a plan's nodes and tensors to their names, since ids change when a model changes.
// A node or tensor without a unique name keeps its id.
class PlanNames {
 public:
  explicit PlanNames(const JsonView& nodes) {
    for (size_t i = 0; i < nodes.size(); ++i) {
      const JsonView node = nodes.at(i);
      nodes_.Add(node["id"].Integer(), node.TextOr("name", ""));
      const JsonView outputs = node["outputs"];
      for (size_t k = 0; k < outputs.size(); ++k) {
        tensors_.Add(outputs.at(k)["id"].Integer(), outputs.at(k)["name"].Text());
      }
    }
  }

  NameOrId Find(StepKind kind, const JsonView& json) const {
    const bool names_tensor = Step{kind}.is_free() || IsTransfer(kind);
    return (names_tensor ? tensors_ : nodes_).Find(json.Integer());
  }

 private:
  struct Names {
    std::unordered_map<int64_t, std::string> by_id;
    std::unordered_map<std::string, int> uses;

    void Add(int64_t id, std::string name) {
      ++uses[name];
      by_id.emplace(id, std::move(name));
    }
    NameOrId Find(int64_t id) const {
      const auto found = by_id.find(id);
      if (found == by_id.end() || found->second.empty() || uses.at(found->second) > 1) {
        return {"", id};
      }
      return {found->second, -1};
    }
  };
  Names nodes_;
  Names tensors_;
};

Decisions ReadPlanSteps(const JsonView& root) {
  const PlanNames names(root["nodes"]);
  Decisions decisions;
  decisions.form = Form::kOrder;
  const JsonView steps = root["schedule"]["steps"];
  for (size_t i = 0; i < steps.size(); ++i) {
    decisions.order.push_back(ReadStep(
        steps.at(i), [&](StepKind kind, const JsonView& json) { return names.Find(kind, json); }));
  }
  return decisions;
}

// Reports a fault unless the object has exactly one form.
std::optional<Form> FormOf(const JsonView& json) {
  std::optional<Form> form;
  for (size_t i = 0; i < kForms.size(); ++i) {
    if (!json.has(kForms[i])) continue;
    if (form) {
      json.Fault(fmt::format("has both {} and {}; keep only one",
                             kForms[static_cast<size_t>(*form)], kForms[i]));
      return std::nullopt;
    }
    form = static_cast<Form>(i);
  }
  if (!form) json.Fault(fmt::format("must be an object with one of {}", fmt::join(kForms, ", ")));
  return form;
}

}  // namespace

void WriteDecisions(const Decisions& decisions, JsonWriter* json) {
  json->BeginObject(JsonLayout::kLines);
  json->Key(kForms[static_cast<size_t>(decisions.form)]);
  switch (decisions.form) {
    case Form::kKept:
    case Form::kCheckpoints:
      WriteNames(decisions.sets.front(), json);
      break;
    case Form::kMirrorCounts:
      json->BeginObject(JsonLayout::kInline);
      for (const auto& [what, count] : decisions.mirror_counts) {
        json->Key(what.name).Integer(count);
      }
      json->End();
      break;
    case Form::kLowerSets:
      json->BeginArray(JsonLayout::kLines);
      for (const std::vector<NameOrId>& set : decisions.sets) WriteNames(set, json);
      json->End();
      break;
    case Form::kOrder:
      json->BeginArray(JsonLayout::kWrapped);
      for (const DecidedStep& step : decisions.order) WriteStep(step, json);
      json->End();
      break;
  }
  json->End();
}

Decisions ReadDecisions(const JsonView& json) {
  Decisions decisions;
  const std::optional<Form> form = FormOf(json);
  if (!form) return decisions;
  decisions.form = *form;
  const JsonView value = json[kForms[static_cast<size_t>(*form)]];
  switch (*form) {
    case Form::kKept:
    case Form::kCheckpoints:
      decisions.sets.push_back(ReadNames(value));
      break;
    case Form::kMirrorCounts:
      value.ForEachMember([&](const std::string& name, const JsonView& count) {
        if (name.empty()) count.Fault("a name must not be empty");
        decisions.mirror_counts.push_back({{name, -1}, count.Integer(0, kMaxCount)});
      });
      break;
    case Form::kLowerSets:
      for (size_t i = 0; i < value.size(); ++i) {
        decisions.sets.push_back(ReadNames(value.at(i)));
      }
      break;
    case Form::kOrder:
      for (size_t i = 0; i < value.size(); ++i) {
        decisions.order.push_back(
            ReadStep(value.at(i), [](StepKind, const JsonView& what) { return ReadName(what); }));
      }
      break;
  }
  return decisions;
}

Result<Decisions> ReadDecisionsJson(std::string_view text, const std::string& where) {
  CKPLAN_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, where));
  const JsonView root = document.root();
  CheckSchemaVersion(root, /*allow_missing=*/true);
  Decisions decisions = root.has("schedule") ? ReadPlanSteps(root) : ReadDecisions(root);
  CKPLAN_RETURN_IF_ERROR(document.Status());
  return decisions;
}

}  // namespace ckplan
