// Tests markers in files, and files whose weights stay in place.

#include "lib/files/model/annotate.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "lib/base/hash.h"
#include "lib/files/model/model_impl.h"
#include "lib/files/model/testing/proto.h"
#include "lib/planning/plan/plan.h"
#include "lib/problem/schedule/lower.h"

namespace ckplan {
namespace {

constexpr const char* kGraph =
    "g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}> "
    "{ h = Mul(x, w) v = Identity(h) c = Neg(w) r = Relu(v) y = Mul(r, c) }";

Plan PlanFor(const ModelGraph& lowered) {
  Plan plan;
  plan.request.algorithm = "chen-sqrt";
  plan.request.budget = Budget::Of(Bytes(1000));
  plan.figures.peak = Bytes(900);
  plan.decisions.resize(lowered.graph.nodes().size());
  plan.schedule = KeepAllInOwnOrder(lowered.graph);
  plan.decisions[NodeId(1)] = {NodeAction::kRecompute, 3, 2};
  return plan;
}

Annotation AnnotationWith(const Model& model, const ModelGraph& lowered, const Plan& plan,
                          const std::string& json) {
  return MakeAnnotation(FileRowsOf(model, lowered), lowered.graph, plan, json);
}

std::string MarkerOf(const onnx::NodeProto& node, const std::string& key) {
  for (const auto& entry : node.metadata_props()) {
    if (entry.key() == key) return entry.value();
  }
  return "none";
}

onnx::ModelProto ReadProto(const TemporaryFile& file) {
  onnx::ModelProto proto;
  REQUIRE(proto.ParseFromString(file.Read()));
  return proto;
}

// Writes the annotated model and commits it; returns whether both succeeded.
bool Annotated(const TemporaryFile& in, const Annotation& annotation, const TemporaryFile& out) {
  const auto outcome = AnnotateModel(in.path(), annotation, out.path());
  return outcome.ok() && outcome->file->Commit().ok();
}

TEST_CASE("annotate: nodes carry their decisions, the model carries the plan") {
  const onnx::ModelProto proto = ParseGraph(kGraph);
  const Model model = LoadProto(proto, BatchOf(2)).value();
  const ModelGraph lowered = LowerProto(proto, BatchOf(2));
  const TemporaryFile in("in.onnx");
  const TemporaryFile out("out.onnx");
  in.Write(proto.SerializeAsString());
  REQUIRE(Annotated(in, AnnotationWith(model, lowered, PlanFor(lowered), "{plan}"), out));

  onnx::ModelProto marked = ReadProto(out);
  const auto& nodes = marked.graph().node();
  CHECK(MarkerOf(nodes[0], "ckplan.action") == "keep");
  CHECK(MarkerOf(nodes[0], "ckplan.segment") == "0");
  CHECK(MarkerOf(nodes[1], "ckplan.action") == "view");
  CHECK(MarkerOf(nodes[2], "ckplan.action") == "none");
  CHECK(MarkerOf(nodes[3], "ckplan.action") == "recompute");
  CHECK(MarkerOf(nodes[3], "ckplan.segment") == "3");
  CHECK(MarkerOf(nodes[3], "ckplan.recompute_count") == "2");
  CHECK(ReadEmbeddedPlan(out.path()).value() == "{plan}");
  CHECK(ReadEmbeddedPlan(in.path()).value() == std::nullopt);
  std::map<std::string, std::string> entries;
  for (const auto& entry : marked.metadata_props()) entries[entry.key()] = entry.value();
  CHECK(entries["ckplan.plan_sha256"] == Sha256Hex("{plan}"));
  CHECK(entries["ckplan.algorithm"] == "chen-sqrt");
  CHECK(entries["ckplan.budget_bytes"] == "1000");
  CHECK(entries["ckplan.peak_bytes"] == "900");

  // Without the markers, it equals the model before.
  marked.clear_metadata_props();
  for (auto& node : *marked.mutable_graph()->mutable_node()) node.clear_metadata_props();
  CHECK(marked.SerializeAsString() == proto.SerializeAsString());
}

TEST_CASE("annotate: doing it again replaces the markers and keeps foreign metadata") {
  onnx::ModelProto proto = ParseGraph(kGraph);
  auto* foreign = proto.mutable_graph()->mutable_node(0)->add_metadata_props();
  foreign->set_key("team");
  foreign->set_value("vision");
  const Model model = LoadProto(proto, BatchOf(2)).value();
  const ModelGraph lowered = LowerProto(proto, BatchOf(2));
  const TemporaryFile in("in.onnx");
  const TemporaryFile once("once.onnx");
  const TemporaryFile twice("twice.onnx");
  in.Write(proto.SerializeAsString());
  Plan plan = PlanFor(lowered);
  REQUIRE(Annotated(in, AnnotationWith(model, lowered, plan, "old"), once));
  plan.decisions[NodeId(0)] = {NodeAction::kTransient, 1, 0};
  const Annotation annotation = AnnotationWith(model, lowered, plan, "new");
  REQUIRE(Annotated(once, annotation, twice));
  const onnx::ModelProto marked = ReadProto(twice);
  CHECK(marked.graph().node(0).metadata_props_size() == 5);
  CHECK(MarkerOf(marked.graph().node(0), "team") == "vision");
  CHECK(MarkerOf(marked.graph().node(0), "ckplan.action") == "transient");
  CHECK(ReadEmbeddedPlan(twice.path()).value() == "new");
  // Annotating in place works, too.
  REQUIRE(Annotated(twice, annotation, twice));
  CHECK(ReadProto(twice).SerializeAsString() == marked.SerializeAsString());
}

TEST_CASE("annotate: an annotated model is the same model, and lowers to the same graph") {
  const TemporaryFile out("out.onnx");
  const std::string path = "testdata/models/resnet18.onnx";
  const Result<Model> before = LoadModel(path, BatchOf(4));
  REQUIRE(before.ok());
  LowerOptions options;
  options.cost = ParseCostModel("unit").value();
  const Result<ModelGraph> lowered = LowerModel(*before, options);
  REQUIRE(lowered.ok());
  Plan plan;
  plan.decisions.resize(lowered->graph.nodes().size());
  plan.schedule = KeepAllInOwnOrder(lowered->graph);
  const auto outcome = AnnotateModel(
      path, AnnotationWith(*before, *lowered, plan, std::string(100'000, '+')), out.path());
  REQUIRE(outcome.ok());
  CHECK(outcome->warnings.size() == 1);  // Its external weights are in another folder.
  CHECK_FALSE(std::filesystem::exists(out.path()));
  REQUIRE(outcome->file->Commit().ok());
  const Result<Model> after = LoadModel(out.path(), BatchOf(4));
  REQUIRE(after.ok());
  CHECK(after->identity().sha256 == before->identity().sha256);
  const Result<ModelGraph> again = LowerModel(*after, options);
  REQUIRE(again.ok());
  CHECK(again->graph.nodes() == lowered->graph.nodes());
}

TEST_CASE("annotate: a model of another size is refused, and nothing is written") {
  const TemporaryFile in("in.onnx");
  const TemporaryFile out("out.onnx");
  in.Write(ParseGraph(kGraph).SerializeAsString());
  const auto refused = AnnotateModel(in.path(), Annotation{}, out.path());
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.error().code == ErrorCode::kInvalidInput);
  CHECK_FALSE(std::filesystem::exists(out.path()));
  Annotation five;
  five.nodes.resize(5);
  const auto unwritable = AnnotateModel(in.path(), five, "no/such/folder/out.onnx");
  REQUIRE_FALSE(unwritable.ok());
  CHECK(unwritable.error().code == ErrorCode::kIo);
}

// Writes a model with 3 GB of inline weights: its head is written, the weights are a hole in the
// file.
void WriteSparseModel(const TemporaryFile& file, uint64_t weight_bytes) {
  const auto varint = [](uint64_t value) {
    std::string bytes;
    for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
    return bytes + static_cast<char>(value);
  };
  onnx::ModelProto head = ParseGraph("g (float[N,4096] x) => (float[N,K] y) { y = MatMul(x, w) }");
  const std::string graph = head.graph().SerializeAsString();
  head.clear_graph();
  onnx::TensorProto tensor;
  tensor.set_name("w");
  tensor.set_data_type(onnx::TensorProto::FLOAT);
  tensor.add_dims(4096);
  tensor.add_dims(static_cast<int64_t>(weight_bytes / 4 / 4096));
  const std::string raw_header = "\x4a" + varint(weight_bytes);  // raw_data
  const std::string weights = tensor.SerializeAsString() + raw_header;
  const std::string tensor_header = "\x2a" + varint(weights.size() + weight_bytes);  // initializer
  const std::string prefix = graph + tensor_header + weights;
  const std::string whole =
      head.SerializeAsString() + "\x3a" + varint(prefix.size() + weight_bytes) + prefix;  // graph
  file.Write(whole);
  std::filesystem::resize_file(file.path(), whole.size() + weight_bytes);
}

TEST_CASE("load: a file above 2 GB costs what its graph costs") {
  const TemporaryFile file("large.onnx");
  const uint64_t weight_bytes = uint64_t{3} << 30;
  WriteSparseModel(file, weight_bytes);
  const Result<Model> model = LoadModel(file.path(), BatchOf(4));
  REQUIRE_MESSAGE(model.ok(), model.error().message);
  CHECK(model->impl().proto->ByteSizeLong() < 1000);
  LowerOptions options;
  options.cost = ParseCostModel("unit").value();
  const auto lowered = LowerModel(*model, options);
  REQUIRE(lowered.ok());
  CHECK(lowered->graph.constants().parameters == Bytes(static_cast<int64_t>(weight_bytes)));
}

}  // namespace

// Tests the checker of markers: every damage to each marker is found.

namespace {

// A view, a constant, a call with two operations in it, and branches.
constexpr const char* kMarkedModel =
    "g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}> "
    "{ h = Mul(x, w) v = Identity(h) c = Neg(w) s = local.Twice(v) r = Mul(s, c) y = Mul(r, h) } "
    "<opset_import: [\"\" : 20], domain: \"local\"> "
    "Twice (a) => (b) { t = Sigmoid(a) b = Tanh(t) }";

struct Marked {
  onnx::ModelProto proto;
  Annotation annotation;
};

onnx::ModelProto WithLocalFunctions(const char* text) {
  return ParseText(std::string("<ir_version: 10, opset_import: [\"\" : 20, \"local\" : 1]> ") +
                   text);
}

Plan PlanOf(const ModelGraph& lowered, const Schedule& schedule) {
  Plan plan;
  plan.request.algorithm = "chen-sqrt";
  plan.request.budget = Budget::Of(Bytes(1000));
  plan.figures.peak = Bytes(900);
  plan.schedule = schedule;
  plan.decisions.resize(lowered.graph.nodes().size());
  for (const Step& step : schedule.steps) {
    if (step.kind == StepKind::kForward) ++plan.decisions[step.node()].recompute_count;
  }
  for (NodeDecision& decision : plan.decisions) {
    if (--decision.recompute_count > 0) decision.action = NodeAction::kRecompute;
  }
  return plan;
}

// A model, and the markers that a plan with given steps writes into it.
class Planned {
 public:
  explicit Planned(const onnx::ModelProto& proto)
      : model_(LoadProto(proto, BatchOf(2)).value()), lowered_(LowerProto(proto, BatchOf(2))) {}

  const TensorGraph& graph() const { return lowered_.graph; }
  Annotation Of(const Schedule& schedule) const {
    return MakeAnnotation(FileRowsOf(model_, lowered_), graph(), PlanOf(lowered_, schedule),
                          "{plan}");
  }

 private:
  Model model_;
  ModelGraph lowered_;
};

// Keeps everything but the output of the first node, which waits on the host.
Schedule WithCopies(const TensorGraph& graph) {
  const TensorId moved = graph.node(NodeId(0)).outputs.front();
  Schedule schedule = KeepAllInOwnOrder(graph);
  auto loss = std::find(schedule.steps.begin(), schedule.steps.end(), Step::Loss());
  loss = schedule.steps.insert(loss, {Step::Out(moved), Step::Drop(moved)});
  schedule.steps.insert(loss + 3, Step::In(moved));
  return schedule;
}

Marked MarkedModel(bool has_copies = false) {
  const onnx::ModelProto proto = WithLocalFunctions(kMarkedModel);
  const Planned planned(proto);
  const TensorGraph& graph = planned.graph();
  Marked marked{{}, planned.Of(has_copies ? WithCopies(graph) : KeepAllInOwnOrder(graph))};
  const TemporaryFile in("unmarked.onnx");
  const TemporaryFile out("marked.onnx");
  in.Write(proto.SerializeAsString());
  auto outcome = AnnotateModel(in.path(), marked.annotation, out.path());
  REQUIRE(outcome.ok());
  REQUIRE(outcome->file->Commit().ok());
  REQUIRE(marked.proto.ParseFromString(out.Read()));
  return marked;
}

std::vector<std::string> FaultsOf(const onnx::ModelProto& proto, const Annotation& expected) {
  const TemporaryFile file("judged.onnx");
  file.Write(proto.SerializeAsString());
  const Result<FoundMarkers> found = ReadMarkers(file.path());
  REQUIRE(found.ok());
  return FindMarkerFaults(*found, expected);
}

using Entries = google::protobuf::RepeatedPtrField<onnx::StringStringEntryProto>;

void AddEntry(const std::string& key, Entries* entries) {
  entries->Add()->set_key(key);
  entries->rbegin()->set_value("1");
}

// Damages the entries in every way; `is_found` says whether the damaged model has faults.
void DamageEach(Entries* entries, const std::function<bool()>& is_found) {
  const Entries whole = *entries;
  for (int i = 0; i < whole.size(); ++i) {
    CAPTURE(whole[i].key());
    (*entries)[i].set_value(whole[i].value() + "1");
    CHECK(is_found());
    (*entries)[i].set_value("");
    CHECK(is_found());
    *entries = whole;
    (*entries)[i].set_key(whole[i].key() + "1");
    CHECK(is_found());
    *entries = whole;
    entries->DeleteSubrange(i, 1);
    CHECK(is_found());
    *entries = whole;
    *entries->Add() = whole[i];
    CHECK(is_found());
    *entries = whole;
  }
  AddEntry("ckplan.added", entries);
  CHECK(is_found());
  *entries = whole;
  AddEntry("team", entries);  // An entry of another program.
  CHECK_FALSE(is_found());
  *entries = whole;
}

void CheckDamages(bool has_copies) {
  const Marked marked = MarkedModel(has_copies);
  onnx::ModelProto proto = marked.proto;
  CHECK(FaultsOf(proto, marked.annotation).empty());
  const auto is_found = [&] { return !FaultsOf(proto, marked.annotation).empty(); };
  DamageEach(proto.mutable_metadata_props(), is_found);
  for (auto& node : *proto.mutable_graph()->mutable_node()) {
    CAPTURE(node.op_type());
    DamageEach(node.mutable_metadata_props(), is_found);
  }
  AddEntry("ckplan.action", proto.mutable_functions(0)->mutable_node(0)->mutable_metadata_props());
  CHECK(is_found());
}

TEST_CASE("check markers: every damage to every marker is found") { CheckDamages(false); }

TEST_CASE("check markers: every damage to a plan with copies is found") { CheckDamages(true); }

TEST_CASE("check markers: a fault says where it is, what is there and what should be") {
  const Marked marked = MarkedModel();
  onnx::ModelProto proto = marked.proto;
  for (auto& entry : *proto.mutable_graph()->mutable_node(0)->mutable_metadata_props()) {
    if (entry.key() == "ckplan.segment") entry.set_value("\x1b[2J");
  }
  proto.mutable_graph()->mutable_node(5)->set_name("last");
  proto.mutable_graph()->mutable_node(5)->clear_metadata_props();
  const std::vector<std::string> faults = FaultsOf(proto, marked.annotation);
  REQUIRE(faults.size() == 5);
  CHECK(faults[0] == "node 0 \"\": marker ckplan.segment is \"\\x1b[2J\", but the plan says \"0\"");
  CHECK(faults[1] == "node 5 \"last\": marker ckplan.action is missing");
}

TEST_CASE("check markers: markers of another version are one fault, which says what to do") {
  const Marked marked = MarkedModel();
  onnx::ModelProto proto = marked.proto;
  for (auto& node : *proto.mutable_graph()->mutable_node()) node.clear_metadata_props();
  for (auto& entry : *proto.mutable_metadata_props()) {
    if (entry.key() == "ckplan.schema_version") entry.set_value("1.0");
  }
  const std::vector<std::string> faults = FaultsOf(proto, marked.annotation);
  REQUIRE(faults.size() == 1);
  CHECK(faults.front().find("`ckplan apply`") != std::string::npos);
}

TEST_CASE("check markers: copies need markers of version 3, and other plans have version 2") {
  const Marked with = MarkedModel(true);
  const Marked without = MarkedModel(false);
  CHECK(with.annotation.model.at("ckplan.schema_version") == "3.0");
  CHECK(without.annotation.model.at("ckplan.schema_version") == "2.0");
  for (const auto& [proto, expected] :
       {std::pair(&with.proto, &without.annotation), std::pair(&without.proto, &with.annotation)}) {
    const std::vector<std::string> faults = FaultsOf(*proto, *expected);
    REQUIRE(faults.size() == 1);
    CHECK(faults.front().find("its markers must have version " +
                              expected->model.at("ckplan.schema_version")) != std::string::npos);
  }
}

TEST_CASE("annotate: a main graph in two parts of a file is numbered throughout") {
  onnx::ModelProto whole = ParseGraph(
      "g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}> "
      "{ a = Mul(x, w) b = Tanh(a) y = Mul(b, a) }");
  onnx::ModelProto rest;  // Protobuf appends its nodes to those of the first part.
  *rest.mutable_graph()->add_node() = whole.graph().node(2);
  onnx::ModelProto first = whole;
  first.mutable_graph()->mutable_node()->RemoveLast();
  const Planned planned(whole);
  const Annotation annotation = planned.Of(KeepAllInOwnOrder(planned.graph()));
  const TemporaryFile in("parts.onnx");
  const TemporaryFile out("marked_parts.onnx");
  in.Write(first.SerializeAsString() + rest.SerializeAsString());
  auto outcome = AnnotateModel(in.path(), annotation, out.path());
  REQUIRE(outcome.ok());
  REQUIRE(outcome->file->Commit().ok());
  const Result<FoundMarkers> found = ReadMarkers(out.path());
  REQUIRE(found.ok());
  CHECK(FindMarkerFaults(*found, annotation).empty());
}

// ---- The steps in markers ----

std::string StepsIn(const Annotation& annotation) {
  const auto steps = annotation.model.find("ckplan.steps");
  return steps == annotation.model.end() ? "by the rule" : steps->second;
}

// m1 ─▶ m2 ─▶ y, and y reads m1 as well. Their numbers in the file are 0, 2 and 3; 1 is a view.
constexpr const char* kChain =
    "g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}> "
    "{ m1 = Sigmoid(x) v = Identity(m1) m2 = Tanh(v) y = Mul(m2, m1) }";

Schedule StepsOf(const std::vector<Step>& steps) { return {steps, FreePolicy::kLiveness}; }

TEST_CASE("markers: steps that follow the rule are not written down") {
  const Planned planned(ParseGraph(kChain));
  CHECK(StepsIn(planned.Of(KeepAllInOwnOrder(planned.graph()))) == "by the rule");
  for (const int32_t dropped : {0, 1, 2}) {
    IdVector<NodeId, bool> is_kept(planned.graph().nodes().size(), true);
    is_kept[NodeId(dropped)] = false;
    const Schedule schedule = LowerStrategy(planned.graph(), KeptSet{is_kept});
    CHECK(StepsIn(planned.Of(schedule)) == "by the rule");
  }
}

TEST_CASE("markers: steps that the rule does not give are written down") {
  const Planned planned(ParseGraph(kChain));
  const NodeId a(0), b(1), c(2);
  using S = Step;
  const auto written = [&](const std::vector<Step>& steps) {
    return StepsIn(planned.Of(StepsOf(steps)));
  };
  // a runs again twice.
  CHECK(written({S::Forward(a), S::Forward(b), S::Forward(a), S::Forward(c), S::Loss(),
                 S::Backward(c), S::Backward(b), S::Forward(a), S::Backward(a)}) ==
        "forward 0 2 0 3 loss backward 3 2 forward 0 backward 0");
  // b runs again once, earlier than needed.
  CHECK(written({S::Forward(a), S::Forward(b), S::Forward(c), S::Forward(b), S::Loss(),
                 S::Backward(c), S::Backward(b), S::Backward(a)}) ==
        "forward 0 2 3 2 loss backward 3 2 0");
}

TEST_CASE("markers: frees that are steps of their own are written down") {
  const Planned planned(ParseGraph(kChain));
  Schedule schedule = KeepAllInOwnOrder(planned.graph());
  schedule.frees = FreePolicy::kExplicit;
  for (const Node& node : planned.graph().nodes()) {
    schedule.steps.push_back(Step::Free(node.outputs.front()));
  }
  CHECK(StepsIn(planned.Of(schedule)) == "forward 0 2 3 loss backward 3 2 0 free 0:o0 2:o0 3:o0");
}

TEST_CASE("markers: copies to the host and back are written down") {
  const Planned planned(ParseGraph(kChain));
  const Annotation annotation = planned.Of(WithCopies(planned.graph()));
  CHECK(StepsIn(annotation) == "forward 0 2 3 out 0:o0 drop 0:o0 loss in 0:o0 backward 3 2 0");
  CHECK(annotation.nodes[0].at("ckplan.action") == "offload");
  CHECK(annotation.nodes[2].at("ckplan.action") == "keep");
}

TEST_CASE("markers: gradients and statistics are copied by names of their own") {
  const Planned planned(
      ParseGraph("g (float[N,4] x) => (float[N,4] y) <float[4] w = {1,2,3,4}> "
                 "{ m = Sigmoid(x) n = LayerNormalization(m, w) y = Mul(n, m) }"));
  const TensorGraph& graph = planned.graph();
  const std::vector<TensorId>& outputs = graph.node(NodeId(1)).outputs;
  REQUIRE(outputs.size() == 2);
  const Step out_of_gradient{
      StepKind::kOut, static_cast<int32_t>(graph.tensors().size()) + outputs.front().index()};
  Schedule schedule = KeepAllInOwnOrder(graph);
  schedule.steps.insert(schedule.steps.begin() + 2, Step::Out(outputs.back()));
  schedule.steps.push_back(out_of_gradient);
  const std::string steps = StepsIn(planned.Of(schedule));
  CHECK(steps == "forward 0 1 out 1:s forward 2 loss backward 2 1 0 out 1:g0");
}

TEST_CASE("markers: operations of a call have their own numbers") {
  const Planned planned(WithLocalFunctions(kMarkedModel));
  const Annotation annotation = planned.Of(KeepAllInOwnOrder(planned.graph()));
  CHECK(StepsIn(annotation) == "forward 0 3.0 3.1 4 5 loss backward 5 4 3.1 3.0 0");
  CHECK(annotation.nodes[3].at("ckplan.operations") == "Sigmoid Tanh");
  CHECK(annotation.nodes[3].at("ckplan.backward_reads") == "o0;o0");
  CHECK(annotation.nodes[5].at("ckplan.backward_reads") == "i0 i1");
  CHECK(annotation.nodes[1] == Markers{{"ckplan.action", "view"}});
  CHECK(annotation.nodes[2].empty());
}

}  // namespace

}  // namespace ckplan
