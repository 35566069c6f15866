// Sessions of the C interface: their start, their end, and everything but operations.

#include "c/session.h"

#include <chrono>
#include <mutex>
#include <utility>
#include <vector>

#include "c/guard.h"
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

}  // namespace
}  // namespace muster::collective

using namespace muster::collective;
using namespace muster::collective::c;

muster_session* muster_session::begin(Session started) {
  // Never destroyed, since threads may outlive main().
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::vector<std::unique_ptr<muster_session>>;
  auto begun = std::make_unique<muster_session>();
  begun->session = std::make_unique<Session>(std::move(started));
  const std::lock_guard lock(mutex);
  return all.emplace_back(std::move(begun)).get();
}

void muster_session::end() noexcept {
  if (ended.exchange(true)) return;
  // In a forked process the threads that are in a call do not exist, and nothing is destroyed.
  if (::getpid() != process) return static_cast<void>(session.release());
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
  if (session == nullptr) return fail_null("output for the session");
  return guarded([&] {
    const Result<muster_session_options> given =
        whole<muster_session_options>(options, MUSTER_SESSION_OPTIONS_INIT,
                                      "struct of session options", "MUSTER_SESSION_OPTIONS_INIT");
    if (!given) return fail(given.error());
    const Result<SessionOptions> complete =
        session_options_from_environment(session_options_of(*given));
    if (!complete) return fail(complete.error());
    Result<Session> started = Session::start(std::move(taken->world), *complete);
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

int muster_session_last_joined(const muster_session* session) {
  const SessionUse use(session);
  return use ? use->last_joined() : -1;
}

int muster_session_done(const muster_session* session, muster_ticket ticket) {
  const SessionUse use(session);
  return use && use->done({ticket}) ? 1 : 0;
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
