#include "cli/common/config_file.h"
#include "cli/fuzzing/fuzz_targets.h"
#include "lib/base/check.h"

namespace ckplan {

void FuzzConfig(FuzzInput input) {
  const auto is_section = [](const std::string& name) { return name == "check"; };
  const Result<ConfigFile> file = ParseConfig(TextOf(input), "ckplan.toml", is_section);
  if (!file.ok()) {
    CKPLAN_CHECK(file.error().code == ErrorCode::kUsage, "what is no settings is refused as such");
    CKPLAN_CHECK(file.error().message.starts_with("ckplan.toml:"), "a fault has its line");
    return;
  }
  for (const ConfigEntry& entry : file->entries) {
    CKPLAN_CHECK(entry.section.empty() || entry.section == "check", "only commands have sections");
    CKPLAN_CHECK(entry.where.starts_with("ckplan.toml:"), "a value has its line");
    for (const std::string& text : entry.texts) {
      const Result<ConfigFile> again =
          ParseConfig("key = " + TomlText(text), "ckplan.toml", is_section);
      CKPLAN_CHECK(again.ok(), "what was read can be written");
      CKPLAN_CHECK(again->entries.front().texts.front() == text, "and is read as it was");
    }
  }
}

}  // namespace ckplan
