#include "lib/planning/algorithms/chen/greedy_cut.h"

#include <algorithm>

#include "lib/base/stop.h"

namespace ckplan {

GreedyCut CutGreedily(const Chain& chain, const VertexGraph& vertices, Bytes budget) {
  std::vector<Bytes> block_memory(static_cast<size_t>(chain.block_count));
  for (const NodeId v : vertices.ids()) {
    block_memory[static_cast<size_t>(chain.block_of[v])] += vertices.memory(v);
  }
  GreedyCut cut;
  Bytes segment;  // The paper's temp.
  for (size_t block = 0; block < block_memory.size(); ++block) {
    PollStop();
    cut.segment_of_block.push_back(cut.segment_count - 1);
    segment += block_memory[block];
    cut.largest_segment = std::max(cut.largest_segment, segment);
    const bool is_last = block + 1 == block_memory.size();
    if (is_last || segment <= budget) continue;
    cut.kept += vertices.memory(chain.splitting[block]);
    cut.kept_time += vertices.time(chain.splitting[block]);
    ++cut.segment_count;
    segment = Bytes(0);
  }
  return cut;
}

Bytes GeometricMean(Bytes a, Bytes b) {
  __extension__ using Wide = unsigned __int128;
  const auto product = [](Bytes x, Bytes y) {
    return static_cast<Wide>(x.count()) * static_cast<Wide>(y.count());
  };
  Bytes low = std::min(a, b);
  Bytes high = std::max(a, b);
  while (low < high) {
    const Bytes middle(low.count() + (high.count() - low.count() + 1) / 2);
    if (product(middle, middle) <= product(a, b)) {
      low = middle;
    } else {
      high = middle - Bytes(1);
    }
  }
  return low;
}

Bytes EstimateSegmentBudget(const Chain& chain, const VertexGraph& vertices) {
  const GreedyCut first = CutGreedily(chain, vertices, Bytes(0));
  return GeometricMean(first.kept, first.largest_segment);
}

}  // namespace ckplan
