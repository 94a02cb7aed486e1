// Runs names that no file should contain, in a graph, in a model and as file names, through every
// command and every format. All output must be safe to show on a terminal, and JSON, XML and DOT
// must stay valid.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/testing/work_folder.h"
#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/files/emit/json_writer.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

// A forged line is recognised by its first word.
constexpr std::string_view kForged = "FORGED";

constexpr size_t kMegabyte = 1'000'000;
constexpr size_t kLongInModel = 16'000;  // Longer names of models are refused.

std::vector<std::string> NastyNames(size_t longest = kMegabyte) {
  return {"\033[31mred\033[0m",
          "\033]0;title\a",
          "two\nFORGED line",
          "two\r\nFORGED line",
          "tab\there\x0b\x0c",
          "del\x7f",
          std::string("nul\0end", 7),
          "\xc2\x9b"
          "31mc1\xc2\x85",
          "\xe2\x80\xaertl\xe2\x81\xa6\xe2\x80\x8f",
          "\xe2\x80\x8bzero\xef\xbb\xbf\xe2\x80\xa8",
          "\xef\xbf\xbfno character",
          "bad\xff\xfe\xc3(",
          "\x9b"
          "31mraw c1",
          "quotes \" ' ` | , ; <b> & ]]> \\ %0A ::error::",
          "--flag",
          "${HOME} $(id)",
          std::string(longest, 'L')};
}

// ---- A model as protobuf encodes it, since its own classes refuse such names ----

std::string Varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes + static_cast<char>(value);
}

std::string Number(uint32_t field, uint64_t value) { return Varint(field << 3) + Varint(value); }

std::string Message(uint32_t field, const std::string& content) {
  return Varint(field << 3 | 2) + Varint(content.size()) + content;
}

// Returns a float tensor of shape [dim, 8].
std::string ValueInfo(const std::string& name, const std::string& dim) {
  const std::string first = Message(1, dim);
  const std::string shape = Message(2, first + Message(1, Number(1, 8)));
  return Message(1, name) + Message(2, Message(1, Number(1, 1) + shape));
}

// Returns a chain of nodes, one for each name, which is also the name of its result. Every third
// node has an unknown operator, in a domain of that name. `batch` is the message of the first
// dimension.
std::string NastyModel(const std::vector<std::string>& names, const std::string& batch) {
  std::string graph;
  std::string last = "x";
  std::string opsets = Message(8, Number(2, 17));
  for (size_t i = 0; i < names.size(); ++i) {
    const std::string& name = names[i];
    std::string node = Message(1, last) + Message(2, name) + Message(3, name);
    if (i % 3 == 0) {
      node += Message(4, "Op" + name) + Message(7, name);
      opsets += Message(8, Message(1, name) + Number(2, 1));
      graph += Message(13, ValueInfo(name, batch));
    } else {
      node += Message(4, i % 3 == 1 ? "Relu" : "Sigmoid");
    }
    graph += Message(1, node);
    last = name;
  }
  graph += Message(2, names.front()) + Message(11, ValueInfo("x", batch)) +
           Message(12, ValueInfo(last, batch));
  return Number(1, 8) + opsets + Message(7, graph);
}

std::string NastyGraph(const std::vector<std::string>& names) {
  JsonWriter json;
  json.BeginObject(JsonLayout::kLines).Key("name").Text(names.front());
  json.Key("nodes").BeginArray(JsonLayout::kLines);
  for (size_t i = 0; i < names.size(); ++i) {
    json.BeginObject(JsonLayout::kInline).Key("id").Integer(static_cast<int64_t>(i));
    json.Key("name").Text(names[i]).Key("op").Text(names[i]);
    json.Key("bytes").Integer(1000).Key("time").Integer(10).End();
  }
  json.End().Key("edges").BeginArray(JsonLayout::kLines);
  for (size_t i = 1; i < names.size(); ++i) {
    json.BeginArray(JsonLayout::kInline).Integer(static_cast<int64_t>(i) - 1);
    json.Integer(static_cast<int64_t>(i)).End();
  }
  json.End().End();
  return std::move(json).Finish();
}

