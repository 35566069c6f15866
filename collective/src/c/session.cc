#include "c/session.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <functional>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend.h"
#include "c/guard.h"
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

// Sessions of the C interface: start, end and queries.
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

namespace muster::collective {

// Operations: errors that only a struct of C can contain are checked here, all others by Session.
namespace {

using namespace c;

Error bad_operation(const muster_operation& given, const std::string& what) {
  return collective::about(text_of(given.name), bad_argument(what));
}

Status about(const muster_operation& given, const Status& checked) {
  if (checked) return {};
  return collective::about(text_of(given.name), checked.error());
}

// The counts of an operation, one for each rank.
std::span<const std::uint64_t> counts_of(const muster_operation& given, const Session& to) {
  return {given.counts, static_cast<std::size_t>(to.size())};
}

Status check_one_tensor(const muster_operation& given) {
  if (given.tensor_count == 1) return {};
  return bad_operation(given,
                       "this operation takes 1 tensor, not " + std::to_string(given.tensor_count));
}

// The bytes that an all_to_all receives from each rank.
std::span<const std::uint64_t> received_of(const muster_operation& given, const Session& to) {
  return {given.received == nullptr ? given.counts : given.received,
          static_cast<std::size_t>(to.size())};
}

// Checks that the counts of all ranks add up to the tensor's count.
Status check_counts(const muster_operation& given, const Session& to) {
  if (given.counts == nullptr) return bad_operation(given, "the list of counts is null");
  const std::uint64_t sum = sum_of(counts_of(given, to));
  if (sum == given.tensors->count) return {};
  return bad_operation(given, "the counts add up to " + std::to_string(sum) +
                                  ", but the tensor has " + std::to_string(given.tensors->count));
}

Result<Ticket> begin_all_reduce(Session& to, const Label& label, const muster_operation& given) {
  const DataType type = type_of(given.type);
  const Reduction reduction = reduction_of(given.op, given.prescale, given.postscale);
  const std::span tensors(given.tensors, given.tensor_count);
  if (tensors.size() == 1) {
    return to.all_reduce(label, tensors[0].in, tensors[0].out, tensors[0].count, type, reduction);
  }
  std::vector<Tensor> list;
  list.reserve(tensors.size());
  for (const muster_tensor& tensor : tensors) list.push_back({tensor.in, tensor.out, tensor.count});
  return to.all_reduce(label, list, type, reduction);
}

Result<Ticket> begin_reduce_scatter(Session& to, const Label& label,
                                    const muster_operation& given) {
  if (Status checked = check_counts(given, to); !checked) return checked.error();
  return to.reduce_scatter(label, given.tensors->in, given.tensors->out, counts_of(given, to),
                           type_of(given.type),
                           reduction_of(given.op, given.prescale, given.postscale));
}

// Checks the output of an all_gather, which Session does not see.
Status check_gathered_place(const muster_operation& given, const Session& to) {
  const muster_tensor& tensor = *given.tensors;
  if (given.counts == nullptr) {
    if (tensor.out == nullptr) return {};
    return bad_operation(given, "an output requires the counts of all ranks");
  }
  const auto counts = counts_of(given, to);
  const std::uint64_t own = counts[static_cast<std::size_t>(to.rank())];
  if (own != tensor.count) {
    return bad_operation(given, "the count of this rank is " + std::to_string(own) +
                                    ", but its tensor has " + std::to_string(tensor.count));
  }
  if (tensor.out == nullptr) return about(given, check_lengths(counts, 1, to.size()));
  return about(given, check_all_gather(tensor.in, tensor.out, counts, {to.rank(), to.size()}));
}

// Checks the output of an all_to_all.
Status check_swapped_place(const muster_operation& given, const Session& to) {
  if (Status checked = check_counts(given, to); !checked) return checked;
  const muster_tensor& tensor = *given.tensors;
  if (tensor.out == nullptr) return {};
  return about(given, check_all_to_all(tensor.in, counts_of(given, to), tensor.out,
                                       received_of(given, to), to.size()));
}

// Hands over an operation whose result has a length that is unknown until the ranks have agreed on
// it.
template <typename HandOver>
Result<Ticket> with_room(muster_session& session, const muster_operation& given,
                         std::span<const std::uint64_t> expected, HandOver&& hand_over) {
  auto room = std::make_shared<ResultBuffer>();
  room->name = text_of(given.name);
  room->out = given.tensors->out;
  room->expected.assign(expected.begin(), expected.end());
  ResultBuffers::Entry entry = ResultBuffers::prepare(room);
  const Result<Ticket> ticket =
      hand_over([room](std::span<const std::uint64_t> bytes) { return room->place(bytes); });
  if (ticket) session.rooms.add(ticket->id, std::move(entry));
  return ticket;
}

Result<Ticket> begin_all_gather(muster_session& session, const Label& label,
                                const muster_operation& given) {
  Session& to = *session.session;
  if (Status placed = check_gathered_place(given, to); !placed) {
    return placed.error();
  }
  const auto expected = given.counts == nullptr ? PerRank() : counts_of(given, to);
  return with_room(session, given, expected, [&](Allocate allocate) {
    return to.all_gather(label, given.tensors->in, given.tensors->count, std::move(allocate));
  });
}

Result<Ticket> begin_all_to_all(muster_session& session, const Label& label,
                                const muster_operation& given) {
  Session& to = *session.session;
  if (Status placed = check_swapped_place(given, to); !placed) return placed.error();
  const bool is_expected = given.tensors->out != nullptr || given.received != nullptr;
  const auto expected = is_expected ? received_of(given, to) : PerRank();
  return with_room(session, given, expected, [&](Allocate allocate) {
    return to.all_to_all(label, given.tensors->in, counts_of(given, to), std::move(allocate));
  });
}

// Checks the buffers of a gather or scatter on the root, of which `whole` has the parts of all
// ranks and `part` that of the root.
struct Whole {
  const void* whole;
  const void* part;
  std::uint64_t part_bytes;
};
Status check_root(const muster_operation& given, const Session& to, const Whole& buffers) {
  if (given.counts == nullptr) {
    return bad_operation(given, "the counts of all ranks are null on the root");
  }
  const auto counts = counts_of(given, to);
  if (Status lengths = about(given, check_lengths(counts, 1, to.size())); !lengths) return lengths;
  const std::uint64_t own = counts[static_cast<std::size_t>(to.rank())];
  if (own != buffers.part_bytes) {
    return bad_operation(given, "the count of this rank is " + std::to_string(own) +
                                    ", but its tensor has " + std::to_string(buffers.part_bytes));
  }
  const std::vector<std::uint64_t> part = {own};
  const std::vector<std::uint64_t> all = {sum_of(counts)};
  return about(given, check_all_to_all(buffers.part, part, buffers.whole, all, 1));
}

Result<Ticket> begin_gather(muster_session& session, const Label& label,
                            const muster_operation& given) {
  Session& to = *session.session;
  const muster_tensor& tensor = *given.tensors;
  const bool is_root = to.rank() == given.root;
  PerRank expected;
  if (is_root && (given.counts != nullptr || tensor.out != nullptr)) {
    const Status checked = check_root(given, to, {tensor.out, tensor.in, tensor.count});
    if (!checked && tensor.out != nullptr) return checked.error();
    if (given.counts != nullptr) expected = counts_of(given, to);
  }
  muster_tensor used = tensor;
  if (!is_root) used.out = nullptr;
  muster_operation mine = given;
  mine.tensors = &used;
  return with_room(session, mine, expected, [&](Allocate allocate) {
    return to.gather(label, tensor.in, tensor.count, given.root, std::move(allocate));
  });
}

Result<Ticket> begin_scatter(muster_session& session, const Label& label,
                             const muster_operation& given) {
  Session& to = *session.session;
  const muster_tensor& tensor = *given.tensors;
  const bool is_root = to.rank() == given.root;
  if (is_root) {
    const Status checked = check_root(given, to, {tensor.in, tensor.out, tensor.count});
    if (!checked && (tensor.out != nullptr || given.counts == nullptr)) return checked.error();
  }
  std::vector<std::uint64_t> expected(static_cast<std::size_t>(to.size()));
  if (given.root >= 0 && given.root < to.size()) {
    expected[static_cast<std::size_t>(given.root)] = tensor.count;
  }
  return with_room(session, given, expected, [&](Allocate allocate) {
    return to.scatter(label, tensor.in, is_root ? counts_of(given, to) : PerRank(), given.root,
                      std::move(allocate));
  });
}

Result<Ticket> begin_message(Session& to, const muster_operation& given) {
  if (given.tensors == nullptr) return bad_operation(given, "the list of tensors is null");
  if (Status one = check_one_tensor(given); !one) return one.error();
  const muster_tensor& tensor = *given.tensors;
  if (given.kind == MUSTER_OPERATION_SEND) {
    return to.send(tensor.in, tensor.count, given.root, given.tag);
  }
  return to.receive(tensor.out, tensor.count, given.root, given.tag, given.sender);
}

Result<Ticket> hand_over_operation(muster_session& session, const muster_operation& given) {
  Session& to = *session.session;
  if (given.kind == MUSTER_OPERATION_JOIN) return to.join();
  if (given.kind == MUSTER_OPERATION_SEND || given.kind == MUSTER_OPERATION_RECEIVE) {
    return begin_message(to, given);
  }
  if (given.name == nullptr) return bad_argument("the name is null");
  const Label label(given.name, given.shape == nullptr ? std::string_view() : given.shape);
  if (given.kind == MUSTER_OPERATION_BARRIER) return to.barrier(label);
  if (given.kind < MUSTER_OPERATION_ALL_REDUCE || given.kind > MUSTER_OPERATION_RECEIVE) {
    return bad_operation(given, "unknown kind of operation " + std::to_string(given.kind));
  }
  if (given.tensors == nullptr && given.tensor_count > 0) {
    return bad_operation(given, "the list of tensors is null");
  }
  if (given.kind == MUSTER_OPERATION_ALL_REDUCE) return begin_all_reduce(to, label, given);
  if (Status one = check_one_tensor(given); !one) return one.error();
  switch (given.kind) {
    case MUSTER_OPERATION_REDUCE_SCATTER:
      return begin_reduce_scatter(to, label, given);
    case MUSTER_OPERATION_BROADCAST:
      return to.broadcast(label, given.tensors->out, given.tensors->count, given.root);
    case MUSTER_OPERATION_ALL_GATHER:
      return begin_all_gather(session, label, given);
    case MUSTER_OPERATION_REDUCE:
      return to.reduce(label, given.tensors->in, given.tensors->out, given.tensors->count,
                       type_of(given.type), reduction_of(given.op, given.prescale, given.postscale),
                       given.root);
    case MUSTER_OPERATION_GATHER:
      return begin_gather(session, label, given);
    case MUSTER_OPERATION_SCATTER:
      return begin_scatter(session, label, given);
    default:
      return begin_all_to_all(session, label, given);
  }
}

Result<Ticket> begin(muster_session& session, const muster_operation* operation) {
  if (operation == nullptr) return bad_argument("the operation is null");
  const Result<muster_operation> given = whole<muster_operation>(
      operation, MUSTER_OPERATION_INIT, "operation", "MUSTER_OPERATION_INIT");
  if (!given) return given.error();
  return hand_over_operation(session, *given);
}

std::optional<std::chrono::milliseconds> limit_of(std::int64_t milliseconds) {
  if (milliseconds < 0) return std::nullopt;
  return std::chrono::milliseconds(milliseconds);
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

int muster_session_begin(muster_session* session, const muster_operation* operation,
                         muster_ticket* ticket) {
  const SessionUse use(session);
  if (!use) return fail_ended(session);
  if (ticket == nullptr) return fail_null("output for the ticket");
  return guarded([&] {
    const Result<Ticket> taken = begin(*session, operation);
    if (!taken) return fail(taken.error());
    *ticket = taken->id;
    return static_cast<int>(MUSTER_OK);
  });
}

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
