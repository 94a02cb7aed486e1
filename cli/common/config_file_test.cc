#include "cli/common/config_file.h"

#include <doctest/doctest.h>

#include <filesystem>

#include "cli/common/files.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

namespace fs = std::filesystem;
using EntryKind = ConfigEntry::Kind;

bool IsSection(const std::string& name) { return name == "check"; }

Result<ConfigFile> Parsed(std::string_view text) {
  return ParseConfig(text, "dir/ckplan.toml", IsSection);
}

// Changes the current folder, and restores it at the end.
struct InFolder {
  explicit InFolder(const fs::path& folder) { fs::current_path(folder); }
  ~InFolder() { fs::current_path(before); }
  fs::path before = fs::current_path();
};

}  // namespace

TEST_CASE("config: a table may have switches, and lists of lists") {
  const auto file = ParseConfig(
      "[set]\nuse_cache = true\nmask = [[1, 0], [1, 1]]\nn = [2]\nscale = 0.5\ntwo = 2.0\n"
      "scales = [1.0, 1e-7]\n",
      "ckplan.toml", [](const std::string&) { return false; });
  REQUIRE(file.ok());
  REQUIRE(file->entries.size() == 1);
  CHECK(file->entries[0].texts == std::vector<std::string>{"mask=[[1,0],[1,1]]", "n=2", "scale=0.5",
                                                           "scales=1.0,1e-07", "two=2.0",
                                                           "use_cache=true"});
}

TEST_CASE("config: values are read as a command line has them, with their places") {
  const auto file = Parsed(
      "# what is asked for\n"
      "budget = \"60%\"\n"
      "align = 512\n"
      "no-liveness = true\n"
      "freeze = [\n  '*.bias', \"!head*\"\n]\n"
      "dim = { N = 64, T = \"128\" }\n"
      "[input-shape]\n"
      "x = [2, 3, 64]\n"
      "[check]\n"
      "fail-on = [\"peak>16GiB\"]\n");
  REQUIRE(file.ok());
  struct Row {
    std::string section, key;
    EntryKind kind;
    std::vector<std::string> texts;
    std::string where;
  };
  const std::vector<Row> rows = {
      {"", "budget", EntryKind::kText, {"60%"}, "dir/ckplan.toml:2"},
      {"", "align", EntryKind::kNumber, {"512"}, "dir/ckplan.toml:3"},
      {"", "no-liveness", EntryKind::kTruth, {"true"}, "dir/ckplan.toml:4"},
      {"", "freeze", EntryKind::kList, {"*.bias", "!head*"}, "dir/ckplan.toml:5"},
      {"", "dim", EntryKind::kTable, {"N=64", "T=128"}, "dir/ckplan.toml:8"},
      {"", "input-shape", EntryKind::kTable, {"x=2,3,64"}, "dir/ckplan.toml:9"},
      {"check", "fail-on", EntryKind::kList, {"peak>16GiB"}, "dir/ckplan.toml:12"},
  };
  REQUIRE(file->entries.size() == rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    CAPTURE(rows[i].key);
    const ConfigEntry& entry = file->entries[i];
    CHECK(entry.section == rows[i].section);
    CHECK(entry.key == rows[i].key);
    CHECK(entry.kind == rows[i].kind);
    CHECK(entry.texts == rows[i].texts);
    CHECK(entry.where == rows[i].where);
  }
}

TEST_CASE("config: a value that no option takes is refused with its line") {
  const struct {
    std::string text;
    std::string place;
  } kRows[] = {
      {"budget = \n", "dir/ckplan.toml:1: "},
      {"\nbudget = 60%\n", "dir/ckplan.toml:2: "},
      {"a = 1\na = 2\n", "dir/ckplan.toml:2: "},
      {"[dim\nN = 1\n", "dir/ckplan.toml:1: "},
      {"[[.]]\n", "dir/ckplan.toml:1: "},
      {"budg\xC3\xA9t = 1\n", "dir/ckplan.toml:1: "},
      {"\n\nbudget = 0.6\n", "dir/ckplan.toml:3: budget is neither"},
      {"when = 2026-01-01\n", "dir/ckplan.toml:1: when is neither"},
      {"a = 1\n[set]\nn = inf\n", "dir/ckplan.toml:3: n is neither"},
      {"freeze = [\"a\", [1]]\n", "dir/ckplan.toml:1: freeze is neither"},
      {"b = 1.5\na = 2.5\n", "dir/ckplan.toml:1: b is neither"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.text);
    const auto file = Parsed(row.text);
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().code == ErrorCode::kUsage);
    CHECK(file.error().message.starts_with(row.place));
  }
}

