// Takes a communicator apart for the session that goes on with it.
#include "communicator/impl.h"
#include "session/base.h"

namespace muster::collective {

Result<std::unique_ptr<Session>> Session::start(Communicator world, SessionOptions options) {
  const std::shared_ptr<Communicator::Impl> impl(std::move(world.impl_));
  if (Status alive = impl->failure(); !alive) return alive.error();
  SessionBase base{.world = *impl->world, .backend = impl->backend.get()};
  if (impl->arena && impl->world->topology.is_one_shared_host()) {
    base.shared = impl->world->memory.base() + impl->layout.session;
    base.shared_bytes = impl->layout.session_bytes;
  }
  if (impl->arena) {
    base.allocate_shared = [&arena = *impl->arena](std::uint64_t bytes) {
      return arena.allocate(bytes);
    };
    base.free_shared = [&arena = *impl->arena](void* memory) { arena.free(memory); };
  } else {
    base.allocate_shared = [](std::uint64_t) -> void* { return nullptr; };
    base.free_shared = [](void*) {};
  }
  base.calls = impl->calls;
  base.owner = impl;
  return start_session(std::move(base), std::move(options));
}

}  // namespace muster::collective
