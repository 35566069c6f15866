// The public class: checks the arguments of operations, and passes them to the engine.

#include "muster/collective/session.h"

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "call/arguments.h"
#include "communicator/impl.h"
#include "session/engine.h"
#include "session/operation.h"

namespace muster::collective {

// Takes the communicator apart.
Result<Session> Session::start(Communicator world, SessionOptions options) {
  const std::shared_ptr<Communicator::Impl> impl(std::move(world.impl_));
  if (Status alive = impl->failure(); !alive) return alive.error();
  SessionBase base{.world = *impl->world, .backend = impl->backend.get()};
  if (impl->arena) base.arena = &*impl->arena;
  if (impl->arena && impl->world->topology.is_one_shared_host()) {
    base.shared = impl->world->memory.base() + impl->layout.session;
    base.shared_bytes = impl->layout.session_bytes;
    base.mail = impl->world->memory.base() + impl->layout.mail;
    base.mail_bytes = impl->layout.mail_bytes;
    base.reserve = session::reserve_in(*impl->world);
  }
  base.calls = impl->calls;
  base.owner = impl;
  return start_session(std::move(base), std::move(options));
}

Result<Session> start_session(SessionBase base, SessionOptions options) {
  auto engine = std::make_unique<session::Engine>(std::move(base), std::move(options));
  if (Status started = engine->start(); !started) return started.error();
  return Session(std::move(engine));
}

Session::Session(std::unique_ptr<session::Engine> engine) : engine_(std::move(engine)) {}
// In a forked process nothing is destroyed, as in Communicator.
Session::~Session() {
  if (engine_ && engine_->is_foreign()) static_cast<void>(engine_.release());
}
Session::Session(Session&& other) noexcept = default;
Session& Session::operator=(Session&& other) noexcept {
  if (this == &other) return *this;
  // The destructor of `old` does nothing in a forked process.
  const Session old(std::exchange(engine_, std::move(other.engine_)));
  return *this;
}

void Session::leave() {
  engine_->leave();
}
int Session::rank() const {
  return engine_->rank();
}
int Session::size() const {
  return engine_->size();
}

Result<Ticket> Session::all_reduce(const Label& label, const void* in, void* out,
                                   std::uint64_t count, DataType type, const Reduction& reduction) {
  const Tensor tensor{in, out, count};
  return all_reduce(label, std::span(&tensor, 1), type, reduction);
}

Result<Ticket> Session::all_reduce(const Label& label, std::span<const Tensor> tensors,
                                   DataType type, const Reduction& reduction) {
  const Result<std::uint64_t> count = check_all_reduce(tensors, type, reduction);
  if (!count) return about(label.name, count.error());
  std::vector<std::uint64_t> counts;
  for (const Tensor& tensor : tensors) {
    if (tensors.size() > 1) counts.push_back(tensor.count);
  }
  return engine_->hand_over(
      label, {.kind = CallKind::kAllReduce, .type = type, .reduction = reduction, .count = *count},
      counts, {.tensors = tensors});
}

Result<Ticket> Session::reduce_scatter(const Label& label, const void* in, void* out,
                                       std::span<const std::uint64_t> counts, DataType type,
                                       const Reduction& reduction) {
  const Status checked = check_reduce_scatter(in, out, counts, type, reduction, {rank(), size()});
  if (!checked) return about(label.name, checked.error());
  return engine_->hand_over(label,
                            {.kind = CallKind::kReduceScatter,
                             .type = type,
                             .reduction = reduction,
                             .count = sum_of(counts),
                             .shape = hash_of(counts)},
                            counts, {.in = in, .out = out});
}

Result<Ticket> Session::all_gather(const Label& label, const void* part, std::uint64_t bytes,
                                   Allocate allocate, KnownResult result) {
  Status checked = check_buffer(part, bytes);
  if (checked && !allocate) checked = bad_argument("an all_gather requires an allocate()");
  if (!checked) return about(label.name, checked.error());
  return engine_->hand_over(label, {.kind = CallKind::kAllGather}, std::span(&bytes, 1),
                            {.in = part, .allocate = std::move(allocate), .place = result});
}

Result<Ticket> Session::broadcast(const Label& label, void* data, std::uint64_t bytes, int root) {
  const Status checked = check_broadcast(data, bytes, root, size());
  if (!checked) return about(label.name, checked.error());
  return engine_->hand_over(label, {.kind = CallKind::kBroadcast, .root = root, .count = bytes}, {},
                            {.out = data});
}

Result<Ticket> Session::all_to_all(const Label& label, const void* in,
                                   std::span<const std::uint64_t> sent, Allocate allocate,
                                   KnownResult result) {
  Status checked = check_lengths(sent, 1, size());
  if (checked) checked = check_buffer(in, sum_of(sent));
  if (checked && !allocate) checked = bad_argument("an all_to_all requires an allocate()");
  if (!checked) return about(label.name, checked.error());
  return engine_->hand_over(label, {.kind = CallKind::kAllToAll}, sent,
                            {.in = in, .allocate = std::move(allocate), .place = result});
}

Result<Ticket> Session::barrier(const Label& label) {
  return engine_->hand_over(label, {.kind = CallKind::kBarrier}, {}, {});
}

Result<Ticket> Session::reduce(const Label& label, const void* in, void* out, std::uint64_t count,
                               DataType type, const Reduction& reduction, int root) {
  const Status checked = check_reduce(in, out, count, type, reduction, root, {rank(), size()});
  if (!checked) return about(label.name, checked.error());
  return engine_->hand_over(label,
                            {.kind = CallKind::kReduce,
                             .type = type,
                             .reduction = reduction,
                             .root = root,
                             .count = count},
                            {}, {.in = in, .out = out});
}

// Gather and scatter are an all_to_all in which only the root receives or sends. The text makes
// ranks with other operations or roots disagree.
namespace {

std::string rooted(const char* what, int root, std::string_view shape) {
  std::string text = std::string(what) + std::to_string(root);
  if (!shape.empty()) text.append(", ").append(shape);
  return text;
}

}  // namespace

Result<Ticket> Session::gather(const Label& label, const void* part, std::uint64_t bytes, int root,
                               Allocate allocate, KnownResult result) {
  if (Status checked = check_rank("the root of a gather", root, size()); !checked) {
    return about(label.name, checked.error());
  }
  std::vector<std::uint64_t> sent(static_cast<std::size_t>(size()));
  sent[static_cast<std::size_t>(root)] = bytes;
  const std::string text = rooted("gather to rank ", root, label.shape);
  return all_to_all({label.name, text}, part, sent, std::move(allocate), result);
}

Result<Ticket> Session::scatter(const Label& label, const void* in,
                                std::span<const std::uint64_t> sent, int root, Allocate allocate,
                                KnownResult result) {
  if (Status checked = check_rank("the root of a scatter", root, size()); !checked) {
    return about(label.name, checked.error());
  }
  const std::string text = rooted("scatter from rank ", root, label.shape);
  if (rank() == root) return all_to_all({label.name, text}, in, sent, std::move(allocate), result);
  const std::vector<std::uint64_t> nothing(static_cast<std::size_t>(size()));
  return all_to_all({label.name, text}, nullptr, nothing, std::move(allocate), result);
}

Result<Ticket> Session::send(const void* data, std::uint64_t bytes, int to, std::uint64_t tag) {
  Status checked = check_buffer(data, bytes);
  if (checked) checked = check_partner("the receiver", to, {rank(), size()});
  if (!checked) return checked.error();
  return engine_->send(data, bytes, to, tag);
}

Result<Ticket> Session::receive(void* data, std::uint64_t bytes, int from, std::uint64_t tag,
                                int* sender) {
  Status checked = check_buffer(data, bytes);
  if (checked && from != kAnyRank) checked = check_partner("the sender", from, {rank(), size()});
  if (checked && size() == 1) {
    checked = bad_argument("a world of 1 has no other rank that could send a message");
  }
  if (!checked) return checked.error();
  return engine_->receive(data, bytes, from, tag, sender);
}

Result<Ticket> Session::join() {
  return engine_->join();
}
int Session::last_joined() const {
  return engine_->last_joined();
}

bool Session::done(Ticket ticket) const {
  return engine_->done(ticket);
}

Status Session::wait(Ticket ticket) {
  return *engine_->wait(ticket, std::nullopt);
}

std::optional<Status> Session::wait_for(Ticket ticket, std::chrono::milliseconds limit) {
  return engine_->wait(ticket, limit);
}

std::optional<Status> Session::run(const std::function<Result<Ticket>()>& hand_over,
                                   std::optional<std::chrono::milliseconds> limit,
                                   Ticket& pending) {
  return engine_->run(hand_over, limit, pending);
}

void Session::when_done(Ticket ticket, std::function<void(const Status&)> then) {
  engine_->when_done(ticket, std::move(then));
}

Status Session::start_timeline(const std::string& path) {
  return engine_->start_timeline(path);
}
Status Session::stop_timeline() {
  return engine_->stop_timeline();
}
void Session::mark_cycles(bool marks) {
  engine_->mark_cycles(marks);
}

void* Session::allocate_shared(std::uint64_t bytes) {
  return engine_->arena() == nullptr ? nullptr : engine_->arena()->allocate(bytes);
}
void Session::free_shared(void* memory) {
  if (engine_->arena() != nullptr) engine_->arena()->free(memory);
}

namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::optional<double> number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  // The negated comparison rejects a NaN as well.
  if (text.empty() || *end != '\0' || !(value >= 0 && value < 1e15)) return std::nullopt;
  return value;
}

