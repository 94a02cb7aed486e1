// Runs ckexec over the emulated GPU, as a user would run it on a real one: profile, plan, apply,
// validate.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "cli/testing/run_program.h"
#include "lib/files/emit/schemas.h"
#include "lib/testing/schema_validator.h"
#include "lib/testing/temporary_folder.h"

namespace ckplan {
namespace {

using nlohmann::json;

struct SmallModel {
  std::string name;
  std::string sizes;
  bool has_products = true;
  bool has_convolutions = false;
  bool has_attention_of_cudnn = false;  // In bfloat16.
};

const SmallModel kMlp{"tiny_mlp", "-D N=8"};
const SmallModel kSqueezeNet{"squeezenet1_1", "-D N=1 --input-shape x=1,3,64,64", false, true};
const SmallModel kBert{"small_bert_32", "-D N=2 --fuse attention", true, false, true};
const SmallModel kModels[] = {kMlp,
                              kSqueezeNet,
                              {"resnet18", "-D N=2 --input-shape x=2,3,32,32", true, true},
                              {"small_bert", "-D N=2"},
                              {"small_gpt2", "-D N=2"},
                              {"small_bert", "-D N=2 --fuse attention"},
                              {"small_gpt2", "-D N=2 --fuse attention"},
                              kBert,
                              {"small_gpt2_32", "-D N=2 --fuse attention", true, false, true}};

constexpr const char* kMeasured = "--cost file:costs.json";

// Returns the steps that run everything once, and that keep each result of the forward pass which
// later steps read only after a while on the host meanwhile.
json OrderWithMoves(const json& graph) {
  std::map<size_t, std::vector<json>> moves;  // By the position of the run before which they come.
  const json& ops = graph["ops"];
  const auto has = [](const json& list, const json& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  std::set<int64_t> shared;
  for (const json& value : graph["values"]) {
    if (value.contains("alias_of")) shared.insert(value["alias_of"].get<int64_t>());
  }
  for (const json& value : graph["values"]) {
    const json& id = value["id"];
    if (value["bytes"] == 0 || value.contains("alias_of") || shared.count(id) > 0) continue;
    std::optional<size_t> last;  // The last step so far that makes or reads it.
    for (size_t at = 0; at < ops.size(); ++at) {
      const bool is_made = has(ops[at]["writes"], id);
      if (is_made && ops[at]["phase"] != "forward") break;
      if (!is_made && !(last && has(ops[at]["reads"], id))) continue;
      if (last && at - *last > 3) {
        moves[*last + 1].push_back({"out", id});
        moves[*last + 2].push_back({"drop", id});
        moves[at].push_back({"in", id});
        break;
      }
      last = at;
    }
  }
  json order = json::array();
  for (size_t at = 0; at < ops.size(); ++at) {
    for (const json& move : moves[at]) order.push_back(move);
    order.push_back({"r", ops[at]["id"]});
  }
  return order;
}

// A folder with the files of one model, and the commands that a user would type in it.
class Session {
 public:
  Session(const SmallModel& model, bool is_half) : model_(model), is_half_(is_half) {}

  ProgramResult Profile(const std::string& fault = "") const {
    return ProfileAs("--backend cuda --runs 1 -q -o costs.json", fault);
  }
  ProgramResult ProfileAs(const std::string& how, const std::string& fault = "") const {
    return Run(fmt::format("{} profile {} {} --workspace-limit 16KiB {} {}", CKEXEC_EMULATED,
                           Path(), model_.sizes, is_half_ ? "--bf16" : "", how),
               fault);
  }
  ProgramResult Plan() const { return PlanBy(kMeasured, kMeasured); }
  // `files` names again the files that the plan is made by.
  ProgramResult PlanBy(const std::string& costs, const std::string& files) const {
    return Run(
        fmt::format("{0} {1} {2} {3} --align 256 --algo chen-sqrt {4} -q -o plan.json && {0} apply "
                    "plan.json {1} {5} -q -o planned.onnx",
                    CKPLAN_BINARY, Path(), model_.sizes, costs,
                    is_half_ ? "--activation-type bf16" : "", files));
  }
  // Makes a plan that moves values to the host and back.
  ProgramResult PlanToMove() const {
    const std::string graph = fmt::format("{} graph {} {} {} --align 256 {} --joint -o -",
                                          CKPLAN_BINARY, Path(), model_.sizes, kMeasured, type());
    const ProgramResult found = Run(graph);
    CAPTURE(found.err);
    REQUIRE(found.status == 0);
    const json order = {{"order", OrderWithMoves(json::parse(found.out))}};
    std::ofstream(folder_ / "order.json") << order.dump();
    return Run(
        fmt::format("{0} {1} {2} {3} {4} --align 256 --algo given --decisions order.json "
                    "--offload pcie4 -q -o plan.json && {0} apply plan.json {1} {3} -q -o "
                    "planned.onnx",
                    CKPLAN_BINARY, Path(), model_.sizes, kMeasured, type()));
  }
  ProgramResult Validate(const std::string& fault = "", const std::string& option = "") const {
    return ValidateBy(fmt::format("{} {}", kMeasured, option), fault);
  }
  ProgramResult ValidateBy(const std::string& options, const std::string& fault = "") const {
    return Run(fmt::format("{} validate planned.onnx {} --backend cuda --runs 1 --workspace-limit "
                           "16KiB -f json",
                           CKEXEC_EMULATED, options),
               fault);
  }

 private:
  const char* type() const { return is_half_ ? "--activation-type bf16" : ""; }
  std::string Path() const {
    return fmt::format("'{}/testdata/models/{}.onnx'", CKPLAN_PROJECT_DIR, model_.name);
  }
  ProgramResult Run(const std::string& command, const std::string& fault = "") const {
    ProgramRun run;
    run.command = command;
    run.folder = folder_.path().string();
    if (!fault.empty()) run.environment = {"CKEXEC_EMULATED_FAULT=" + fault};
    run.cpu_seconds *= 10;
    ProgramResult result = RunProgram(run);
    return result;
  }

  TemporaryFolder folder_;
  SmallModel model_;
  bool is_half_;
};

// What ckexec_emulated prints when it ends.
struct Emulated {
  int64_t kernels = 0, products = 0, convolutions = 0, attentions = 0, copies = 0, allocations = 0,
          pooled = 0;
  bool is_clean = false;
};

Emulated EmulatedIn(const std::string& text) {
  const std::regex line(
      "emulated: (\\d+) kernels, (\\d+) products, (\\d+) convolutions, (\\d+) attentions, "
      "(\\d+) copies, (\\d+) allocations, (\\d+) of the pool\n");
  std::smatch found;
  if (!std::regex_search(text, found, line)) return {};
  const auto number = [&](size_t i) { return std::stoll(found[i].str()); };
  const bool is_clean =
      text.find("left: 0 allocations, 0 streams, 0 events, 0 queued, 0 objects of libraries\n") !=
      std::string::npos;
  return {number(1), number(2), number(3), number(4), number(5), number(6), number(7), is_clean};
}

void CheckEmulated(const ProgramResult& result, const SmallModel& model) {
  CAPTURE(result.err);
  CHECK(result.status == 0);
  const Emulated emulated = EmulatedIn(result.err);
  CHECK(emulated.is_clean);
  CHECK(emulated.kernels > 0);
  CHECK((emulated.products > 0) == model.has_products);
  CHECK(emulated.copies > 0);
  CHECK(emulated.allocations > 0);
  CHECK((emulated.convolutions > 0) == model.has_convolutions);
}

TEST_CASE("emulated cuda: plans of small networks are proven in the arena and with the pool") {
  for (const SmallModel& model : kModels) {
    for (const bool is_half : {false, true}) {
      CAPTURE(model.name);
      CAPTURE(model.sizes);
      CAPTURE(is_half);
      const Session session(model, is_half);
      CheckEmulated(session.Profile(), model);
      const ProgramResult planned = session.Plan();
      CAPTURE(planned.err);
      REQUIRE(planned.status == 0);
      const ProgramResult validated = session.Validate();
      CheckEmulated(validated, model);
      CHECK(EmulatedIn(validated.err).pooled > 0);
      CHECK((EmulatedIn(validated.err).attentions > 0) ==
            (is_half && model.has_attention_of_cudnn));
      const auto report = nlohmann::json::parse(validated.out, nullptr, false);
      REQUIRE(report.is_object());
      CHECK(report["ok"] == true);
      CHECK(report["gradients"]["parameters"] > 0);
      CHECK(report["gradients"]["differing"].empty());
      const bool has_attention =
          model.name.starts_with("small_bert") || model.name.starts_with("small_gpt2");
      const bool is_on_host =
          report["notes"].dump().find("the host computes ") != std::string::npos;
      CHECK(is_on_host == (has_attention && !(is_half && model.has_attention_of_cudnn)));
      CHECK(report["plan"]["counted_peak"]["total_bytes"] <
            report["keep_all"]["counted_peak"]["total_bytes"]);
    }
  }
}

TEST_CASE("emulated cuda: plans that move values to the host are proven") {
  for (const SmallModel& model : kModels) {
    for (const bool is_half : {false, true}) {
      CAPTURE(model.name);
      CAPTURE(is_half);
      const Session session(model, is_half);
      CHECK(session.Profile().status == 0);
      const ProgramResult planned = session.PlanToMove();
      CAPTURE(planned.err);
      REQUIRE(planned.status == 0);
      for (const std::string streams : {"", "side streams hurry"}) {
        CAPTURE(streams);
        const ProgramResult validated = session.Validate(streams);
        CheckEmulated(validated, model);
        const auto report = json::parse(validated.out, nullptr, false);
        REQUIRE(report.is_object());
        CHECK(report["ok"] == true);
        const json& run = report["plan"];
        CHECK(run["counted_peak"]["total_bytes"] <
              report["keep_all"]["counted_peak"]["total_bytes"]);
        CHECK(run["counted_peak"]["total_bytes"] == run["predicted_peak_bytes"]);
        CHECK(run["host"]["peak_bytes"] > 0);
        CHECK(run["host"]["peak_bytes"] == run["host"]["predicted_peak_bytes"]);
        CHECK(run["host"]["counted_peak_bytes"] == run["host"]["predicted_peak_bytes"]);
      }
    }
  }
}

TEST_CASE("emulated cuda: streams that do not wait for each other are found") {
  const Session session(kSqueezeNet, false);
  CHECK(session.Profile().status == 0);
  CHECK(session.PlanToMove().status == 0);
  const ProgramResult result = session.Validate("no stream waits for another");
  CAPTURE(result.err);
  CHECK(result.status == 6);
  CHECK(result.err.find("the host returned other bytes than were copied to it") !=
        std::string::npos);
}

// Each fault is one of the GPU, of a library or of the code that calls them. It ends the program at
// the call (70), or the plan is not proven (6).
TEST_CASE("emulated cuda: a planted fault is found") {
  struct Row {
    std::string fault;
    int status;
    std::string message;
  };
  const Row rows[] = {
      {"a kernel is lost", 6, "the plan is not proven"},
      {"a product is not the same twice", 6, "the plan is not proven"},
      {"memory of the pool is used again at once", 6, "the plan is not proven"},
      {"nobody waits for the stream", 70, "memory is freed after all work that may use it"},
      {"a copy is a byte too long", 70, "the GPU accesses only allocated memory"},
      {"memory is kept", 70, "left: "},
      {"descriptors are kept", 70, " objects of libraries"},
      {"a leading dimension is too small", 70, "a leading dimension covers the rows"},
      {"the workspace of a product is not aligned", 70, "a workspace is aligned to 256 bytes"},
      {"the workspace of a convolution is too small", 70,
       "a call gets the workspace that it requires"},
      {"a convolution has a stride too many", 70, "output size matches its input size"},
      {"a convolution reads another tensor", 70, "the GPU accesses only allocated memory"},
      {"an engine of a convolution hides that it is not deterministic", 6,
       "the plan is not proven"},
      {"a graph loses its last piece of work", 6, "in a step that was recorded"},
      {"a graph loses work the second time", 6, "in a recorded step"},
  };
  const auto prepare = [](const Session& session) {
    CHECK(session.Profile().status == 0);
    CHECK(session.Plan().status == 0);
  };
  const Session plain(kMlp, false);
  const Session convolutions(kSqueezeNet, false);
  prepare(plain);
  prepare(convolutions);
  CHECK(plain.Validate().status == 0);
  for (const Row& row : rows) {
    CAPTURE(row.fault);
    const bool needs_convolutions = std::string(row.fault).find("convolution") != std::string::npos;
    const bool needs_graphs = std::string(row.fault).find("graph") != std::string::npos;
    const ProgramResult result = (needs_convolutions ? convolutions : plain)
                                     .Validate(row.fault, needs_graphs ? "--graph" : "");
    CAPTURE(result.err);
    CHECK(result.status == row.status);
    CHECK(result.err.find(row.message) != std::string::npos);
    CHECK_FALSE((result.status == 0 && EmulatedIn(result.err).is_clean));
  }
}

TEST_CASE("emulated cuda: attention with a workspace that is too small is found") {
  const Session session(kBert, true);
  CHECK(session.Profile().status == 0);
  CHECK(session.Plan().status == 0);
  const ProgramResult result = session.Validate("the workspace of an attention is too small");
  CAPTURE(result.err);
  CHECK(result.status == 70);
  CHECK(result.err.find("a call gets the workspace that it requires") != std::string::npos);
}

TEST_CASE("emulated cuda: timed steps run as graphs, with the gradients of the step") {
  for (const SmallModel& model : {kMlp, kSqueezeNet}) {
    for (const bool is_half : {false, true}) {
      CAPTURE(model.name);
      CAPTURE(is_half);
      const Session session(model, is_half);
      CHECK(session.Profile().status == 0);
      CHECK(session.Plan().status == 0);
      const ProgramResult validated = session.Validate("", "--graph");
      CheckEmulated(validated, model);
      const auto report = nlohmann::json::parse(validated.out, nullptr, false);
      REQUIRE(report.is_object());
      CHECK(report["ok"] == true);
      CHECK(report["plan"]["seconds"] > 0);
    }
  }
}

TEST_CASE("emulated cuda: a step in which the host computes operators is no graph") {
  const Session session(kBert, false);
  CHECK(session.Profile().status == 0);
  CHECK(session.Plan().status == 0);
  const ProgramResult validated = session.Validate("", "--graph");
  CHECK(validated.status != 0);
  CHECK(validated.err.find("leave out --graph") != std::string::npos);
}

// What a GPU or its driver may lack, without a fault of anybody.
TEST_CASE("emulated cuda: a plan is proven where the pool is fragmented, and where there is none") {
  const Session session(kMlp, false);
  CHECK(session.Profile().status == 0);
  CHECK(session.Plan().status == 0);
  for (const std::string lack : {"the pool is fragmented", "the driver has no pools"}) {
    CAPTURE(lack);
    const ProgramResult result = session.Validate(lack);
    CAPTURE(result.err);
    CHECK(result.status == 0);
    CHECK(EmulatedIn(result.err).is_clean);
    const auto report = nlohmann::json::parse(result.out, nullptr, false);
    REQUIRE(report.is_object());
    CHECK(report["ok"] == true);
    for (const char* run : {"keep_all", "plan"}) {
      CHECK(report[run]["driver_peak_bytes"].is_null());
      CHECK(report[run]["counted_peak"]["total_bytes"] == report[run]["predicted_peak_bytes"]);
    }
    const bool has_note = report["notes"].dump().find("too fragmented") != std::string::npos;
    CHECK(has_note == (lack == "the pool is fragmented"));
  }
}

TEST_CASE("emulated cuda: the report says what may be computed in TF32") {
  const Session session(kMlp, false);
  CHECK(session.Profile().status == 0);
  CHECK(session.Plan().status == 0);
  struct Row {
    const char* option;
    const char* said;
  };
  for (const Row& row :
       {Row{"", "cuDNN 9.19"}, Row{"--tf32 none", "cuDNN 9.19"},
        Row{"--tf32 convolutions", "cuDNN 9.19, TF32 in convolutions"},
        Row{"--tf32 all", "cuDNN 9.19, TF32"}, Row{"--allow-tf32", "cuDNN 9.19, TF32"}}) {
    CAPTURE(row.option);
    const ProgramResult result = session.Validate("", row.option);
    CHECK(result.status == 0);
    CHECK(result.out.find(fmt::format("{}\",", row.said)) != std::string::npos);
  }
}

TEST_CASE("emulated cuda: a driver older than the kernels is refused with what to install") {
  const ProgramResult result = Session(kMlp, false).Profile("the driver is older than the kernels");
  CAPTURE(result.err);
  CHECK(result.status == 3);
  CHECK(result.err.find(
            "ckexec: the cuda backend cannot run here: its driver supports CUDA 13.0, and "
            "this ckexec was built for 13.0, whose PTX that driver cannot translate; "
            "install a driver") == 0);
  CHECK(EmulatedIn(result.err).is_clean);
}

// The workspaces of a described GPU are those that operators ask for on the GPU itself, so a plan
// that was made without a GPU is proven on it.
TEST_CASE("emulated cuda: a device that is not there needs the workspaces of one that is") {
  const auto nodes_of = [](const ProgramResult& result) {
    CAPTURE(result.err);
    REQUIRE(result.status == 0);
    const auto file = nlohmann::json::parse(result.out, nullptr, false);
    REQUIRE(file.is_object());
    return file["nodes"];
  };
  for (const SmallModel& model : {kMlp, kSqueezeNet, kBert}) {
    CAPTURE(model.name);
    const Session session(model, model.has_attention_of_cudnn);
    const auto there = nodes_of(session.ProfileAs("--backend cuda --runs 1 -o -"));
    const ProgramResult described = session.ProfileAs("--device h100 -o -");
    CHECK(EmulatedIn(described.err).kernels == 0);
    const auto absent = nodes_of(described);
    CHECK(SchemaValidator(FindSchema("workspaces")->text)
              .Accepts(nlohmann::json::parse(described.out)));
    REQUIRE(absent.size() == there.size());
    size_t engines = 0;
    for (size_t i = 0; i < there.size(); ++i) {
      for (const char* key : {"name", "forward_workspace_bytes", "backward_workspace_bytes"}) {
        CHECK(absent[i][key] == there[i][key]);
      }
      if (absent[i].contains("engines")) engines += absent[i]["engines"].size();
    }
    CHECK((engines > 0) == (model.has_convolutions || model.has_attention_of_cudnn));
    const bool says_so =
        described.err.find("attention of 2 nodes is computed by cuDNN") != std::string::npos;
    CHECK(says_so == model.has_attention_of_cudnn);
    const ProgramResult written = session.ProfileAs("--device h100 -o workspaces.json");
    CHECK(written.status == 0);
    CHECK(written.out.find("next: ckplan ") != std::string::npos);
    CHECK(written.out.find(model.sizes + " ") != std::string::npos);  // All that was typed.
    const ProgramResult planned = session.PlanBy("--cost flops:h100 --workspaces workspaces.json",
                                                 "--workspaces workspaces.json");
    CAPTURE(planned.err);
    REQUIRE(planned.status == 0);
    CheckEmulated(session.ValidateBy("--workspaces workspaces.json"), model);
  }
}

TEST_CASE("emulated cuda: it is said why the host computes attention") {
  const Session session({"small_bert", "-D N=2 --fuse attention"}, true);
  const ProgramResult described = session.ProfileAs("--device h100 -o -");
  CAPTURE(described.err);
  REQUIRE(described.status == 0);
  const std::string why = "its heads have 6 and 6 elements, but cuDNN requires multiples of 8";
  CHECK(described.err.find("the host computes 2 FusedAttention nodes, with copies there and "
                           "back: " +
                           why) != std::string::npos);
  CHECK(described.out.find(why) != std::string::npos);
  CHECK(SchemaValidator(FindSchema("workspaces")->text)
            .Accepts(nlohmann::json::parse(described.out)));
}

}  // namespace
}  // namespace ckplan
