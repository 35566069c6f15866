// Connecting to a world or a group, and the position of each rank.
#include "c/guard.h"
#include "c/session.h"
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
  if (comm == nullptr) return fail_null("output for the communicator");
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
  if (group == nullptr) return fail_null("output for the group");
  return guarded([&] {
    return hand_over_world(comm->world.group({ranks, static_cast<std::size_t>(count)}), group);
  });
}
