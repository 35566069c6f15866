// The asynchronous half of the C interface: function pointers become function objects, tickets
// numbers.
#include "c/session.h"

#include <mutex>
#include <utility>
#include <vector>

#include "c/guard.h"
#include "c/handles.h"
#include "muster/collective.h"

namespace muster::collective {
namespace {

using namespace c;

SessionOptions session_options_of(const muster_session_options& given) {
  SessionOptions options;
  options.timeline = text_of(given.timeline);
  if (given.stall_warning_ms >= 0) {
    options.stall_warning = std::chrono::milliseconds(given.stall_warning_ms);
  }
  if (given.stall_limit_ms >= 0) {
    options.stall_limit = std::chrono::milliseconds(given.stall_limit_ms);
  }
  if (given.on_stall != nullptr) {
    options.on_stall = [call = given.on_stall, user = given.on_stall_user](
                           const std::string& report) { call(user, report.c_str()); };
  }
  options.fusion_bytes = given.fusion_bytes;
  options.autotune = given.autotune > 0;
  options.autotune_log = text_of(given.autotune_log);
  return options;
}

Allocate allocate_with(muster_allocate allocate, void* user) {
  return [allocate, user](std::span<const std::uint64_t> bytes) {
    return allocate(user, bytes.data(), static_cast<int>(bytes.size()));
  };
}

// Hands an operation over by `call(session, name)`, once what every one of them needs is there.
template <typename Body>
int hand_over_by_name(muster_session* session, const char* name, muster_ticket* ticket,
                      Body&& call) noexcept {
  if (session != nullptr && name == nullptr) return fail_null("name");
  if (session != nullptr && ticket == nullptr) return fail_null("place for the ticket");
  return on(session, [&](Session& to) -> Status {
    const Result<Ticket> taken = call(to, std::string_view(name));
    if (!taken) return taken.error();
    *ticket = taken->id;
    return {};
  });
}

}  // namespace
}  // namespace muster::collective

using namespace muster::collective;
using namespace muster::collective::c;

muster_session* muster_session::begin(std::unique_ptr<Session> started) {
  // Never destroyed: threads may outlive main().
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::vector<std::unique_ptr<muster_session>>;
  auto begun = std::make_unique<muster_session>();
  begun->session = std::move(started);
  const std::lock_guard lock(mutex);
  return all.emplace_back(std::move(begun)).get();
}

void muster_session::end() noexcept {
  if (ended.exchange(true)) return;
  guarded([&] {
    session->leave();
    return static_cast<int>(MUSTER_OK);
  });
  for (std::uint32_t inside = calls.load(); inside != 0; inside = calls.load()) calls.wait(inside);
  session.reset();
  rooms.clear();
}

int muster_session_start(muster_comm* comm, const muster_session_options* options,
                         muster_session** session) {
  if (comm == nullptr) return fail_null("communicator");
  const std::unique_ptr<muster_comm> taken(comm);
  if (session == nullptr) return fail_null("place for the session");
  return guarded([&] {
    const Result<muster_session_options> given =
        whole<muster_session_options>(options, MUSTER_SESSION_OPTIONS_INIT,
                                      "struct of session options", "MUSTER_SESSION_OPTIONS_INIT");
    if (!given) return fail(given.error());
    const Result<SessionOptions> complete =
        session_options_from_environment(session_options_of(*given));
    if (!complete) return fail(complete.error());
    Result<std::unique_ptr<Session>> started = Session::start(std::move(taken->world), *complete);
    if (!started) return fail(started.error());
    *session = muster_session::begin(*std::move(started));
    return static_cast<int>(MUSTER_OK);
  });
}

void muster_session_end(muster_session* session) {
  if (session != nullptr) session->end();
}

int muster_session_rank(const muster_session* session) {
  const SessionUse use(session);
  return use ? use->rank() : -1;
}
int muster_session_size(const muster_session* session) {
  const SessionUse use(session);
  return use ? use->size() : -1;
}

int muster_session_all_reduce(muster_session* session, const char* name, const void* in, void* out,
                              uint64_t count, int type, int op, double prescale, double postscale,
                              muster_ticket* ticket) {
  return hand_over_by_name(session, name, ticket, [&](Session& to, std::string_view as) {
    return to.all_reduce(as, in, out, count, type_of(type), reduction_of(op, prescale, postscale));
  });
}

