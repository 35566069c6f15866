#include "plugins/fake_plugin.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/types.h"

namespace muster::collective::testing {
namespace {

using Message = std::vector<char>;

// The state that all threads share.
struct Hub {
  std::mutex mutex;
  std::condition_variable changed;
  std::map<std::pair<int, int>, std::deque<Message>> boxes;  // by sender and receiver
  FakeTraits traits;
  std::uint64_t largest = 0;
  std::map<int, std::vector<std::uint64_t>> reduced;  // by rank: the lengths of its pieces
};

Hub& hub() {
  static Hub one;
  return one;
}

struct State {
  MusterPluginWorld world;
  std::string error;
};

State& state_of(void* state) {
  return *static_cast<State*>(state);
}

void put(State& state, const void* data, std::uint64_t bytes, int to) {
  const std::lock_guard lock(hub().mutex);
  const auto* const from = static_cast<const char*>(data);
  hub().boxes[{state.world.rank, to}].emplace_back(from, from + bytes);
  hub().largest = std::max(hub().largest, bytes);
  hub().changed.notify_all();
}

int take(State& state, void* data, std::uint64_t bytes, int from) {
  std::unique_lock lock(hub().mutex);
  std::deque<Message>& box = hub().boxes[{from, state.world.rank}];
  while (box.empty()) {
    hub().changed.wait_for(lock, std::chrono::milliseconds(1));
    if (state.world.keep_waiting(state.world.context) != 0) continue;
    state.error = "the wait was abandoned";
    return 1;
  }
  if (box.front().size() != bytes) {
    state.error = "a message of another length arrived";
    return 1;
  }
  if (bytes > 0) std::memcpy(data, box.front().data(), bytes);
  box.pop_front();
  return 0;
}

int break_here(State& state) {
  const std::lock_guard lock(hub().mutex);
  if (hub().traits.breaks_on_rank != state.world.rank) return 0;
  state.error = "the wire is cut";
  return 1;
}

int prepare(char* why, std::uint64_t room) {
  const std::lock_guard lock(hub().mutex);
  if (hub().traits.unprepared_calls == 0) return 0;
  --hub().traits.unprepared_calls;
  std::snprintf(why, room, "the fake has no wire");
  return 1;
}

void* open(const MusterPluginWorld* world, char*, std::uint64_t) {
  std::vector<int> ranks(static_cast<std::size_t>(world->size));
  if (world->all_gather(world->context, &world->rank, sizeof(int), ranks.data()) != 0) {
    return nullptr;
  }
  return new State{*world, {}};
}

void close(void* state, int) {
  delete static_cast<State*>(state);
}

const char* last_error(void* state) {
  return state_of(state).error.c_str();
}

int is_device(void* state, const void*) {
  return state_of(state).world.rank == hub().traits.device_rank ? 1 : 0;
}

int reduces(void*, const MusterPluginReduction* reduction) {
  const bool is_sum = reduction->type == static_cast<int>(DataType::kFloat32) &&
                      reduction->op == static_cast<int>(ReduceOp::kSum) &&
                      reduction->prescale == 1 && reduction->postscale == 1;
  return is_sum && hub().traits.sums_floats ? 1 : 0;
}

int all_to_all(void* opaque, const void* in, const std::uint64_t* sent, void* out,
               const std::uint64_t* received) {
  State& state = state_of(opaque);
  if (break_here(state) != 0) return 1;
  const auto* from = static_cast<const char*>(in);
  for (int peer = 0; peer < state.world.size; from += sent[peer++]) {
    put(state, from, sent[peer], peer);
  }
  auto* into = static_cast<char*>(out);
  for (int peer = 0; peer < state.world.size; into += received[peer++]) {
    if (take(state, into, received[peer], peer) != 0) return 1;
  }
  return 0;
}

int all_gather(void* opaque, const void* part, void* all, const std::uint64_t* bytes) {
  State& state = state_of(opaque);
  for (int peer = 0; peer < state.world.size; ++peer) {
    put(state, part, bytes[state.world.rank], peer);
  }
  auto* into = static_cast<char*>(all);
  for (int peer = 0; peer < state.world.size; into += bytes[peer++]) {
    if (take(state, into, bytes[peer], peer) != 0) return 1;
  }
  return 0;
}

int sum(State& state, const float* in, float* out, std::uint64_t count) {
  const auto size = static_cast<std::size_t>(state.world.size);
  std::vector<float> all(count * size);
  const std::vector<std::uint64_t> bytes(size, count * sizeof(float));
  if (all_gather(&state, in, all.data(), bytes.data()) != 0) return 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    float total = 0;
    for (std::size_t rank = 0; rank < size; ++rank) total += all[rank * count + i];
    out[i] = total;
  }
  return 0;
}

void note_piece(const State& state, std::uint64_t count) {
  const std::lock_guard lock(hub().mutex);
  hub().reduced[state.world.rank].push_back(count);
}

int all_reduce(void* opaque, const MusterPluginPiece* pieces, std::uint64_t count,
               const MusterPluginReduction*) {
  State& state = state_of(opaque);
  if (break_here(state) != 0) return 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    const MusterPluginPiece& piece = pieces[i];
    note_piece(state, piece.count);
    if (sum(state, static_cast<const float*>(piece.in), static_cast<float*>(piece.out),
            piece.count) != 0) {
      return 1;
    }
  }
  return 0;
}

