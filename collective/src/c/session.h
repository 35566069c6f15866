// What the opaque types of the C interface are made of.
//
// A session may be ended by one thread while others are in its functions: they return, and so does
// every later call. For that a muster_session itself is never freed. What stays of one that has
// ended is a few words, so that a late call finds out that it is late, instead of finding something
// else in its place.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "c/guard.h"
#include "c/rooms.h"
#include "muster/collective.h"
#include "muster/collective/communicator.h"
#include "muster/collective/session.h"

// The names of C.
// NOLINTBEGIN(readability-identifier-naming)
struct muster_comm {
  muster::collective::Communicator world;
};

struct muster_session {
  /// Not null.
  static muster_session* begin(muster::collective::Session started);

  /// Fails what is pending, waits for those who are in a call, and frees everything else. A second
  /// time it does nothing.
  void end() noexcept;

  std::unique_ptr<muster::collective::Session> session;  // null once it has ended
  muster::collective::c::Rooms rooms;
  mutable std::atomic<std::uint32_t> calls{0};  // threads that are in one
  std::atomic<bool> ended{false};
};
// NOLINTEND(readability-identifier-naming)

namespace muster::collective::c {

/// Holds a session for the time of one call. False where there is none any more.
class SessionUse {
 public:
  explicit SessionUse(const muster_session* session) : of_(session) {
    if (of_ == nullptr) return;
    of_->calls.fetch_add(1);
    is_there_ = !of_->ended.load();
  }
  ~SessionUse() {
    if (of_ != nullptr && of_->calls.fetch_sub(1) == 1 && of_->ended.load())
      of_->calls.notify_all();
  }
  SessionUse(const SessionUse&) = delete;
  SessionUse& operator=(const SessionUse&) = delete;

  explicit operator bool() const { return is_there_; }
  Session* operator->() const { return of_->session.get(); }
  Session& operator*() const { return *of_->session; }

 private:
  const muster_session* of_;
  bool is_there_ = false;
};

inline int fail_ended(const muster_session* session) noexcept {
  if (session == nullptr) return fail_null("session");
  return guarded([] { return fail({ErrorCode::kBadArgument, "the session has ended"}); });
}

/// Calls `call(session)` on a session that is there.
template <typename Body>
int on(muster_session* session, Body&& call) noexcept {
  const SessionUse use(session);
  if (!use) return fail_ended(session);
  return guarded([&] { return finish(call(*use)); });
}

}  // namespace muster::collective::c
