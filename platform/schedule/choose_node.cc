#include <algorithm>
#include <limits>
#include <tuple>

#include "job/kubernetes.h"
#include "schedule/placement.h"

namespace muster::schedule {
namespace {

bool among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

using Labels = std::map<std::string, std::string>;

bool includes(const Labels& all, const Labels& required) {
  return std::all_of(required.begin(), required.end(), [&](const auto& label) {
    const auto found = all.find(label.first);
    return found != all.end() && found->second == label.second;
  });
}

struct ScoredNode {
  NodeIndex node = -1;
  int number = -1;  ///< of its class
  Score score;
  // The rest decides between equal scores: less is better.
  int64_t gpu_milli = 0;
  int64_t cpu_milli = 0;
  int64_t memory_bytes = 0;
  int rank = 0;

  bool is_better_than(const ScoredNode& other) const {
    return std::tie(score.waste, gpu_milli, cpu_milli, memory_bytes, rank) <
           std::tie(other.score.waste, other.gpu_milli, other.cpu_milli, other.memory_bytes,
                    other.rank);
  }
};

class Choice {
 public:
  Choice(const NodeTable& table, RoomIndex& index, const Fragmentation& fragmentation,
         const Eligible& eligible, const TaskNeeds& needs, Packing packing)
      : table_(table),
        index_(index),
        fragmentation_(fragmentation),
        eligible_(eligible),
        needs_(needs),
        packing_(packing) {
    if (packing_ == Packing::kFragmentation && fragmentation_.is_empty()) packing_ = Packing::kPack;
    if (packing_ == Packing::kFragmentation) claim_number_ = index_.number_of(needs.claim);
  }

  std::optional<ScoredNode> best() {
    RoomIndex::Buckets& buckets = index_.buckets();
    const auto with_gpus = buckets.lower_bound({true, std::numeric_limits<int64_t>::min()});
    if (needs_.least.gpu_milli() == 0) {
      // So that no GPUs stay unused for lack of CPUs.
      look_through(buckets.begin(), with_gpus);
      if (!best_) look_through(with_gpus, buckets.end());
      return best_;
    }
    const auto enough = buckets.lower_bound({true, needs_.least.gpu_milli()});
    if (packing_ == Packing::kSpread) {
      look_through(std::make_reverse_iterator(buckets.end()), std::make_reverse_iterator(enough));
      return best_;
    }
    if (packing_ == Packing::kPack && needs_.least.share_milli > 0) {
      // A shared GPU comes before an unshared GPU of any node.
      only_partial_ = true;
      look_through(enough, buckets.end());
      only_partial_ = false;
      if (best_) return best_;
    }
    look_through(enough, buckets.end());
    return best_;
  }

 private:
  template <class Iterator>
  void look_through(Iterator bucket, const Iterator& end) {
    for (; bucket != end; ++bucket) {
      if (!may_hold(bucket->second.bounds)) continue;
      if (!look_into(bucket->second)) index_.tighten(bucket->second);
      if (best_ && packing_ != Packing::kFragmentation) return;
    }
  }

  bool may_hold(const RoomBounds& bounds) const {
    const Need& least = needs_.least;
    if (bounds.cpu_milli < least.cpu_milli || bounds.memory_bytes < least.memory_bytes)
      return false;
    if (least.gpus > 0) return bounds.whole_gpus >= least.gpus;
    return (only_partial_ ? bounds.largest_partial : bounds.largest_device) >= least.share_milli;
  }

  /// Whether anything fits.
  bool look_into(const RoomBucket& bucket) {
    const auto enough = index_.first_with(bucket, needs_.claim.cpu_milli);
    if (packing_ == Packing::kSpread)
      return look_at(bucket.classes.rbegin(), std::make_reverse_iterator(enough));
    return look_at(enough, bucket.classes.end());
  }