int muster_session_all_reduce_list(muster_session* session, const char* name,
                                   const muster_tensor* tensors, uint64_t tensor_count, int type,
                                   int op, double prescale, double postscale,
                                   muster_ticket* ticket) {
  if (tensors == nullptr && tensor_count > 0) return fail_null("list of tensors");
  return hand_over_by_name(session, name, ticket, [&](Session& to, std::string_view as) {
    return to.all_reduce(as, tensors_of(tensors, tensor_count), type_of(type),
                         reduction_of(op, prescale, postscale));
  });
}

int muster_session_reduce_scatter(muster_session* session, const char* name, const void* in,
                                  void* out, const uint64_t* counts, int type, int op,
                                  double prescale, double postscale, muster_ticket* ticket) {
  if (counts == nullptr) return fail_null("list of counts");
  return hand_over_by_name(session, name, ticket, [&](Session& to, std::string_view as) {
    return to.reduce_scatter(as, in, out, per_rank(counts, to.size()), type_of(type),
                             reduction_of(op, prescale, postscale));
  });
}

int muster_session_all_gather(muster_session* session, const char* name, const void* part,
                              uint64_t bytes, muster_allocate allocate, void* user,
                              muster_ticket* ticket) {
  if (allocate == nullptr) return fail_null("allocate function");
  return hand_over_by_name(session, name, ticket, [&](Session& to, std::string_view as) {
    return to.all_gather(as, part, bytes, allocate_with(allocate, user));
  });
}

int muster_session_broadcast(muster_session* session, const char* name, void* data, uint64_t bytes,
                             int root, muster_ticket* ticket) {
  return hand_over_by_name(session, name, ticket, [&](Session& to, std::string_view as) {
    return to.broadcast(as, data, bytes, root);
  });
}

int muster_session_all_to_all(muster_session* session, const char* name, const void* in,
                              const uint64_t* sent, muster_allocate allocate, void* user,
                              muster_ticket* ticket) {
  if (sent == nullptr) return fail_null("list of lengths");
  if (allocate == nullptr) return fail_null("allocate function");
  return hand_over_by_name(session, name, ticket, [&](Session& to, std::string_view as) {
    return to.all_to_all(as, in, per_rank(sent, to.size()), allocate_with(allocate, user));
  });
}

int muster_session_barrier(muster_session* session, const char* name, muster_ticket* ticket) {
  return hand_over_by_name(session, name, ticket,
                           [](Session& to, std::string_view as) { return to.barrier(as); });
}

int muster_session_join(muster_session* session, muster_ticket* ticket) {
  return hand_over_by_name(session, "", ticket,
                           [](Session& to, std::string_view) { return to.join(); });
}

int muster_session_last_joined(const muster_session* session) {
  const SessionUse use(session);
  return use ? use->last_joined() : -1;
}

int muster_session_done(const muster_session* session, muster_ticket ticket) {
  const SessionUse use(session);
  return use && use->done({ticket}) ? 1 : 0;
}

int muster_session_wait(muster_session* session, muster_ticket ticket) {
  return muster_session_wait_for(session, ticket, -1, nullptr);
}

int muster_session_when_done(muster_session* session, muster_ticket ticket, muster_then then,
                             void* user) {
  if (then == nullptr) return fail_null("function to call");
  return on(session, [&](Session& of) -> Status {
    of.when_done({ticket}, [session, ticket, then, user](const Status& status) {
      const std::shared_ptr<Room> room = session->rooms.take(ticket);
      then(user, finish(room ? room->explain(status) : status));
    });
    return {};
  });
}

int muster_session_start_timeline(muster_session* session, const char* path) {
  if (path == nullptr) return fail_null("path of the timeline");
  return on(session, [path](Session& of) { return of.start_timeline(path); });
}

int muster_session_stop_timeline(muster_session* session) {
  return on(session, [](Session& of) { return of.stop_timeline(); });
}

int muster_session_mark_cycles(muster_session* session, int marks) {
  return on(session, [marks](Session& of) -> Status {
    of.mark_cycles(marks != 0);
    return {};
  });
}

void* muster_session_allocate_shared(muster_session* session, uint64_t bytes) {
  void* memory = nullptr;
  on(session, [&](Session& of) -> Status {
    memory = of.allocate_shared(bytes);
    return {};
  });
  return memory;
}

void muster_session_free_shared(muster_session* session, void* memory) {
  on(session, [memory](Session& of) -> Status {
    of.free_shared(memory);
    return {};
  });
}