TEST_CASE("config: text that is nested too deep, or too large, is refused before it is parsed") {
  const auto repeated = [](std::string_view part, size_t count) {
    std::string text;
    for (size_t i = 0; i < count; ++i) text += part;
    return text;
  };
  const struct {
    std::string text;
    std::string message;
  } kRows[] = {
      {repeated("a.", 99'999) + "a = 1\n", "dir/ckplan.toml:1: a key has more than 16 parts"},
      {"x = 1\n[" + repeated("a . ", 99'999) + "a]\n", "dir/ckplan.toml:2: a key has more"},
      {"\n\n[[" + repeated("\"a\".", 99'999) + "a]]\n", "dir/ckplan.toml:3: a key has more"},
      {"x = { " + repeated("a.", 16) + "a = 1 }\n", "dir/ckplan.toml:1: a key has more"},
      {R"(x = """\"""""")"
       "\n" +
           repeated("'b'.", 16) + "a = 1\n",
       "dir/ckplan.toml:2: a key"},
      {"x = ''' \"'''''\n" + repeated("a.", 16) + "a = 1\n", "dir/ckplan.toml:2: a key has more"},
      {R"(x = "\\" # ")"
       "\n" +
           repeated("a.", 16) + "a = 1\n",
       "dir/ckplan.toml:2: a key has"},
      {"x = [\n" + repeated("[", 100'000), "dir/ckplan.toml:2: lists and tables are nested more"},
      {"x = " + repeated("{a=[", 100'000), "dir/ckplan.toml:1: lists and tables are nested more"},
      {"x = '" + repeated("a", kMaxConfigBytes) + "'\n", "dir/ckplan.toml: it has 1048583 bytes"},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.message);
    const auto file = Parsed(row.text);
    REQUIRE_FALSE(file.ok());
    CHECK(file.error().code == ErrorCode::kUsage);
    CHECK_MESSAGE(file.error().message.starts_with(row.message), file.error().message);
  }
}

TEST_CASE("config: dots and brackets in strings, comments and lists do not count as nesting") {
  const std::string many = std::string(300, '.') + std::string(300, '[');
  const auto file =
      Parsed("# " + many + "\na = \"" + many + "\\\"" + many + "\" # '" + many + "\nb = '" + many +
             "'\nc = \"\"\"\n" + many + "\"\"" + many + "\"\"\"\"\"\nd = '''" + many +
             "'''\nfreeze = [\n" + "  'layer.0.a.b.c', 'layer.1.a.b.c', 'layer.2.a.b.c', # " +
             many + "\n  '', \"\", 'layer.3.a.b.c',\n]\ndim.N = 3\n");
  REQUIRE_MESSAGE(file.ok(), file.error().message);
  REQUIRE(file->entries.size() == 6);
  CHECK(file->entries[2].texts.front() == many + "\"\"" + many + "\"\"");
  CHECK(file->entries[4].texts.size() == 6);
}

TEST_CASE("config: the file is looked for up to the folder of the repository") {
  const TemporaryFolder temporary;
  const fs::path root = fs::path(temporary / "root");
  const fs::path inner = root / "a" / "b";
  fs::create_directories(inner);
  const InFolder in(inner);
  CHECK_FALSE(FindConfigFile());
  REQUIRE(WriteFiles({{(root / "ckplan.toml").string(), ""}}).ok());
  CHECK_FALSE(FindConfigFile());  // There is no repository.
  fs::create_directory(root / ".git");
  CHECK(FindConfigFile() == "../../ckplan.toml");
  REQUIRE(WriteFiles({{(root / "a" / "ckplan.toml").string(), ""}}).ok());
  CHECK(FindConfigFile() == "../ckplan.toml");
  REQUIRE(WriteFiles({{"ckplan.toml", ""}}).ok());
  CHECK(FindConfigFile() == "ckplan.toml");
}

TEST_CASE("config: a file above a repository is not used") {
  const TemporaryFolder temporary;
  const fs::path root = fs::path(temporary / "root");
  fs::create_directories(root / ".git");
  REQUIRE(WriteFiles({{(temporary / "ckplan.toml"), ""}}).ok());
  const InFolder in(root);
  CHECK_FALSE(FindConfigFile());
}

TEST_CASE("config: text that is written can be read again") {
  const std::string text = "a\"b\\c\n\x7f\xc3\xa9'";
  const auto file = Parsed("key = " + TomlText(text) + "\n");
  REQUIRE(file.ok());
  CHECK(file->entries.front().texts.front() == text);
}

}  // namespace ckplan
