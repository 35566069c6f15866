// The ends of operations of the C interface: waits, queues, and the results that the library keeps
// until the caller takes them.

#include <algorithm>
#include <chrono>
#include <functional>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "backend.h"
#include "c/guard.h"
#include "c/session.h"
#include "call/arguments.h"
#include "muster/collective.h"

namespace muster::collective::c {
namespace {

// Wide enough for the widest vector instructions of a caller.
constexpr std::size_t kAlignment = 64;

std::string list_of(std::span<const std::uint64_t> lengths) {
  std::string text;
  for (const std::uint64_t length : lengths) {
    text += (text.empty() ? "" : " ") + std::to_string(length);
  }
  return text;
}

}  // namespace

void* ResultBuffer::place(std::span<const std::uint64_t> bytes_of_rank) {
  if (!expected.empty() && !std::ranges::equal(bytes_of_rank, expected)) {
    refusal = Error{.code = ErrorCode::kMismatch,
                    .message = "'" + name + "': the ranks send " + list_of(bytes_of_rank) +
                               " bytes to this rank, which expects " + list_of(expected),
                    .advice = "omit the lengths or the output if they are not known"};
    return nullptr;
  }
  if (out != nullptr) return out;
  kept = std::make_unique<muster_result>();
  kept->bytes_of_rank.assign(bytes_of_rank.begin(), bytes_of_rank.end());
  const std::uint64_t bytes = sum_of(bytes_of_rank);
  if (bytes == 0) return nullptr;
  void* const memory =
      std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  kept->data.reset(static_cast<std::byte*>(memory));
  return memory;
}

Status ResultBuffer::explain(const Status& outcome) const {
  if (!refusal) return outcome;
  return *refusal;
}

ResultBuffers::Entry ResultBuffers::prepare(std::shared_ptr<ResultBuffer> room) {
  std::map<muster_ticket, std::shared_ptr<ResultBuffer>> one;
  one.emplace(0, std::move(room));
  return one.extract(one.begin());
}

void ResultBuffers::add(muster_ticket ticket, Entry entry) {
  entry.key() = ticket;
  const std::lock_guard lock(mutex_);
  rooms_.insert(std::move(entry));
}

std::shared_ptr<ResultBuffer> ResultBuffers::take(muster_ticket ticket) {
  const std::lock_guard lock(mutex_);
  const auto entry = rooms_.extract(ticket);
  return entry.empty() ? nullptr : std::move(entry.mapped());
}

void Queue::add(std::uint64_t user, Status outcome) {
  {
    const std::lock_guard lock(mutex_);
    finished_.push_back({user, std::move(outcome)});
  }
  came_.notify_one();
}

std::optional<Finished> Queue::next(std::optional<std::chrono::milliseconds> limit) {
  std::unique_lock lock(mutex_);
  const auto has_news = [this] { return is_over_ || !finished_.empty(); };
  // A longer time overflows the clock.
  constexpr std::chrono::hours kLongest{24 * 365};
  if (!limit) {
    came_.wait(lock, has_news);
  } else if (!came_.wait_for(lock, std::min<std::chrono::milliseconds>(*limit, kLongest),
                             has_news)) {
    return std::nullopt;
  }
  if (finished_.empty()) return Finished{};
  Finished next = std::move(finished_.front());
  finished_.pop_front();
  return next;
}

void Queue::end() {
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  came_.notify_all();
}

void ResultBuffers::clear() {
  const std::lock_guard lock(mutex_);
  rooms_.clear();
}

}  // namespace muster::collective::c

namespace muster::collective {
namespace {

using namespace c;

std::optional<std::chrono::milliseconds> limit_of(std::int64_t limit_ms) {
  if (limit_ms < 0) return std::nullopt;
  return std::chrono::milliseconds(limit_ms);
}

int finish_with(muster_session& session, muster_ticket ticket, const std::optional<Status>& outcome,
                muster_result** result) {
  if (!outcome) return MUSTER_PENDING;
  const std::shared_ptr<ResultBuffer> room = session.rooms.take(ticket);
  if (!room) return finish(*outcome);
  if (*outcome && result != nullptr) *result = room->kept.release();
  return finish(room->explain(*outcome));
}

}  // namespace
}  // namespace muster::collective

using namespace muster::collective;
using namespace muster::collective::c;

int muster_session_wait_for(muster_session* session, muster_ticket ticket, int64_t milliseconds,
                            muster_result** result) {
  if (result != nullptr) *result = nullptr;
  const SessionUse use(session);
  if (!use) return fail_ended(session);
  return guarded([&] {
    const auto limit = limit_of(milliseconds);
    const std::optional<Status> outcome =
        limit ? use->wait_for({ticket}, *limit) : use->wait({ticket});
    return finish_with(*session, ticket, outcome, result);
  });
}

int muster_session_run(muster_session* session, const muster_operation* operation,
                       int64_t milliseconds, muster_ticket* ticket, muster_result** result) {
  if (ticket != nullptr) *ticket = 0;
  if (result != nullptr) *result = nullptr;
  const SessionUse use(session);
  if (!use) return fail_ended(session);
  if (ticket == nullptr && milliseconds >= 0) return fail_null("output for the ticket");
  return guarded([&] {
    Ticket taken;
    Ticket pending;
    const auto hand_one_over = [&]() -> Result<Ticket> {
      Result<Ticket> handed = begin(*session, operation);
      if (handed) taken = *handed;
      return handed;
    };
    const std::optional<Status> outcome =
        use->run(std::cref(hand_one_over), limit_of(milliseconds), pending);
    if (!outcome) *ticket = pending.id;
    return finish_with(*session, taken.id, outcome, result);
  });
}

muster_queue* muster_queue_new(void) {
  return new (std::nothrow) muster_queue;
}

int muster_session_watch(muster_session* session, muster_ticket ticket, muster_queue* queue,
                         uint64_t user) {
  const SessionUse use(session);
  if (!use) return fail_ended(session);
  if (queue == nullptr) return fail_null("queue");
  return guarded([&] {
    const std::shared_ptr<ResultBuffer> room = session->rooms.take(ticket);
    use->when_done({ticket}, [queue, user, room](const Status& outcome) {
      queue->add(user, room ? room->explain(outcome) : outcome);
    });
    return static_cast<int>(MUSTER_OK);
  });
}

int muster_queue_next(muster_queue* queue, int64_t milliseconds, uint64_t* user) {
  if (queue == nullptr) return fail_null("queue");
  if (user == nullptr) return fail_null("output for the number");
  return guarded([&] {
    const std::optional<Finished> next = queue->next(limit_of(milliseconds));
    if (!next) return static_cast<int>(MUSTER_PENDING);
    *user = next->user;
    return finish(next->outcome);
  });
}

void muster_queue_end(muster_queue* queue) {
  if (queue != nullptr) queue->end();
}

const void* muster_result_data(const muster_result* result) {
  return result == nullptr ? nullptr : result->data.get();
}

uint64_t muster_result_bytes(const muster_result* result, int rank) {
  if (result == nullptr || rank < 0) return 0;
  const auto at = static_cast<std::size_t>(rank);
  return at < result->bytes_of_rank.size() ? result->bytes_of_rank[at] : 0;
}

void muster_result_free(muster_result* result) {
  delete result;
}
