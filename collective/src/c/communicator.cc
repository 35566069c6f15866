// The blocking half of the C interface: each function checks what C cannot, and calls its namesake.
#include <algorithm>
#include <cstring>

#include "c/guard.h"
#include "c/handles.h"
#include "muster/collective.h"

namespace muster::collective {
namespace {

using namespace c;

Options bootstrap_options_of(const muster_options& given) {
  Options options;
  if (given.rank >= 0) options.rank = given.rank;
  if (given.size >= 0) options.size = given.size;
  options.rendezvous = text_of(given.rendezvous);
  options.key = text_of(given.key);
  options.rendezvous_file = text_of(given.rendezvous_file);
  options.listener = given.listener;
  options.host = text_of(given.host);
  options.host_id = text_of(given.host_id);
  if (given.timeout_ms >= 0) options.timeout = std::chrono::milliseconds(given.timeout_ms);
  options.transport = text_of(given.transport);
  options.algorithm = text_of(given.algorithm);
  if (given.streams >= 0) options.streams = given.streams;
  if (given.arena_bytes >= 0) options.arena_bytes = static_cast<std::uint64_t>(given.arena_bytes);
  if (given.silence_ms >= 0) options.silence = std::chrono::milliseconds(given.silence_ms);
  options.cancel = given.cancel;
  return options;
}

// Calls `call(world)` on a communicator that is there.
template <typename Body>
int on_world(muster_comm* comm, Body&& call) noexcept {
  if (comm == nullptr) return fail_null("communicator");
  return guarded([&] { return finish(call(comm->world)); });
}

int hand_over_world(Result<Communicator> world, muster_comm** out) {
  if (!world) return fail(world.error());
  *out = new muster_comm{*std::move(world)};
  return MUSTER_OK;
}

}  // namespace
}  // namespace muster::collective

using namespace muster::collective;
using namespace muster::collective::c;

int muster_connect(const muster_options* options, muster_comm** comm) {
  if (comm == nullptr) return fail_null("place for the communicator");
  return guarded([&] {
    const Result<muster_options> given = whole<muster_options>(
        options, MUSTER_OPTIONS_INIT, "struct of options", "MUSTER_OPTIONS_INIT");
    if (!given) return fail(given.error());
    const Result<Options> complete = bootstrap_from_environment(bootstrap_options_of(*given));
    if (!complete) return fail(complete.error());
    return hand_over_world(Communicator::connect(*complete), comm);
  });
}

void muster_disconnect(muster_comm* comm) {
  delete comm;
}

int muster_rank(const muster_comm* comm) {
  return comm == nullptr ? -1 : comm->world.rank();
}
int muster_size(const muster_comm* comm) {
  return comm == nullptr ? -1 : comm->world.size();
}
int muster_local_rank(const muster_comm* comm) {
  return comm == nullptr ? -1 : comm->world.local_rank();
}
int muster_local_size(const muster_comm* comm) {
  return comm == nullptr ? -1 : comm->world.local_size();
}
int muster_cross_rank(const muster_comm* comm) {
  return comm == nullptr ? -1 : comm->world.cross_rank();
}
int muster_cross_size(const muster_comm* comm) {
  return comm == nullptr ? -1 : comm->world.cross_size();
}
const char* muster_host(const muster_comm* comm) {
  return comm == nullptr ? "" : comm->world.host().c_str();
}

int muster_group(muster_comm* comm, const int* ranks, int count, muster_comm** group) {
  if (comm == nullptr) return fail_null("communicator");
  if (ranks == nullptr || count < 1) return fail_null("list of ranks");
  if (group == nullptr) return fail_null("place for the group");
  return guarded([&] {
    return hand_over_world(comm->world.group({ranks, static_cast<std::size_t>(count)}), group);
  });
}

int muster_all_reduce(muster_comm* comm, const void* in, void* out, uint64_t count, int type,
                      int op, double prescale, double postscale) {
  return on_world(comm, [&](Communicator& world) {
    return world.all_reduce(in, out, count, type_of(type), reduction_of(op, prescale, postscale));
  });
}