// ---- Checks of all that is printed and written ----

// Returns the first fault of the text, or "" if it has none.
std::string FaultOf(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const Utf8Character character = Utf8At(text, at);
    const bool is_fine = character.is_valid && (IsPrintable(character.value) || text[at] == '\n');
    if (!is_fine) {
      return fmt::format("byte {:02x} after {}", static_cast<unsigned char>(text[at]),
                         text.substr(at - std::min(at, size_t{40}), std::min(at, size_t{40})));
    }
    at += character.bytes;
  }
  const bool is_forged =
      text.starts_with(kForged) || text.find("\n" + std::string(kForged)) != std::string::npos;
  return is_forged ? "a line that a name has forged" : "";
}

// Removes our own colours and the progress line, which terminals get besides text.
std::string WithoutOurCodes(std::string text) {
  for (const char* const code : {"\033[1m", "\033[2m", "\033[33m", "\033[0m", "\033[K", "\r"}) {
    for (size_t at = text.find(code); at != std::string::npos; at = text.find(code, at)) {
      text.erase(at, std::string_view(code).size());
    }
  }
  return text;
}

bool IsOnPath(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;  // NOLINT
}

enum class Form { kText, kJson, kXml, kDot, kCsv };

void CheckForm(const WorkFolder& workplace, Form form, const std::string& text) {
  if (form == Form::kText) CHECK(text.size() < 40'000);
  if (form == Form::kJson) CHECK(nlohmann::json::accept(text));
  if (form == Form::kCsv) CHECK(text.find('\n') != std::string::npos);
  const bool has_judge =
      (form == Form::kXml && IsOnPath("xmllint")) || (form == Form::kDot && IsOnPath("dot"));
  if (!has_judge) return;
  workplace.Write("judged", text);
  const char* const judge = form == Form::kXml ? "xmllint --noout judged" : "dot -Tcanon judged";
  const ProgramResult result = workplace.Run({judge, "", "", {}, Streams::kApart});
  CAPTURE(result.err);
  CHECK(result.status == 0);
}

struct Run {
  std::string command;  // SOURCE is the model or the graph.
  Form form = Form::kText;
  int status = 0;
  bool has_terminal = true;  // Whether it also runs on a terminal.
};

void CheckRun(const WorkFolder& workplace, const Run& run, const std::string& source) {
  std::string command = run.command;
  for (size_t at = command.find("SOURCE"); at != std::string::npos; at = command.find("SOURCE")) {
    command.replace(at, 6, source);
  }
  CAPTURE(command);
  const ProgramResult result = workplace.Run({command, "", "", {}, Streams::kApart});
  CAPTURE(result.err.substr(0, 2000));
  CHECK(result.status == run.status);
  CHECK(FaultOf(result.out) == "");
  CHECK(FaultOf(result.err) == "");
  CHECK(result.err.size() < 10'000);
  if (!result.out.empty()) CheckForm(workplace, run.form, result.out);
  if (!run.has_terminal || !HasTerminals()) return;
  const ProgramResult shown = workplace.Run({command, "", "", {}, Streams::kTerminal});
  CHECK(shown.status == run.status);
  CHECK(FaultOf(WithoutOurCodes(shown.out)) == "");
}

const std::vector<Run>& Runs() {
  static const std::vector<Run> kRuns = {
      {"ckplan SOURCE --effort quick -o plan.json"},
      {"ckplan SOURCE -a recompute-all -v"},
      {"ckplan SOURCE --effort quick -f json", Form::kJson},
      {"ckplan SOURCE -a exact-dp -f md"},
      {"ckplan SOURCE -a exact-dp -f csv", Form::kCsv},
      {"ckplan SOURCE -a exact-dp --emit dot=-", Form::kDot},
      {"ckplan SOURCE -a exact-dp --emit division-tree=-", Form::kDot},
      {"ckplan SOURCE -a exact-dp -q --emit curve=c.csv && cat c.csv", Form::kCsv},
      {"ckplan SOURCE -a exact-dp -q --emit curve=c.svg && cat c.svg", Form::kXml},
      {"ckplan SOURCE -a exact-dp -q --emit html=c.html && cat c.html", Form::kCsv},
      {"ckplan SOURCE -a exact-dp -b 1", Form::kText, 4},
      {"ckplan SOURCE -D \"$(printf 'a\\033[1m\\nFORGED')=3\"", Form::kText, 2},
      {"ckplan SOURCE --cost file:costs.json", Form::kText, 3},
      {"ckplan compare SOURCE --effort quick"},
      {"ckplan compare SOURCE --effort quick -b 10", Form::kText, 4},
      {"ckplan compare SOURCE --effort quick -b 100% -f md"},
      {"ckplan compare SOURCE --effort quick -b 100% -f csv", Form::kCsv},
      {"ckplan compare SOURCE --effort quick -b 100% -f json", Form::kJson},
      {"ckplan compare SOURCE --effort quick -b 100%,90%"},
      {"ckplan compare SOURCE --effort quick -b 100%,90% -f md"},
      {"ckplan compare SOURCE --effort quick -b 100%,90% -f latex"},
      {"ckplan diff SOURCE -a keep-all,recompute-all -v"},
      {"ckplan diff SOURCE -a keep-all,recompute-all -f md"},
      {"ckplan diff SOURCE -a keep-all,recompute-all -f json", Form::kJson},
      {"ckplan diff SOURCE -a keep-all,recompute-all -q --emit curve=c.svg && cat c.svg",
       Form::kXml},
      {"ckplan graph SOURCE", Form::kJson},
      {"ckplan graph SOURCE -f dot", Form::kDot},
      {"ckplan inspect SOURCE"},
      {"ckplan inspect SOURCE SOURCE"},
      {"ckplan inspect SOURCE -f json", Form::kJson},
      {"ckplan inspect SOURCE -f md"},
      {"ckplan inspect SOURCE -f csv", Form::kCsv},
      {"ckplan check plan.json SOURCE"},
      {"ckplan check plan.json SOURCE -f json", Form::kJson},
      {"ckplan check damaged.json SOURCE", Form::kText, 6},
      {"ckplan check damaged.json SOURCE -f json", Form::kJson, 6},
      {"ckplan check damaged.json SOURCE --annotate github", Form::kText, 6},
      {"ckplan check damaged.json SOURCE --annotate gitlab", Form::kJson, 6},
      {"ckplan check damaged.json SOURCE --annotate junit", Form::kXml, 6},
      {"ckplan check plan.json testdata/graphs/skips.json --annotate junit", Form::kXml, 6},
  };
  return kRuns;
}

// Returns the plan with a peak that its own schedule contradicts, and with the rows of `nodes`
// reversed.
std::string Damaged(const std::string& plan) {
  nlohmann::json damaged = nlohmann::json::parse(plan);
  damaged["result"]["peak_bytes"] = damaged["result"]["peak_bytes"].get<int64_t>() + 1;
  return damaged.dump();
}

void CheckAll(const WorkFolder& workplace, const std::string& source) {
  for (const Run& run : Runs()) {
    CheckRun(workplace, run, source);
    if (&run != &Runs().front()) continue;
    const Result<std::string> plan = ReadWholeFile(workplace.PathOf("plan.json"));
    REQUIRE(plan.ok());
    CHECK(FaultOf(*plan) == "");
    workplace.Write("damaged.json", Damaged(*plan));
  }
}

constexpr const char* kCosts = R"({"schema_version": "1.0", "unit": "ns", "nodes": []})";

// With sanitizers the next test, which runs the same commands over fewer names, is enough.
TEST_CASE("outside names: a graph's names reach no output unescaped" *
          doctest::skip(kHasSanitizers)) {
  const WorkFolder workplace;
  workplace.Write("net.json", NastyGraph(NastyNames()));
  workplace.Write("costs.json", kCosts);
  CheckAll(workplace, "net.json");
}

TEST_CASE("outside names: a model's names reach no output unescaped") {
  const WorkFolder workplace;
  workplace.Write("net.onnx", NastyModel(NastyNames(kLongInModel), Number(1, 4)));
  workplace.Write("costs.json", kCosts);
  CheckAll(workplace, "net.onnx");
  CheckRun(workplace, {"ckplan net.onnx -q --emit onnx=planned.onnx"}, "");
  CheckRun(workplace, {"ckplan check planned.onnx"}, "");
  CheckRun(workplace, {"ckplan apply plan.json net.onnx -o planned.onnx"}, "");
  CheckRun(workplace, {"ckplan apply damaged.json net.onnx -o planned.onnx", Form::kText, 6}, "");
}

TEST_CASE("outside names: dimensions without a size are reported, whatever their names are") {
  const WorkFolder workplace;
  for (const std::string& name : NastyNames(kLongInModel)) {
    CAPTURE(name.substr(0, 40));
    workplace.Write("net.onnx", NastyModel({"a", "b"}, Message(2, name)));
    const bool can_be_bound = WellFormedUtf8(name) == name;  // Other names cannot be in a plan.
    CheckRun(workplace, {"ckplan plan net.onnx", Form::kText, can_be_bound ? 2 : 3}, "");
    CheckRun(workplace, {"ckplan inspect net.onnx", Form::kText, can_be_bound ? 0 : 3}, "");
  }
}

TEST_CASE("outside names: a name of a megabyte in a model is refused with a short message") {
  const WorkFolder workplace;
  workplace.Write("net.onnx", NastyModel({std::string(kMegabyte, 'L'), "b"}, Number(1, 4)));
  CheckRun(workplace, {"ckplan inspect net.onnx", Form::kText, 3}, "");
}

TEST_CASE("outside names: files may have any name") {
  for (const std::string& name : NastyNames()) {
    const bool is_file_name = name.size() < 200 && name.find('\0') == std::string::npos &&
                              name.find('/') == std::string::npos &&
                              name.find('\'') == std::string::npos;
    if (!is_file_name) continue;
    CAPTURE(name);
    const WorkFolder workplace;
    workplace.Write(name + ".json", NastyGraph({"a", "b", "c", "d"}));
    workplace.Write("plan.json", "{}");
    const std::string source = "'./" + name + ".json'";
    for (const char* const command :
         {"ckplan SOURCE -o plan.json", "ckplan SOURCE --emit dot=out.dot", "ckplan inspect SOURCE",
          "ckplan check plan.json SOURCE", "ckplan compare SOURCE -a chen -f csv",
          "ckplan diff SOURCE -a keep-all,recompute-all", "ckplan graph SOURCE"}) {
      CheckRun(workplace, {command, Form::kCsv, 0, /*has_terminal=*/false}, source);
    }
    CheckRun(workplace, {"ckplan SOURCE -o SOURCE", Form::kText, 2}, source);
    CheckRun(workplace, {"ckplan 'no'SOURCE", Form::kText, 3}, source);
    CheckRun(workplace, {"ckplan check SOURCE plan.json --annotate github", Form::kText, 3},
             source);
  }
}

TEST_CASE("outside names: arguments may be any text") {
  const WorkFolder workplace;
  workplace.Write("net.json", NastyGraph({"a", "b"}));
  for (const std::string& name : NastyNames()) {
    if (name.size() > 1000 || name.find('\0') != std::string::npos) continue;
    if (name.find('\'') != std::string::npos) continue;
    CAPTURE(name);
    const std::string quoted = "'" + name + "'";
    for (const std::string& command : std::vector<std::string>{
             "ckplan " + quoted + "x", "ckplan net.json -a " + quoted,
             "ckplan net.json -b=" + quoted, "ckplan net.json --cost=" + quoted,
             "ckplan net.json -D=" + quoted, "ckplan net.json --time-limit=" + quoted,
             "ckplan net.json --emit=" + quoted, "ckplan net.json -f=" + quoted,
             "ckplan net.json --no-" + quoted, "ckplan net.json x " + quoted,
             "ckplan check p.json --fail-on=" + quoted, "ckplan schema " + quoted,
             "ckbench reproduce " + quoted, "ckbench " + quoted}) {
      CheckRun(workplace, {command, Form::kText, 2, /*has_terminal=*/false}, "");
    }
  }
}

}  // namespace
}  // namespace ckplan
