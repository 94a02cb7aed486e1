// Changes, deletes, doubles and moves every value of plans in turn. Every reader of the plan must
// notice, unless docs/plan-format.md lists the value among those that no checker can verify.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "lib/base/file.h"
#include "lib/files/emit/json_decisions.h"
#include "lib/files/emit/json_plan.h"
#include "lib/files/input/load_source.h"
#include "lib/files/input/plan_file.h"
#include "lib/planning/planner/planner.h"
#include "lib/planning/planner/source.h"
#include "lib/testing/instances.h"

namespace ckplan {
namespace {

using nlohmann::ordered_json;
using Place = ordered_json::json_pointer;

// The listed places, as path components; "*" stands for any key or number.
using Pattern = std::vector<std::string>;

Pattern Components(const std::string& place) {
  Pattern components;
  std::string rest = place;
  while (!rest.empty()) {
    const size_t end = rest.find('/', 1);
    components.push_back(rest.substr(1, end == std::string::npos ? end : end - 1));
    rest = end == std::string::npos ? "" : rest.substr(end);
  }
  return components;
}

// The first column of the table below the heading.
std::vector<std::string> ListOfTheDocument() {
  const std::string page = *ReadWholeFile("docs/plan-format.md");
  const size_t heading = page.find("## What the checker cannot know\n");
  REQUIRE(heading != std::string::npos);
  const std::string section = page.substr(heading, page.find("\n## ", heading + 1) - heading);
  std::vector<std::string> places;
  for (size_t at = section.find("\n| `/"); at != std::string::npos;
       at = section.find("\n| `/", at + 1)) {
    const size_t begin = at + 4;
    places.push_back(section.substr(begin, section.find('`', begin) - begin));
  }
  return places;
}

bool Covers(const Pattern& pattern, const Pattern& place) {
  if (place.size() < pattern.size()) return false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] != "*" && pattern[i] != place[i]) return false;
  }
  return true;
}

void ListPlaces(const ordered_json& value, const Place& at, std::vector<Place>* places) {
  if (!at.empty()) places->push_back(at);
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) ListPlaces(member, at / key, places);
  } else if (value.is_array()) {
    for (size_t i = 0; i < value.size(); ++i) ListPlaces(value[i], at / i, places);
  }
}

// Words that occur somewhere in plans, so that each choice is changed to all others.
const char* const kWords[] = {
    "",         "x",         "1.1",       "liveness", "explicit",  "optimal",  "feasible",
    "keep",     "time",      "unit",      "memory",   "transient", "minimal",  "torch",
    "sgd",      "momentum",  "adam",      "node",     "layer",     "graph",    "flops:a100-40g",
    "exact-dp", "auto",      "recompute", "f",        "b",         "free",     "loss",
    "t",        "g",         "w",         "model",    "1",         "ns",       "float32",
    "bf16",     "chen-sqrt", "0",         "B",        "C",         "segments", "point",
    "k",        "bytes",     "out",       "drop",     "in",        "half",     "full",
};
// Words of requests for several devices.
const char* const kDeviceWords[] = {"1f1b",  "gpipe", "fsdp", "zero1",   "zero2",
                                    "zero3", "gemm2", "w1",   "arriving"};
// Words of certificates.
const char* const kProofWords[] = {"run-once",   "constraints",  "order-cut",   "one-cut",
                                   "moments",    "free-moments", "working-set", "own-order",
                                   "plan-order", "any-order"};

// Other values for a scalar.
std::vector<ordered_json> Changes(const ordered_json& value) {
  std::vector<ordered_json> changes = {nullptr};
  if (value.is_number_integer()) {
    const auto number = value.get<int64_t>();
    for (const int64_t other :
         {number + 1, number - 1, 2 * number, int64_t{0}, int64_t{1} << 62,
          std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::min()}) {
      changes.emplace_back(other);
    }
  } else if (value.is_boolean()) {
    changes.emplace_back(!value.get<bool>());
  } else if (value.is_string()) {
    for (const char* word : kWords) changes.emplace_back(word);
    for (const char* word : kProofWords) changes.emplace_back(word);
    for (const char* word : kDeviceWords) changes.emplace_back(word);
    changes.emplace_back(value.get<std::string>() + "x");
  } else {
    changes.emplace_back(7);
  }
  std::erase(changes, value);
  return changes;
}

