// Operations of the C interface: errors that only a struct of C can contain are checked here, all
// others by Session.

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "backend.h"
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
  KnownResult result;
  if (room->out != nullptr) result = {static_cast<const std::byte*>(room->out), sum_of(expected)};
  const Result<Ticket> ticket = hand_over(
      [room](std::span<const std::uint64_t> bytes) { return room->place(bytes); }, result);
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
  return with_room(session, given, expected, [&](Allocate allocate, KnownResult result) {
    return to.all_gather(label, given.tensors->in, given.tensors->count, std::move(allocate),
                         result);
  });
}

Result<Ticket> begin_all_to_all(muster_session& session, const Label& label,
                                const muster_operation& given) {
  Session& to = *session.session;
  if (Status placed = check_swapped_place(given, to); !placed) return placed.error();
  const bool is_expected = given.tensors->out != nullptr || given.received != nullptr;
  const auto expected = is_expected ? received_of(given, to) : PerRank();
  return with_room(session, given, expected, [&](Allocate allocate, KnownResult result) {
    return to.all_to_all(label, given.tensors->in, counts_of(given, to), std::move(allocate),
                         result);
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
  return with_room(session, mine, expected, [&](Allocate allocate, KnownResult result) {
    return to.gather(label, tensor.in, tensor.count, given.root, std::move(allocate), result);
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
  return with_room(session, given, expected, [&](Allocate allocate, KnownResult result) {
    return to.scatter(label, tensor.in, is_root ? counts_of(given, to) : PerRank(), given.root,
                      std::move(allocate), result);
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

}  // namespace

Result<Ticket> c::begin(muster_session& session, const muster_operation* operation) {
  if (operation == nullptr) return bad_argument("the operation is null");
  const Result<muster_operation> given = whole<muster_operation>(
      operation, MUSTER_OPERATION_INIT, "operation", "MUSTER_OPERATION_INIT");
  if (!given) return given.error();
  return hand_over_operation(session, *given);
}

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