Error not_a_number(const char* name, const std::string& value, const char* example) {
  return {.code = ErrorCode::kConfiguration,
          .message = std::string(name) + " is '" + value + "', not a number of 0 or more",
          .advice = std::string("for example: ") + name + "=" + example};
}

// Sets `value` from the variable unless the caller has set it. A value that was set to the default
// cannot be distinguished from a value that was not set.
Status set_seconds_from(const char* name, const char* example, std::chrono::milliseconds unset,
                        std::chrono::milliseconds& value) {
  const std::string text = variable(name);
  if (text.empty() || value != unset) return {};
  const std::optional<double> seconds = number_of(text);
  if (!seconds || *seconds > 1e9) return not_a_number(name, text, example);
  value = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
  return {};
}

}  // namespace

Result<SessionOptions> session_options_from_environment(SessionOptions given) {
  if (given.timeline.empty()) given.timeline = variable("MUSTER_COLLECTIVE_TIMELINE");
  if (given.autotune_log.empty()) given.autotune_log = variable("MUSTER_COLLECTIVE_AUTOTUNE_LOG");
  const std::string autotune = variable("MUSTER_COLLECTIVE_AUTOTUNE");
  if (autotune != "" && autotune != "0") given.autotune = true;
  const SessionOptions unset;
  for (const Status& read : {set_seconds_from("MUSTER_COLLECTIVE_STALL_SECONDS", "60",
                                              unset.stall_warning, given.stall_warning),
                             set_seconds_from("MUSTER_COLLECTIVE_STALL_LIMIT_SECONDS", "600",
                                              unset.stall_limit, given.stall_limit),
                             set_seconds_from("MUSTER_COLLECTIVE_SLOW_SECONDS", "30",
                                              unset.slow_window, given.slow_window)}) {
    if (!read) return read.error();
  }
  constexpr const char* kFusion = "MUSTER_COLLECTIVE_FUSION_BYTES";
  const std::string fusion = variable(kFusion);
  if (!fusion.empty() && given.fusion_bytes == 0) {
    const std::optional<double> bytes = number_of(fusion);
    if (!bytes) return not_a_number(kFusion, fusion, "16777216");
    given.fusion_bytes = static_cast<std::uint64_t>(*bytes);
  }
  return given;
}

}  // namespace muster::collective
