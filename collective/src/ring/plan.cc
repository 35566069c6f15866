#include "ring/plan.h"

#include <algorithm>

namespace muster::collective {
namespace {

struct Segment {
  std::byte* data;
  std::uint64_t bytes;
};

// The buffer cut in `parts` segments of whole elements whose lengths differ by one at most.
class Segments {
 public:
  Segments(std::byte* data, std::uint64_t count, std::size_t element_bytes, int parts)
      : data_(data),
        count_(count),
        element_bytes_(element_bytes),
        parts_(static_cast<std::uint64_t>(parts)) {}

  /// `index` is taken modulo the number of parts and may be as low as -parts.
  Segment operator[](int index) const {
    const std::uint64_t i = (static_cast<std::uint64_t>(index) + parts_) % parts_;
    const std::uint64_t begin = start_of(i);
    const std::uint64_t bytes = (start_of(i + 1) - begin) * element_bytes_;
    return {bytes == 0 ? data_ : data_ + begin * element_bytes_, bytes};
  }

 private:
  std::uint64_t start_of(std::uint64_t i) const {
    return count_ / parts_ * i + std::min(i, count_ % parts_);
  }

  std::byte* data_;
  std::uint64_t count_;
  std::size_t element_bytes_;
  std::uint64_t parts_;
};

// Sends `own`, then forwards what comes in, all but the last piece, which has been everywhere.
void send_own_then_forward(Plan& plan, Segment own) {
  plan.lead_bytes = own.bytes;
  plan.outgoing.push_back({own.data, own.bytes});
  for (const Incoming& piece : plan.incoming) plan.outgoing.push_back({piece.data, piece.bytes});
  plan.outgoing.pop_back();
}

}  // namespace

Plan plan_all_reduce(Place place, std::byte* data, std::uint64_t count, DataType type,
                     ReduceOp op) {
  const Segments segments(data, count, size_of(type), place.size);
  Plan plan{.type = type, .op = op};
  for (int step = 1; step < place.size; ++step) {
    const Segment segment = segments[place.rank - step];
    const bool averages = op == ReduceOp::kAverage && step == place.size - 1;
    plan.incoming.push_back(
        {segment.data, segment.bytes,
         averages ? Incoming::Landing::kReduceAndAverage : Incoming::Landing::kReduce});
  }
  // The segment reduced last is complete and opens the all-gather. What arrives from here on lands
  // on segments that were sent on already: they could not be complete without our share.
  for (int step = 0; step < place.size - 1; ++step) {
    const Segment segment = segments[place.rank - step];
    plan.incoming.push_back({segment.data, segment.bytes});
  }
  send_own_then_forward(plan, segments[place.rank]);
  return plan;
}

Plan plan_broadcast(Place place, std::byte* data, std::uint64_t bytes, int root) {
  Plan plan;
  const bool is_root = place.rank == root;
  const bool is_last = (place.rank + 1) % place.size == root;
  if (!is_root) plan.incoming.push_back({data, bytes});
  if (!is_last) plan.outgoing.push_back({data, bytes});
  if (is_root) plan.lead_bytes = bytes;
  return plan;
}

Plan plan_all_gather(Place place, std::byte* all, std::uint64_t bytes_per_rank) {
  const std::uint64_t total = bytes_per_rank * static_cast<std::uint64_t>(place.size);
  const Segments parts(all, total, 1, place.size);
  Plan plan;
  for (int step = 1; step < place.size; ++step) {
    const Segment part = parts[place.rank - step];
    plan.incoming.push_back({part.data, part.bytes});
  }
  send_own_then_forward(plan, parts[place.rank]);
  return plan;
}

}  // namespace muster::collective
