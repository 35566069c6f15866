// Operations as values: what a struct of C can get wrong is checked here, the rest by Session.
#include <chrono>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "c/guard.h"
#include "c/session.h"
#include "call/arguments.h"
#include "muster/collective.h"

namespace muster::collective {
namespace {

using namespace c;

Error bad_operation(const muster_operation& given, const std::string& what) {
  return collective::about(text_of(given.name), bad_argument(what));
}

Status about(const muster_operation& given, const Status& checked) {
  if (checked) return {};
  return collective::about(text_of(given.name), checked.error());
}

// One number for every rank.
std::span<const std::uint64_t> counts_of(const muster_operation& given, const Session& to) {
  return {given.counts, static_cast<std::size_t>(to.size())};
}

Status check_one_tensor(const muster_operation& given) {
  if (given.tensor_count == 1) return {};
  return bad_operation(given,
                       "this operation takes 1 tensor, not " + std::to_string(given.tensor_count));
}

// The lengths of all ranks, whose sum has to be the tensor's.
Status check_counts(const muster_operation& given, const Session& to) {
  if (given.counts == nullptr) return bad_operation(given, "the list of counts is null");
  const std::uint64_t sum = sum_of(counts_of(given, to));
  if (sum == given.tensors->count) return {};
  return bad_operation(given, "the counts add up to " + std::to_string(sum) +
                                  ", and the tensor has " + std::to_string(given.tensors->count));
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

// Where the caller's place for a gather is, which Session does not get to see.
Status check_gathered_place(const muster_operation& given, const Session& to) {
  const muster_tensor& tensor = *given.tensors;
  if (given.counts == nullptr) {
    if (tensor.out == nullptr) return {};
    return bad_operation(given, "an output needs the counts of all ranks");
  }
  const auto counts = counts_of(given, to);
  const std::uint64_t own = counts[static_cast<std::size_t>(to.rank())];
  if (own != tensor.count) {
    return bad_operation(given, "the count of this rank is " + std::to_string(own) +
                                    ", and its tensor has " + std::to_string(tensor.count));
  }
  if (tensor.out == nullptr) return about(given, check_lengths(counts, 1, to.size()));
  return about(given, check_all_gather(tensor.in, tensor.out, counts, {to.rank(), to.size()}));
}

// The same for all_to_all.
Status check_swapped_place(const muster_operation& given, const Session& to) {
  if (Status checked = check_counts(given, to); !checked) return checked;
  const muster_tensor& tensor = *given.tensors;
  if (tensor.out == nullptr) return {};
  const auto counts = counts_of(given, to);
  return about(given, check_all_to_all(tensor.in, counts, tensor.out, counts, to.size()));
}

// An operation whose result has a length that only the session finds out.
template <typename HandOver>
Result<Ticket> with_room(muster_session& session, const muster_operation& given, bool is_expected,
                         HandOver&& hand_over) {
  auto room = std::make_shared<Room>();
  room->name = text_of(given.name);
  room->out = given.tensors->out;
  if (is_expected) {
    const auto counts = counts_of(given, *session.session);
    room->expected.assign(counts.begin(), counts.end());
  }
  Rooms::Entry entry = Rooms::prepare(room);
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
  return with_room(session, given, given.counts != nullptr, [&](Allocate allocate) {
    return to.all_gather(label, given.tensors->in, given.tensors->count, std::move(allocate));
  });
}

Result<Ticket> begin_all_to_all(muster_session& session, const Label& label,
                                const muster_operation& given) {
  Session& to = *session.session;
  if (Status placed = check_swapped_place(given, to); !placed) return placed.error();
  return with_room(session, given, given.tensors->out != nullptr, [&](Allocate allocate) {
    return to.all_to_all(label, given.tensors->in, counts_of(given, to), std::move(allocate));
  });
}

Result<Ticket> hand_over_operation(muster_session& session, const muster_operation& given) {
  Session& to = *session.session;
  if (given.kind == MUSTER_OPERATION_JOIN) return to.join();
  if (given.name == nullptr) return bad_argument("the name is null");
  const Label label(given.name, given.shape == nullptr ? std::string_view() : given.shape);
  if (given.kind == MUSTER_OPERATION_BARRIER) return to.barrier(label);
  if (given.kind < MUSTER_OPERATION_ALL_REDUCE || given.kind > MUSTER_OPERATION_JOIN) {
    return bad_operation(given,
                         "there is no kind " + std::to_string(given.kind) + " of operations");
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
  const std::shared_ptr<Room> room = session.rooms.take(ticket);
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
  if (ticket == nullptr) return fail_null("place for the ticket");
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
  if (ticket == nullptr && milliseconds >= 0) return fail_null("place for the ticket");
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