  template <class Iterator>
  bool look_at(Iterator number, const Iterator& end) {
    bool fitted = false;
    for (; number != end; ++number) {
      const NodeClass& looked_at = index_.at(*number);
      if (best_ && is_settled(looked_at.room)) return true;
      const std::optional<Need>& need = needs_.by_kind[static_cast<size_t>(looked_at.kind)];
      if (!need || !fits(looked_at.room, *need)) continue;
      fitted = true;
      if (!only_partial_ || fits_partial(looked_at.room, *need)) consider(*number, *need);
    }
    return fitted;
  }

  /// Neither this class nor a later one in the bucket can be better than the best class so far.
  bool is_settled(const NodeRoom& room) const {
    if (packing_ == Packing::kFragmentation) return false;
    const int64_t sign = packing_ == Packing::kSpread ? -1 : 1;
    return std::pair(sign * room.cpu_milli, sign * room.memory_bytes) >
           std::pair(best_->cpu_milli, best_->memory_bytes);
  }

  static bool fits_partial(const NodeRoom& room, const Need& need) {
    return std::any_of(room.devices.begin(), room.devices.end(),
                       [&](int free) { return free >= need.share_milli && free < kWholeGpu; });
  }

  void consider(int number, const Need& need) {
    NodeClass& considered = index_.at(number);
    const NodeRoom& room = considered.room;
    const int64_t sign = packing_ == Packing::kSpread ? -1 : 1;
    ScoredNode candidate{.number = number,
                         .score = score_of(considered, need),
                         .gpu_milli = sign * room.gpu_milli,
                         .cpu_milli = sign * room.cpu_milli,
                         .memory_bytes = sign * room.memory_bytes};
    if (best_ && candidate.score.waste > best_->score.waste) return;
    const auto open = std::find_if(considered.members.begin(), considered.members.end(),
                                   [&](NodeIndex node) { return !eligible_.is_shut(node); });
    if (open == considered.members.end()) return;
    candidate.node = *open;
    candidate.rank = table_.rank(*open);
    if (!best_ || candidate.is_better_than(*best_)) best_ = candidate;
  }

  Score score_of(NodeClass& scored, const Need& need) {
    if (packing_ != Packing::kFragmentation) return {};
    if (scored.scores.size() <= claim_number_)
      scored.scores.resize(claim_number_ + 1, Score{.device_milli = kNotScored});
    Score& score = scored.scores[claim_number_];
    if (score.device_milli == kNotScored) score = least_waste(scored, need);
    return score;
  }

  Score least_waste(NodeClass& scored, const Need& need) {
    const NodeKind& kind = table_.kinds()[static_cast<size_t>(scored.kind)].kind;
    const UsualNeeds& usual = fragmentation_.usual_for(kind.gpu_model, kind.gpu_memory_bytes);
    if (!scored.waste) scored.waste = waste(usual, scored.room);
    const double before = *scored.waste;
    after_ = scored.room;
    after_.cpu_milli -= need.cpu_milli;
    after_.memory_bytes -= need.memory_bytes;
    if (after_.task_slots != kNoSlotBound) --after_.task_slots;
    if (need.share_milli == 0) {
      std::fill_n(after_.devices.begin(), need.gpus, 0);  // the whole GPUs come first
      return {.waste = waste(usual, after_) - before, .device_milli = 0};
    }
    Score best{.device_milli = kNotScored};
    int seen = kNotScored;
    for (int& device : after_.devices) {
      if (device < need.share_milli) break;
      const int free = device;
      if (std::exchange(seen, free) == free) continue;
      device -= need.share_milli;
      const double more = waste(usual, after_) - before;
      device = free;
      if (best.device_milli == kNotScored || more <= best.waste)
        best = {.waste = more, .device_milli = free};
    }
    return best;
  }

