#include "cli/fuzzing/testdata_graphs.h"

#include <string>

#include "lib/base/file.h"
#include "lib/files/emit/json_graph.h"
#include "lib/files/emit/json_joint_graph.h"

namespace ckplan {
namespace {

constexpr const char* kGraphs = CKPLAN_PROJECT_DIR "/testdata/graphs/";

TensorGraph ReadGraph(const std::string& name) {
  const std::string path = kGraphs + name;
  return ReadGraphJson(ReadWholeFile(path).value(), path).value();
}

JointGraph ReadJointGraph(const std::string& name) {
  const std::string path = kGraphs + name;
  return ReadJointGraphJson(ReadWholeFile(path).value(), path).value();
}

}  // namespace

const TensorGraph& NetGraph() {
  static const TensorGraph graph = ReadGraph("net.json");
  return graph;
}

const TensorGraph& SkipsGraph() {
  static const TensorGraph graph = ReadGraph("skips.json");
  return graph;
}

const JointGraph& JointNetGraph() {
  static const JointGraph graph = ReadJointGraph("joint_net.json");
  return graph;
}

}  // namespace ckplan
