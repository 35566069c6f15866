// The opaque types of the C interface: communicators, sessions, and results of all_gather and
// all_to_all.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "c/guard.h"
#include "muster/collective.h"
#include "muster/collective/communicator.h"
#include "muster/collective/result.h"
#include "muster/collective/session.h"

// The names of C.
// NOLINTBEGIN(readability-identifier-naming)
struct muster_result {
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::vector<std::uint64_t> bytes_of_rank;
  std::unique_ptr<std::byte, Free> data;
};
// NOLINTEND(readability-identifier-naming)

namespace muster::collective::c {

/// The memory of one result of all_gather or all_to_all: allocated by the library, or a buffer of
/// the caller with a fixed size. Thread-safety: only the thread that executes the operation uses
/// it, until it is done.
struct ResultBuffer {
  std::string name;                     // of the operation
  void* out = nullptr;                  // null: the library keeps the result
  std::vector<std::uint64_t> expected;  // bytes from each rank; empty: any
  std::unique_ptr<muster_result> kept = {};
  std::optional<Error> refusal = {};

  /// Null if memory is short, or if the received lengths differ from the expected ones.
  void* place(std::span<const std::uint64_t> bytes_of_rank);

  /// The outcome of the operation with its reason.
  Status explain(const Status& outcome) const;
};

/// The results of operations that are not waited for yet, by ticket. Thread-safety: all methods,
/// from any thread.
class ResultBuffers {
 public:
  using Entry = std::map<muster_ticket, std::shared_ptr<ResultBuffer>>::node_type;

  /// Makes all allocations of add().
  static Entry prepare(std::shared_ptr<ResultBuffer> room);
  void add(muster_ticket ticket, Entry entry);

  /// Null if the ticket has no result.
  std::shared_ptr<ResultBuffer> take(muster_ticket ticket);
  void clear();

 private:
  std::mutex mutex_;
  std::map<muster_ticket, std::shared_ptr<ResultBuffer>> rooms_;
};

/// The end of an operation that was watched; `user` is 0 after the last one.
struct Finished {
  std::uint64_t user = 0;
  Status outcome = {};
};

/// Thread-safety: all methods, from any thread.
class Queue {
 public:
  void add(std::uint64_t user, Status outcome);

  /// Null at the time limit.
  std::optional<Finished> next(std::optional<std::chrono::milliseconds> limit);
  void end();

 private:
  std::mutex mutex_;
  std::condition_variable came_;
  std::deque<Finished> finished_;
  bool is_over_ = false;
};

}  // namespace muster::collective::c

// NOLINTBEGIN(readability-identifier-naming)
struct muster_queue : muster::collective::c::Queue {};
// NOLINTEND(readability-identifier-naming)

// One thread may end a session while others are in its functions: these return, and every later
// call fails. Therefore a muster_session itself is never freed. A few words of an ended session
// remain, so that a late call detects the end instead of reading other memory. The names of C.
// NOLINTBEGIN(readability-identifier-naming)
struct muster_comm {
  muster::collective::Communicator world;
};

struct muster_session {
  /// Never returns null.
  static muster_session* begin(muster::collective::Session started);

  /// Fails pending operations, waits for threads that are in a call, and frees everything else. A
  /// second call does nothing.
  void end() noexcept;

  std::unique_ptr<muster::collective::Session> session;  // null once it has ended
  muster::collective::c::ResultBuffers rooms;
  mutable std::atomic<std::uint32_t> calls{0};  // threads in a call
  const int process = ::getpid();               // of the rank
  std::atomic<bool> ended{false};
};
// NOLINTEND(readability-identifier-naming)

namespace muster::collective::c {

/// Keeps a session alive during one call. False for null and for an ended session.
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

/// Hands over an operation of the caller, whose struct may be that of another library.
Result<Ticket> begin(muster_session& session, const muster_operation* operation);

/// Calls `call(session)`, unless the session has ended.
template <typename Body>
int on(muster_session* session, Body&& call) noexcept {
  const SessionUse use(session);
  if (!use) return fail_ended(session);
  return guarded([&] { return finish(call(*use)); });
}

}  // namespace muster::collective::c