// Returns the text of a document with one member doubled: the key of an object, or the element of
// an array.
std::string Doubled(const ordered_json& value, const Place& at, const Place& place) {
  if (!value.is_structured()) return value.dump();
  std::string text;
  const auto add = [&](const std::string& key, const ordered_json& member, const Place& here) {
    for (int i = 0; i < (here == place ? 2 : 1); ++i) {
      text += (text.empty() ? "" : ",") + key + Doubled(member, here, place);
    }
  };
  if (value.is_object()) {
    for (const auto& [key, member] : value.items()) {
      add(ordered_json(key).dump() + ":", member, at / key);
    }
    return "{" + text + "}";
  }
  for (size_t i = 0; i < value.size(); ++i) add("", value[i], at / i);
  return "[" + text + "]";
}

struct Damage {
  std::string what;
  std::string text;
};

std::vector<Damage> DamagesAt(const ordered_json& plan, const Place& place) {
  std::vector<Damage> damages;
  for (const ordered_json& change : Changes(plan[place])) {
    ordered_json damaged = plan;
    damaged[place] = change;
    damages.push_back({"changed to " + change.dump(), damaged.dump()});
  }
  ordered_json damaged = plan;
  ordered_json& parent = damaged[place.parent_pointer()];
  if (parent.is_array()) {
    parent.erase(std::stoul(place.back()));
  } else {
    parent.erase(place.back());
  }
  damages.push_back({"deleted", damaged.dump()});
  damages.push_back({"doubled", Doubled(plan, Place(), place)});
  const size_t number = parent.is_array() ? std::stoul(place.back()) : 0;
  if (number == 0) return damages;
  const Place before = place.parent_pointer() / (number - 1);
  // Steps in another order may be another plan that is just as good.
  const bool is_step = place.parent_pointer() == Place("/schedule/steps");
  if (is_step || plan[before] == plan[place]) return damages;
  damaged = plan;
  std::swap(damaged[before], damaged[place]);
  damages.push_back({"swapped with the one before", damaged.dump()});
  return damages;
}

class PlanOnDisk {
 public:
  PlanOnDisk()
      : path_((std::filesystem::temp_directory_path() /
               ("ckplan_damage_" + std::to_string(getpid()) + ".json"))
                  .string()) {}
  ~PlanOnDisk() { std::filesystem::remove(path_); }

  // Whether the reader and the checkers accept the text as a plan of the model.
  bool Passes(const std::string& text, const std::string& model) const {
    std::ofstream(path_) << text;
    const Result<PlanFile> file = ReadPlanFile(path_, model, {});
    if (file.ok()) return FindPlanFileFaults(*file).empty();
    CHECK(file.error().code != ErrorCode::kInternal);
    return false;
  }

 private:
  std::string path_;
};

// No offset of a plan may lie between two multiples of its alignment. The graphs here have no empty
// tensors, whose offsets mean nothing.
bool IsAligned(const std::string& text) {
  const auto plan = ordered_json::parse(text);
  const auto alignment = plan["request"]["align_bytes"].get<int64_t>();
  for (const ordered_json& offset : plan["arena"]["offset_bytes"]) {
    if (offset.get<int64_t>() % alignment != 0) return false;
  }
  return true;
}

struct Example {
  const char* name;
  const char* source;
  void (*ask)(PlanRequest*);
};

