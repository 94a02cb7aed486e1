#include "lib/testing/graph_text.h"

#include <charconv>
#include <map>
#include <utility>

namespace ckplan {

namespace {

using Edges = std::vector<std::pair<int32_t, int32_t>>;

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\n";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpaces) - begin + 1);
}

// Removes and returns the text before `separator`, or the whole text if there is none.
std::string_view TakeUntil(std::string_view* text, std::string_view separator) {
  const size_t at = text->find(separator);
  const std::string_view part = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view{} : text->substr(at + separator.size());
  return Trim(part);
}

int64_t ParseNumber(std::string_view text) {
  int64_t number = -1;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
  CKPLAN_CHECK(code == std::errc() && end == text.data() + text.size() && number >= 0,
               "bytes and costs in a graph text are whole numbers");
  return number;
}

class TextReader {
 public:
  void ReadPath(std::string_view path) {
    int32_t from = -1;
    while (!path.empty()) {
      const int32_t to = ReadMention(TakeUntil(&path, "->"));
      if (from >= 0) edges.emplace_back(from, to);
      from = to;
    }
  }

  std::vector<TextVertex> vertices;
  Edges edges;

 private:
  int32_t ReadMention(std::string_view mention) {
    const bool is_declaration = mention.find(':') != std::string_view::npos;
    const std::string name(TakeUntil(&mention, ":"));
    CKPLAN_CHECK(!name.empty(), "each node in a graph text has a name");
    const auto [place, is_new] = positions_.emplace(name, static_cast<int32_t>(vertices.size()));
    CKPLAN_CHECK(is_new == is_declaration,
                 "a node in a graph text is declared once, at its first mention");
    if (is_new) {
      const Bytes bytes(ParseNumber(TakeUntil(&mention, "@")));
      const Cost cost(mention.empty() ? 1 : ParseNumber(Trim(mention)));
      vertices.push_back({name, bytes, cost});
    }
    return place->second;
  }

  std::map<std::string, int32_t> positions_;
};

TensorGraph CreateOrStop(TensorGraphParts parts) {
  return TensorGraph::Create(std::move(parts)).value();
}

// Renumbers tensors so that tensor i is the output of node i, and makes file ids match.
TensorGraph MatchTensorIds(const TensorGraph& graph) {
  IdVector<TensorId, TensorId> renamed(graph.tensors().size());
  TensorGraphParts parts = PartsOf(graph);
  for (const NodeId id : graph.nodes().ids()) {
    const TensorId old = graph.node(id).outputs.front();
    renamed[old] = TensorId(id.index());
    parts.tensors[renamed[old]] = graph.tensor(old);
    parts.tensors[renamed[old]].file_id = id.index();
    parts.nodes[id].file_id = id.index();
  }
  for (Node& node : parts.nodes) {
    for (auto* list : {&node.inputs, &node.outputs, &node.backward_reads}) {
      for (TensorId& tensor : *list) tensor = renamed[tensor];
    }
  }
  parts.outputs.clear();
  for (const NodeId id : graph.nodes().ids()) {
    if (graph.tensor(graph.node(id).outputs.front()).consumers.empty()) {
      parts.outputs.push_back(TensorId(id.index()));
    }
  }
  return CreateOrStop(std::move(parts));
}

}  // namespace

TensorGraph GraphFromVertices(std::string name, const std::vector<TextVertex>& vertices,
                              const Edges& edges) {
  TensorGraphParts parts;
  parts.name = std::move(name);
  for (const TextVertex& vertex : vertices) {
    const auto position = static_cast<int32_t>(parts.nodes.size());
    Tensor tensor;
    tensor.file_id = position;
    tensor.name = vertex.name;
    tensor.bytes = vertex.bytes;
    parts.tensors.push_back(tensor);
    Node node;
    node.file_id = position;
    node.name = vertex.name;
    node.outputs = {TensorId(position)};
    node.forward_cost = vertex.cost;
    node.backward_cost = vertex.cost;
    parts.nodes.push_back(node);
  }
  for (const auto& [from, to] : edges) parts.nodes[NodeId(to)].inputs.push_back(TensorId(from));
  for (Node& node : parts.nodes) {
    node.backward_reads = node.inputs;
    node.backward_reads.push_back(node.outputs.front());
  }
  return MatchTensorIds(CreateOrStop(std::move(parts)));
}

TensorGraph GraphFromText(std::string_view text) {
  TextReader reader;
  while (!text.empty()) reader.ReadPath(TakeUntil(&text, ";"));
  CKPLAN_CHECK(!reader.vertices.empty(), "a graph text declares at least one node");
  return GraphFromVertices("text", reader.vertices, reader.edges);
}

TensorGraph ChainOf(const std::vector<int64_t>& bytes) {
  std::vector<TextVertex> vertices;
  std::vector<std::pair<int32_t, int32_t>> edges;
  for (size_t i = 0; i < bytes.size(); ++i) {
    vertices.push_back({std::string("n").append(std::to_string(i)), Bytes(bytes[i]), Cost(1)});
    if (i > 0) edges.emplace_back(static_cast<int32_t>(i) - 1, static_cast<int32_t>(i));
  }
  return GraphFromVertices("chain", vertices, edges);
}

JointGraph GraphOfOps(const std::vector<SmallOp>& ops, std::optional<size_t> first_backward) {
  JointGraphParts parts;
  for (size_t i = 0; i < ops.size(); ++i) {
    Value value;
    value.file_id = static_cast<int64_t>(i);
    value.name = ops[i].op;
    value.bytes = Bytes(ops[i].bytes);
    const ValueId id = parts.values.push_back(std::move(value));
    Operation op;
    op.file_id = static_cast<int64_t>(i);
    op.name = ops[i].op;
    op.op = ops[i].op;
    op.phase = first_backward && i >= *first_backward ? Phase::kBackward : Phase::kForward;
    op.cost = Cost(ops[i].cost);
    for (const int32_t read : ops[i].reads) op.reads.emplace_back(read);
    op.writes.push_back(id);
    parts.ops.push_back(std::move(op));
    parts.results = {id};
  }
  return JointGraph::Create(std::move(parts)).value();
}

}  // namespace ckplan