int reduce(void* opaque, const void* in, void* out, std::uint64_t count,
           const MusterPluginReduction*, int root) {
  State& state = state_of(opaque);
  std::vector<float> elsewhere(state.world.rank == root ? 0 : count);
  auto* const into = state.world.rank == root ? static_cast<float*>(out) : elsewhere.data();
  return sum(state, static_cast<const float*>(in), into, count);
}

int broadcast(void* opaque, void* data, std::uint64_t bytes, int root) {
  State& state = state_of(opaque);
  if (state.world.rank != root) return take(state, data, bytes, root);
  for (int peer = 0; peer < state.world.size; ++peer) {
    if (peer != root) put(state, data, bytes, peer);
  }
  return 0;
}

int send(void* opaque, const void* data, std::uint64_t bytes, int to) {
  put(state_of(opaque), data, bytes, to);
  return 0;
}

int receive(void* opaque, void* data, std::uint64_t bytes, int from) {
  return take(state_of(opaque), data, bytes, from);
}

}  // namespace

void reset_fake(const FakeTraits& traits) {
  const std::lock_guard lock(hub().mutex);
  hub().boxes.clear();
  hub().traits = traits;
  hub().largest = 0;
  hub().reduced.clear();
}

std::uint64_t largest_message() {
  const std::lock_guard lock(hub().mutex);
  return hub().largest;
}

std::vector<std::uint64_t> reduced_pieces(int rank) {
  const std::lock_guard lock(hub().mutex);
  return hub().reduced[rank];
}

namespace {

constexpr MusterPlugin plugin_that(bool takes_lists) {
  return {.version = MUSTER_PLUGIN_VERSION,
          .name = "Fake",
          .takes_lists = takes_lists ? 1 : 0,
          .prepare = prepare,
          .open = open,
          .close = close,
          .last_error = last_error,
          .is_device = is_device,
          .reduces = reduces,
          .all_reduce = all_reduce,
          .reduce = reduce,
          .reduce_scatter = nullptr,
          .all_gather = all_gather,
          .broadcast = broadcast,
          .all_to_all = all_to_all,
          .send = send,
          .receive = receive};
}

}  // namespace

const MusterPlugin& fake_plugin() {
  static constexpr MusterPlugin kPacked = plugin_that(false);
  static constexpr MusterPlugin kLists = plugin_that(true);
  const std::lock_guard lock(hub().mutex);
  return hub().traits.takes_lists ? kLists : kPacked;
}

}  // namespace muster::collective::testing