const Example kExamples[] = {
    {"segments, within a budget", "testdata/graphs/skips.json",
     [](PlanRequest* request) {
       request->algorithm = "exact-dp";
       request->budget = Budget::Of(Bytes(20'000));
     }},
    {"recursive", "testdata/graphs/chain.json",
     [](PlanRequest* request) { request->algorithm = "chen-recursive"; }},
    {"of a paper's budget, by layers, with rounded sizes", "testdata/graphs/net.json",
     [](PlanRequest* request) {
       request->algorithm = "exact-dp";
       request->granularity = Granularity::kLayer;
       request->paper_budget = {Budget::Kind::kMin, Bytes(0), 0};
       request->align_bytes = 512;
     }},
    {"nothing recomputed", "testdata/graphs/net.json",
     [](PlanRequest* request) { request->algorithm = "keep-all"; }},
    {"with explicit frees", "testdata/graphs/skips.json",
     [](PlanRequest* request) {
       request->algorithm = "chen-sqrt";
       request->setting = {"segments", 2};
       request->uses_liveness = false;
       request->cost_model = "unit";
     }},
    {"with a proven bound", "testdata/graphs/skips.json",
     [](PlanRequest* request) {
       request->algorithm = "best";
       request->effort = SearchEffort::kQuick;
       request->budget = Budget::Of(Bytes(20'000));
     }},
    {"in any order", "testdata/graphs/skips.json",
     [](PlanRequest* request) {
       request->algorithm = "best";
       request->effort = SearchEffort::kQuick;
       request->order = StepOrder::kFree;
       request->budget = Budget::Of(Bytes(20'000));
     }},
    {"for no budget, with a curve", "testdata/graphs/skips.json",
     [](PlanRequest* request) {
       request->algorithm = "best";
       request->effort = SearchEffort::kQuick;
     }},
    {"with constraints", "testdata/graphs/skips.json",
     [](PlanRequest* request) {
       request->algorithm = "keep-all";
       request->keep = {"a1"};
       request->recompute = {"b2"};
       request->never_rerun = {"stem"};
     }},
    {"given", "testdata/graphs/chain.json",
     [](PlanRequest* request) {
       request->algorithm = "given";
       request->decisions = Decisions{Decisions::Form::kCheckpoints, {{{"relu1", -1}}}, {}, {}};
     }},
    {"of a part of a file, with a branch that an input decides",
     "testdata/regress/if_of_input.onnx",
     [](PlanRequest* request) {
       request->algorithm = "recompute-all";
       request->dims = {{"N", 256}};
       request->outputs = {"y"};
       request->set_inputs = {"use_cache_branch=[1]"};
     }},
    {"of a file with an operator of its own", "testdata/regress/own_operator.onnx",
     [](PlanRequest* request) {
       request->algorithm = "recompute-all";
       request->dims = {{"N", 8}};
       request->op_shapes = {"acme::Norm=like:0", "acme::Project=[0.0,4]"};
     }},
    {"of a file whose weights are inputs", "testdata/regress/weights_as_inputs.onnx",
     [](PlanRequest* request) {
       request->algorithm = "recompute-all";
       request->weights = {"*.weight", "*.bias"};
     }},
    {"of a model, with dimensions, parameters and their optimizer", "testdata/models/tiny_mlp.onnx",
     [](PlanRequest* request) {
       request->algorithm = "recompute-all";
       request->dims = {{"N", 8}};
       request->optimizer = Optimizer::kAdam8Bit;
       request->has_master_weights = true;
       request->activation_type = ActivationType::kBFloat16;
       request->autograd = Autograd::kTorch;
     }},
    {"of one stage of a pipeline, named by its cuts", "testdata/models/tiny_mlp.onnx",
     [](PlanRequest* request) {
       request->algorithm = "chen-sqrt";
       request->dims = {{"N", 8}};
       request->pipeline = PipelineStage{2, 0};
       request->micro_batches = 4;
       request->schedule = PipelineSchedule::kGPipe;
       request->stage_cuts = {"gemm3"};
     }},
    {"of one of several devices", "testdata/models/tiny_mlp.onnx",
     [](PlanRequest* request) {
       request->algorithm = "recompute-all";
       request->dims = {{"N", 8}};
       request->optimizer = Optimizer::kAdam;
       request->sharding = Sharding{ShardingSystem::kZero2, 4};
     }},
    {"with frozen parameters", "testdata/models/tiny_mlp.onnx",
     [](PlanRequest* request) {
       request->algorithm = "recompute-all";
       request->dims = {{"N", 8}};
       request->freeze = {"w0"};
     }},
    {"of a joint graph, within a budget, with constraints", "testdata/graphs/joint_net.json",
     [](PlanRequest* request) {
       request->budget = Budget::Of(Bytes(33'000));
       request->never_rerun = {"linear"};
     }},
    {"of a joint graph, with rounded sizes", "testdata/graphs/joint_net.json",
     [](PlanRequest* request) {
       request->algorithm = "torch-budget";
       request->align_bytes = 64;
     }},
    {"whose values move to the host", "testdata/graphs/joint_small.json",
     [](PlanRequest* request) {
       request->algorithm = "given";
       request->decisions =
           ReadDecisionsJson(ReadWholeFile("testdata/decisions/joint_small_offload.json").value(),
                             "decisions")
               .value();
       request->offload = Link{"pcie4", 1'000'000'000'000, 1'000'000'000'000, 1, Duplex::kFull};
       request->host_budget = Bytes(10'000);
       request->never_offload = {"mix2"};
     }},
    {"of a model whose gradients arrive", "testdata/models/tiny_mlp.onnx",
     [](PlanRequest* request) {
       request->algorithm = "dtr";
       request->dims = {{"N", 64}};
       request->optimizer = Optimizer::kMomentum;
       request->gradients = ParameterGradients::kArriving;
     }},
};

std::string PlanTextOf(const Example& example) {
  PlanRequest request;
  example.ask(&request);
  const Result<Source> source = LoadSource(example.source, request);
  REQUIRE(source.ok());
  const Result<Plan> plan = MakePlan(*source, request, {}, nullptr);
  REQUIRE(plan.ok());
  return source->joint ? WritePlanJson(*plan, *source->joint) : WritePlanJson(*plan, source->graph);
}

// With sanitizers, the hundreds of runs of the program take many minutes, so only every eighth
// place is damaged.
constexpr size_t kEvery = kHasSanitizers ? 8 : 1;

}  // namespace

TEST_CASE("plan damage: every change is noticed, or listed as one that no checker can notice") {
  const std::vector<std::string> listed = ListOfTheDocument();
  std::set<std::string> used;
  const PlanOnDisk disk;
  for (const Example& example : kExamples) {
    CAPTURE(example.name);
    const std::string text = PlanTextOf(example);
    REQUIRE(disk.Passes(text, example.source));
    const auto plan = ordered_json::parse(text);
    std::vector<Place> places;
    ListPlaces(plan, Place(), &places);
    CHECK(places.size() > 100);
    for (size_t i = 0; i < places.size(); i += kEvery) {
      const Place& place = places[i];
      for (const Damage& damage : DamagesAt(plan, place)) {
        if (!disk.Passes(damage.text, example.source)) continue;
        CHECK(IsAligned(damage.text));
        bool is_listed = false;
        for (const std::string& entry : listed) {
          if (!Covers(Components(entry), Components(place.to_string()))) continue;
          is_listed = true;
          used.insert(entry);
        }
        CAPTURE(place.to_string());
        CAPTURE(damage.what);
        CHECK(is_listed);
      }
    }
  }
  for (const std::string& entry : listed) {
    if (kEvery > 1) break;
    CAPTURE(entry);
    CHECK(used.count(entry) == 1);  // The list contains no place that is verified.
  }
}

}  // namespace ckplan
