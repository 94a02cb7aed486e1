// Decides how values are completed: by their choices, by the tables of their names, or as files.
#include <fmt/format.h>

#include <algorithm>

#include "cli/common/completion.h"
#include "lib/files/emit/emitters.h"
#include "lib/files/emit/schemas.h"
#include "lib/planning/plan/knob.h"
#include "lib/planning/plan/request_fields.h"
#include "lib/planning/planner/registry.h"
#include "lib/problem/cost/cost_model.h"
#include "lib/problem/cost/link.h"

namespace ckplan {
namespace {

using Kind = ValueCompletion::Kind;
using Words = std::vector<std::string>;

std::vector<Device> Devices() {
  Result<std::vector<Device>> devices = ListDevices();
  return devices.ok() ? std::move(devices).value() : std::vector<Device>();
}

// Returns the words of a sentence, without commas.
Words WordsOfSentence(std::string_view sentence) {
  Words words;
  while (!sentence.empty()) {
    const std::string_view word = sentence.substr(0, sentence.find_first_of(" ,"));
    if (!word.empty()) words.emplace_back(word);
    sentence.remove_prefix(std::min(word.size() + 1, sentence.size()));
  }
  return words;
}

Words AlgorithmNames() {
  Words words;
  for (const SolverInfo* const info : ListedAlgorithms()) words.emplace_back(info->name);
  return words;
}

Words DeviceNames() {
  Words words;
  for (const Device& device : Devices()) words.push_back(device.name);
  return words;
}

Words LinkNames() {
  Words words;
  const Result<std::vector<LinkPreset>> links = ListLinks();
  if (!links.ok()) return words;
  for (const LinkPreset& link : *links) words.push_back(link.name);
  return words;
}

Words CostModels() {
  Words words = {"flops", "paper", "unit", "file:"};
  for (const Device& device : Devices()) words.push_back("flops:" + device.name);
  return words;
}

// Returns the emitters that the help of the option names, because commands accept different ones.
Words EmitterWords(const OptionDescription& option) {
  const std::vector<std::string> named = WordsOfSentence(option.help);
  Words words;
  for (const Emitter& emitter : AllEmitters()) {
    const bool is_taken = std::find(named.begin(), named.end(), emitter.name) != named.end();
    if (is_taken) words.push_back(fmt::format("{}=", emitter.name));
  }
  return words;
}

Words KnobWords() {
  Words words;
  for (const std::string_view name : KnobNames()) words.push_back(fmt::format("{}=", name));
  return words;
}

Words FieldWords(std::string_view field) {
  Words words;
  const auto& member = std::get<WordsMember>(FieldOf(field).member);
  for (const std::string_view word : member.words) words.emplace_back(word);
  return words;
}

// Returns whether a value of this form is the name of a file.
bool IsFile(std::string_view form) {
  constexpr std::string_view kForms[] = {"FILE", "PLAN",       "MODEL",         "OLD",
                                         "NEW",  "NAME|@FILE", "NAME,...|@FILE"};
  return std::find(std::begin(kForms), std::end(kForms), form) != std::end(kForms);
}

}  // namespace

std::string WordOf(const CommandDescription& command) {
  return command.name.substr(command.name.find(' ') + 1);
}

ValueCompletion CompletionOf(const CommandDescription&, const OptionDescription& option) {
  const std::string flag = option.LongFlag();
  const bool is_list = option.form.find(',') != std::string::npos;
  const Kind words = is_list ? Kind::kList : Kind::kWords;
  if (!option.choices.empty()) return {Kind::kWords, option.choices};
  if (flag == "--algo") {
    Words names = AlgorithmNames();
    if (option.form.ends_with("|all")) names.emplace_back("all");
    return {words, std::move(names)};
  }
  if (flag == "--optimizer") return {words, FieldWords("optimizer")};
  if (flag == "--cost" && option.form == "MODEL") return {Kind::kWords, CostModels(), true};
  if (flag == "--cost") return {Kind::kWords, {"file:"}, true};
  if (flag == "--memory") return {Kind::kWords, DeviceNames()};
  if (flag == "--offload") return {Kind::kWords, LinkNames()};
  if (flag == "--emit") return {Kind::kWords, EmitterWords(option), true};
  if (flag == "--knob") return {Kind::kWords, KnobWords()};
  return {IsFile(option.form) ? Kind::kFiles : Kind::kNothing};
}

ValueCompletion CompletionOf(const ProgramDescription& program, const CommandDescription& command,
                             const PositionalDescription& positional) {
  if (positional.name == "COMMAND") {
    Words words;
    for (const CommandDescription& other : program.commands) words.push_back(WordOf(other));
    return {Kind::kWords, std::move(words)};
  }
  if (positional.name == "SHELL") {
    Words words;
    for (const Shell& shell : AllShells()) words.emplace_back(shell.name);
    return {Kind::kWords, std::move(words)};
  }
  if (positional.name == "DEVICE") return {Kind::kWords, DeviceNames()};
  if (positional.name == "NAME" && WordOf(command) == "schema") {
    Words words;
    for (const EmbeddedSchema& schema : EmbeddedSchemas()) words.emplace_back(schema.name);
    return {Kind::kWords, std::move(words)};
  }
  return {IsFile(positional.name) ? Kind::kFiles : Kind::kNothing};
}

}  // namespace ckplan