  const NodeTable& table_;
  RoomIndex& index_;
  const Fragmentation& fragmentation_;
  const Eligible& eligible_;
  const TaskNeeds& needs_;
  Packing packing_;
  size_t claim_number_ = 0;
  bool only_partial_ = false;
  std::optional<ScoredNode> best_;
  NodeRoom after_;
};

uint64_t device_with(const NodeRoom& room, int free) {
  const auto found = std::find(room.devices.begin(), room.devices.end(), free);
  return uint64_t{1} << (found - room.devices.begin());
}

bool tolerates_all(const std::vector<std::string>& tolerations,
                   const std::vector<std::string>& taints) {
  return std::all_of(taints.begin(), taints.end(), [&](const std::string& taint) {
    return std::any_of(tolerations.begin(), tolerations.end(),
                       [&](const std::string& each) { return job::tolerates(each, taint); });
  });
}

}  // namespace

bool Eligible::is_shut(NodeIndex node) const {
  if (closed != nullptr && static_cast<size_t>(node) < closed->size() &&
      (*closed)[static_cast<size_t>(node)])
    return true;
  return std::binary_search(excluded.begin(), excluded.end(), node) || !has_labels(node);
}

bool Eligible::has_labels(NodeIndex node) const {
  return labels.empty() || includes(table->spec(node).labels, labels);
}

Eligible eligible_for(const NodeTable& table, const Gang& gang, const std::vector<bool>* closed) {
  Eligible eligible{.closed = closed, .table = &table};
  Labels of_kinds;
  for (const auto& label : gang.node_labels)
    (table.distinguishes(label.first) ? of_kinds : eligible.labels).insert(label);
  eligible.kinds.reserve(table.kinds().size());
  for (const auto& [kind, open, cordoned] : table.kinds())
    eligible.kinds.push_back((gang.gpu_models.empty() || among(gang.gpu_models, kind.gpu_model)) &&
                             includes(kind.labels, of_kinds) &&
                             tolerates_all(gang.tolerations, kind.taints));
  for (const std::string& name : gang.excluded_nodes)
    if (const auto node = table.find(name)) eligible.excluded.push_back(*node);
  std::sort(eligible.excluded.begin(), eligible.excluded.end());
  eligible.excluded.erase(std::unique(eligible.excluded.begin(), eligible.excluded.end()),
                          eligible.excluded.end());
  return eligible;
}

TaskNeeds needs_for(const NodeTable& table, const Eligible& eligible, const Claim& claim) {
  TaskNeeds needs{.claim = claim};
  needs.by_kind.resize(eligible.kinds.size());
  for (size_t kind = 0; kind < eligible.kinds.size(); ++kind) {
    if (!eligible.kinds[kind]) continue;
    needs.by_kind[kind] = need_on(claim, table.kinds()[kind].kind.gpu_memory_bytes);
    const std::optional<Need>& need = needs.by_kind[kind];
    if (!need || (needs.possible && need->gpu_milli() >= needs.least.gpu_milli())) continue;
    needs.least = *need;
    needs.possible = true;
  }
  return needs;
}

std::optional<Booking> choose_node(const NodeTable& table, RoomIndex& index,
                                   const Fragmentation& fragmentation, const Eligible& eligible,
                                   const TaskNeeds& needs, Packing packing, FreeWhen room) {
  if (!needs.possible) return std::nullopt;
  const std::optional<ScoredNode> best =
      Choice(table, index, fragmentation, eligible, needs, packing).best();
  if (!best) return std::nullopt;
  const Need& need = *needs.by_kind[static_cast<size_t>(index.at(best->number).kind)];
  Booking booking{
      .node = best->node, .cpu_milli = need.cpu_milli, .memory_bytes = need.memory_bytes};
  if (need.gpu_milli() == 0) return booking;
  NodeRoom free;
  room_for(table.at(best->node), room, free);
  booking.share_milli = need.gpus > 0 ? kWholeGpu : need.share_milli;
  booking.devices = best->score.device_milli > 0 ? device_with(free, best->score.device_milli)
                                                 : pick_devices(free, need);
  return booking;
}

}  // namespace muster::schedule