int muster_all_reduce_list(muster_comm* comm, const muster_tensor* tensors, uint64_t tensor_count,
                           int type, int op, double prescale, double postscale) {
  if (tensors == nullptr && tensor_count > 0) return fail_null("list of tensors");
  return on_world(comm, [&](Communicator& world) {
    return world.all_reduce(tensors_of(tensors, tensor_count), type_of(type),
                            reduction_of(op, prescale, postscale));
  });
}

int muster_reduce_scatter(muster_comm* comm, const void* in, void* out, uint64_t count_per_rank,
                          int type, int op, double prescale, double postscale) {
  return on_world(comm, [&](Communicator& world) {
    return world.reduce_scatter(in, out, count_per_rank, type_of(type),
                                reduction_of(op, prescale, postscale));
  });
}

int muster_reduce_scatter_unequal(muster_comm* comm, const void* in, void* out,
                                  const uint64_t* counts, int type, int op, double prescale,
                                  double postscale) {
  if (counts == nullptr) return fail_null("list of counts");
  return on_world(comm, [&](Communicator& world) {
    return world.reduce_scatter(in, out, per_rank(counts, world.size()), type_of(type),
                                reduction_of(op, prescale, postscale));
  });
}

int muster_all_gather(muster_comm* comm, const void* part, uint64_t bytes_per_rank, void* all) {
  return on_world(comm,
                  [&](Communicator& world) { return world.all_gather(part, bytes_per_rank, all); });
}

int muster_all_gather_unequal(muster_comm* comm, const void* part, void* all,
                              const uint64_t* bytes_of_rank) {
  if (bytes_of_rank == nullptr) return fail_null("list of lengths");
  return on_world(comm, [&](Communicator& world) {
    return world.all_gather(part, all, per_rank(bytes_of_rank, world.size()));
  });
}

int muster_broadcast(muster_comm* comm, void* data, uint64_t bytes, int root) {
  return on_world(comm, [&](Communicator& world) { return world.broadcast(data, bytes, root); });
}

int muster_reduce(muster_comm* comm, const void* in, void* out, uint64_t count, int type, int op,
                  double prescale, double postscale, int root) {
  return on_world(comm, [&](Communicator& world) {
    return world.reduce(in, out, count, type_of(type), reduction_of(op, prescale, postscale), root);
  });
}

int muster_all_to_all(muster_comm* comm, const void* in, void* out, uint64_t bytes_per_pair) {
  return on_world(comm,
                  [&](Communicator& world) { return world.all_to_all(in, out, bytes_per_pair); });
}

int muster_all_to_all_unequal(muster_comm* comm, const void* in, const uint64_t* sent, void* out,
                              const uint64_t* received) {
  if (sent == nullptr || received == nullptr) return fail_null("list of lengths");
  return on_world(comm, [&](Communicator& world) {
    return world.all_to_all(in, per_rank(sent, world.size()), out,
                            per_rank(received, world.size()));
  });
}

int muster_barrier(muster_comm* comm) {
  return on_world(comm, [](Communicator& world) { return world.barrier(); });
}

int muster_send(muster_comm* comm, const void* data, uint64_t bytes, int to) {
  return on_world(comm, [&](Communicator& world) { return world.send(data, bytes, to); });
}

int muster_receive(muster_comm* comm, void* data, uint64_t bytes, int from) {
  return on_world(comm, [&](Communicator& world) { return world.receive(data, bytes, from); });
}

void* muster_allocate_shared(muster_comm* comm, uint64_t bytes) {
  void* memory = nullptr;
  on_world(comm, [&](Communicator& world) -> Status {
    memory = world.allocate_shared(bytes);
    return {};
  });
  return memory;
}

void muster_free_shared(muster_comm* comm, void* memory) {
  on_world(comm, [&](Communicator& world) -> Status {
    world.free_shared(memory);
    return {};
  });
}

int muster_explain(const muster_comm* comm, int type, uint64_t bytes, char* text, size_t capacity) {
  if (comm == nullptr) return fail_null("communicator");
  if (text == nullptr || capacity == 0) return fail_null("place for the text");
  return guarded([&] {
    const std::string line = comm->world.explain(type_of(type), bytes);
    const std::size_t length = std::min(line.size(), capacity - 1);
    std::memcpy(text, line.data(), length);
    text[length] = '\0';
    return static_cast<int>(MUSTER_OK);
  });
}
