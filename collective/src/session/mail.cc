#include "session/mail.h"

#include <algorithm>
#include <cstring>

#include "call/arguments.h"
#include "control/monitor.h"
#include "muster/collective/session.h"

namespace muster::collective::session {
namespace {

enum class Letters : std::uint8_t {
  kShort = 1,
  kOffer = 2,
  kAccept = 3,
  kPart = 4,
  kRefuse = 5,
  kRead = 6,
  kLeave = 7,
};

constexpr std::size_t kShortHead = 1 + 8 + 8;

// A receiver reports what it has read after this many bytes. Each short message counts some bytes
// more than it has, so that empty messages are limited too.
constexpr std::uint64_t kReportedTogether = Mail::kMostUnread / 4;
constexpr std::uint64_t kAddedToEach = 64;

ByteWriter letter(Letters kind, std::size_t bytes = 32) {
  ByteWriter writer(bytes);
  writer.number(static_cast<std::uint8_t>(kind));
  return writer;
}

bool matches(int from, std::uint64_t tag, int sender, std::uint64_t sent_tag) {
  return tag == sent_tag && (from == kAnyRank || from == sender);
}

}  // namespace

Mail::Mail(World& world, Settle settle)
    : world_(world), settle_(std::move(settle)), peers_(static_cast<std::size_t>(world.size)) {
  world_.monitor->handle(Topic::kMail, [this](int from, Bytes payload) {
    std::unique_lock lock(mutex_);
    take(from, payload, payload);
    flush(std::move(lock));
  });
}

Mail::~Mail() {
  world_.monitor->handle(Topic::kMail, {});
}

void Mail::send(Operation& operation, std::uint64_t bytes, int to, std::uint64_t tag) {
  std::unique_lock lock(mutex_);
  Peer& receiver = peer(to);
  if (ended_ || receiver.has_left) {
    settle(&operation, ended_ ? *ended_ : lost(to));
    flush(std::move(lock));
    return;
  }
  const std::uint64_t id = ++last_id_;
  const std::uint64_t counted = bytes + kAddedToEach;
  if (bytes <= kLongestShort && receiver.unread + counted <= kMostUnread) {
    receiver.unread += counted;
    ByteWriter writer = letter(Letters::kShort, kShortHead + bytes);
    writer.number(tag).number(id).raw({operation.in, bytes});
    letters_.push_back({to, writer.take()});
    settle(&operation, {});
  } else {
    offered_.emplace(Id{to, id}, Sending{.operation = &operation, .bytes = bytes, .tag = tag});
    letters_.push_back({to, letter(Letters::kOffer).number(tag).number(id).number(bytes).take()});
  }
  flush(std::move(lock));
}

void Mail::receive(Operation& operation, std::uint64_t bytes, int from, std::uint64_t tag,
                   int* sender) {
  std::unique_lock lock(mutex_);
  Receiving receive{
      .operation = &operation, .bytes = bytes, .from = from, .tag = tag, .sender = sender};
  const auto found = std::ranges::find_if(arrived_, [&](const Arrived& arrived) {
    return matches(from, tag, arrived.from, arrived.tag);
  });
  if (ended_) {
    settle(&operation, *ended_);
  } else if (found != arrived_.end()) {
    Arrived arrived = std::move(*found);
    arrived_.erase(found);
    match(receive, arrived);
  } else if (from == kAnyRank ? all_have_left() : peer(from).has_left) {
    settle(&operation, lost(from == kAnyRank ? (world_.rank == 0 ? 1 : 0) : from));
  } else {
    waiting_.push_back(receive);
  }
  flush(std::move(lock));
}

void Mail::end(const Error& why) {
  std::unique_lock lock(mutex_);
  if (ended_) return;
  ended_ = why;
  const auto fail = [&](Operation* operation) {
    Error error = why;
    error.message += ", with '" + operation->name + "' pending";
    settle(operation, std::move(error));
  };
  for (const auto& [id, sending] : offered_) fail(sending.operation);
  for (const auto& [id, receiving] : incoming_) fail(receiving.operation);
  for (const Receiving& receiving : waiting_) fail(receiving.operation);
  offered_.clear();
  incoming_.clear();
  waiting_.clear();
  arrived_.clear();
  flush(std::move(lock));
}

void Mail::departed(int rank) {
  std::unique_lock lock(mutex_);
  has_left(rank);
  flush(std::move(lock));
}

void Mail::leave() {
  std::unique_lock lock(mutex_);
  for (int rank = 0; rank < world_.size; ++rank) {
    if (rank != world_.rank) letters_.push_back({rank, letter(Letters::kLeave).take()});
  }
  flush(std::move(lock));
}

void Mail::flush(std::unique_lock<std::mutex> lock) {
  lock.unlock();
  {
    const std::lock_guard order(order_);
    lock.lock();
    std::deque<Letter> letters = std::exchange(letters_, {});
    lock.unlock();
    for (Letter& each : letters) {
      world_.monitor->send(each.to, Topic::kMail, std::move(each.bytes));
    }
  }
  lock.lock();
  std::vector<Settled> settled = std::exchange(settled_, {});
  lock.unlock();
  for (const Settled& each : settled) settle_(*each.operation, each.outcome);
}

// `payload` owns the bytes of `message`.
void Mail::take(int from, ByteView message, Bytes& payload) {
  ByteReader reader(message);
  const Letters kind{reader.number<std::uint8_t>()};
  if (ended_ && kind != Letters::kLeave) return;
  switch (kind) {
    case Letters::kShort: {
      const auto tag = reader.number<std::uint64_t>();
      const auto id = reader.number<std::uint64_t>();
      if (!reader.ok()) return;
      const std::uint64_t length = message.size() - kShortHead;
      arrive({from, tag, id, length, std::move(payload)});
      return;
    }
    case Letters::kOffer: {
      const auto tag = reader.number<std::uint64_t>();
      const auto id = reader.number<std::uint64_t>();
      const auto length = reader.number<std::uint64_t>();
      if (reader.ok()) arrive({from, tag, id, length, std::nullopt});
      return;
    }
    case Letters::kAccept: {
      const auto id = reader.number<std::uint64_t>();
      const auto window = reader.number<std::uint64_t>();
      if (reader.ok()) accept(id, from, window);
      return;
    }
    case Letters::kPart: {
      const auto id = reader.number<std::uint64_t>();
      if (reader.ok()) add_part(from, id, message.subspan(1 + sizeof id));
      return;
    }
    case Letters::kRefuse: {
      const auto id = reader.number<std::uint64_t>();
      const auto length = reader.number<std::uint64_t>();
      if (reader.ok()) refuse(from, id, length);
      return;
    }
    case Letters::kRead: {
      const auto bytes = reader.number<std::uint64_t>();
      peer(from).unread -= std::min(peer(from).unread, bytes);
      return;
    }
    case Letters::kLeave:
      has_left(from);
      return;
  }
}

void Mail::arrive(Arrived arrived) {
  const auto found = std::ranges::find_if(waiting_, [&](const Receiving& receive) {
    return matches(receive.from, receive.tag, arrived.from, arrived.tag);
  });
  if (found == waiting_.end()) {
    arrived_.push_back(std::move(arrived));
    return;
  }
  Receiving receive = *found;
  waiting_.erase(found);
  match(receive, arrived);
}

void Mail::match(Receiving& receive, Arrived& arrived) {
  if (receive.sender != nullptr) *receive.sender = arrived.from;
  if (arrived.content) report_read(arrived.from, arrived.length + kAddedToEach);
  if (receive.bytes != arrived.length) {
    if (!arrived.content) {
      letters_.push_back(
          {arrived.from, letter(Letters::kRefuse).number(arrived.id).number(receive.bytes).take()});
    }
    settle(
        receive.operation,
        Error{.code = ErrorCode::kMismatch,
              .message = "'" + receive.operation->name + "': " + world_.name_of(arrived.from) +
                         " sends " + std::to_string(arrived.length) + " bytes; " +
                         world_.name_of(world_.rank) + " receives " + std::to_string(receive.bytes),
              .advice = "both ranks must pass the same length",
              .rank = arrived.from,
              .host = world_.hosts[static_cast<std::size_t>(arrived.from)]});
    return;
  }
  if (arrived.content) {
    if (receive.bytes > 0) {
      std::memcpy(receive.operation->out, arrived.content->data() + kShortHead, receive.bytes);
    }
    settle(receive.operation, {});
    return;
  }
  letters_.push_back({arrived.from, letter(Letters::kAccept)
                                        .number(arrived.id)
                                        .number(std::min<std::uint64_t>(kWindow, receive.bytes))
                                        .take()});
  if (receive.bytes == 0) {
    settle(receive.operation, {});
  } else {
    incoming_.emplace(Id{arrived.from, arrived.id}, receive);
  }
}

void Mail::accept(std::uint64_t id, int from, std::uint64_t window) {
  const auto found = offered_.find(Id{from, id});
  if (found == offered_.end()) return;
  Sending& sending = found->second;
  const std::uint64_t end = std::min(window, sending.bytes);
  while (sending.sent < end) {
    const std::uint64_t bytes = std::min<std::uint64_t>(kPart, end - sending.sent);
    ByteWriter writer = letter(Letters::kPart, bytes + 16);
    writer.number(id).raw({sending.operation->in + sending.sent, bytes});
    letters_.push_back({from, writer.take()});
    sending.sent += bytes;
  }
  // The receiver accepts one byte more than there are once it has them all.
  if (window > sending.bytes || sending.bytes == 0) {
    settle(sending.operation, {});
    offered_.erase(found);
  }
}

void Mail::add_part(int from, std::uint64_t id, ByteView bytes) {
  const auto found = incoming_.find(Id{from, id});
  if (found == incoming_.end()) return;
  Receiving& receiving = found->second;
  const std::uint64_t taken =
      std::min<std::uint64_t>(bytes.size(), receiving.bytes - receiving.got);
  if (taken > 0) std::memcpy(receiving.operation->out + receiving.got, bytes.data(), taken);
  receiving.got += taken;
  const bool is_whole = receiving.got == receiving.bytes;
  const std::uint64_t window =
      is_whole ? receiving.bytes + 1 : std::min(receiving.got + kWindow, receiving.bytes);
  letters_.push_back({from, letter(Letters::kAccept).number(id).number(window).take()});
  if (!is_whole) return;
  settle(receiving.operation, {});
  incoming_.erase(found);
}

void Mail::refuse(int from, std::uint64_t id, std::uint64_t length) {
  const auto found = offered_.find(Id{from, id});
  if (found == offered_.end()) return;
  settle(
      found->second.operation,
      Error{.code = ErrorCode::kMismatch,
            .message = "'" + found->second.operation->name + "': " + world_.name_of(world_.rank) +
                       " sends " + std::to_string(found->second.bytes) + " bytes; " +
                       world_.name_of(from) + " receives " + std::to_string(length),
            .advice = "both ranks must pass the same length",
            .rank = from,
            .host = world_.hosts[static_cast<std::size_t>(from)]});
  offered_.erase(found);
}

void Mail::report_read(int from, std::uint64_t bytes) {
  Peer& sender = peer(from);
  sender.received += bytes;
  const std::uint64_t news = sender.received - sender.reported;
  if (news < kReportedTogether) return;
  sender.reported = sender.received;
  letters_.push_back({from, letter(Letters::kRead).number(news).take()});
}

// Short messages of the rank can still be received; the bytes of its offers cannot.
void Mail::has_left(int rank) {
  if (std::exchange(peer(rank).has_left, true)) return;
  const bool is_alone = all_have_left();
  const auto is_of = [rank](const auto& entry) { return entry.first.first == rank; };
  for (const auto& entry : offered_) {
    if (is_of(entry)) settle(entry.second.operation, lost(rank));
  }
  for (const auto& entry : incoming_) {
    if (is_of(entry)) settle(entry.second.operation, lost(rank));
  }
  std::erase_if(offered_, is_of);
  std::erase_if(incoming_, is_of);
  std::erase_if(arrived_, [rank](const Arrived& arrived) {
    return arrived.from == rank && !arrived.content;
  });
  std::erase_if(waiting_, [&](const Receiving& receive) {
    const bool fails = receive.from == rank || (receive.from == kAnyRank && is_alone);
    if (fails) settle(receive.operation, lost(rank));
    return fails;
  });
}

bool Mail::all_have_left() const {
  for (int rank = 0; rank < world_.size; ++rank) {
    if (rank != world_.rank && !peers_[static_cast<std::size_t>(rank)].has_left) return false;
  }
  return true;
}

Error Mail::lost(int rank) const {
  return {.code = ErrorCode::kPeerLost,
          .message = world_.name_of(rank) + " has left the session",
          .advice = "both ranks of a message must take part in it before a rank leaves",
          .rank = rank,
          .host = world_.hosts[static_cast<std::size_t>(rank)]};
}

}  // namespace muster::collective::session
