#include "session/mail.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <thread>

#include "call/arguments.h"
#include "control/monitor.h"
#include "muster/collective/session.h"

namespace muster::collective::session {
namespace {

enum class LetterKind : std::uint8_t {
  kShort = 1,
  kOffer = 2,
  kAccept = 3,
  kPart = 4,
  kRefuse = 5,
  kRead = 6,
  kLeave = 7,
};

// What precedes the bytes of a message.
constexpr std::size_t kShortHead = 1 + 8 + 8;
constexpr std::size_t kPartHead = 1 + 8;
constexpr std::size_t kLongestHead = 1 + 8 + 8 + 8;

class LetterHead {
 public:
  explicit LetterHead(LetterKind kind) { bytes_[0] = static_cast<std::byte>(kind); }
  LetterHead& number(std::uint64_t value) {
    std::memcpy(bytes_.data() + length_, &value, sizeof value);
    length_ += sizeof value;
    return *this;
  }
  ByteView view() const { return ByteView(bytes_).first(length_); }

 private:
  std::array<std::byte, kLongestHead> bytes_ = {};
  std::size_t length_ = 1;
};

// A receiver reports what it has read after this many bytes. Each short message counts some bytes
// more than it has, so that empty messages are limited too.
constexpr std::uint64_t kReportedTogether = Mail::kMostUnread / 4;
constexpr std::uint64_t kAddedToEach = 64;

// A ring holds several parts, so that the sender fills one while the receiver empties another.
constexpr std::uint64_t kPartsInRing = 4;

// The letters of one rank that are read before those of the next.
constexpr int kMostAtATime = 16;

bool matches(int from, std::uint64_t tag, int sender, std::uint64_t sent_tag) {
  return tag == sent_tag && (from == kAnyRank || from == sender);
}

}  // namespace

Mail::Mail(const SessionBase& base, Channel& channel, Settle settle)
    : world_(base.world),
      channel_(channel),
      settle_(std::move(settle)),
      peers_(static_cast<std::size_t>(base.world.size)) {
  if (base.mail != nullptr && base.mail_bytes >= MailRings::least_bytes(world_.size) &&
      channel_.bell_of(world_.rank) != nullptr) {
    rings_.emplace(world_.rank, world_.size, base.mail, base.mail_bytes, base.reserve);
    short_bytes_ = kLongestShortInRing;
    part_bytes_ = (2 * rings_->longest() / kPartsInRing - 2 * kPartHead) / 64 * 64;
    return;
  }
  world_.monitor->handle(Topic::kMail, [this](int from, Bytes payload) {
    std::unique_lock lock(mutex_);
    take({.from = from, .bytes = payload.size(), .payload = &payload});
    finish(std::move(lock));
  });
}

Mail::~Mail() {
  if (!rings_) world_.monitor->handle(Topic::kMail, {});
}

void Mail::send(Operation& operation, std::uint64_t bytes, int to, std::uint64_t tag) {
  std::unique_lock lock(mutex_);
  Peer& receiver = peer(to);
  if (ended_ || receiver.has_left) {
    settle(&operation, ended_ ? *ended_ : lost(to));
    finish(std::move(lock));
    return;
  }
  const std::uint64_t id = ++last_id_;
  const std::uint64_t counted = bytes + kAddedToEach;
  if (bytes <= short_bytes_ && receiver.unread + counted <= kMostUnread) {
    receiver.unread += counted;
    post(to, LetterHead(LetterKind::kShort).number(tag).number(id).view(), {operation.in, bytes});
    settle(&operation, {});
  } else {
    offered_.emplace(Id{to, id}, Sending{.operation = &operation, .bytes = bytes, .tag = tag});
    post(to, LetterHead(LetterKind::kOffer).number(tag).number(id).number(bytes).view());
  }
  finish(std::move(lock));
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
    const Arrived arrived = std::move(*found);
    arrived_.erase(found);
    match(receive, arrived, nullptr);
  } else if (from == kAnyRank ? all_have_left() : peer(from).has_left) {
    settle(&operation, lost(from == kAnyRank ? (world_.rank == 0 ? 1 : 0) : from));
  } else {
    waiting_.push_back(receive);
  }
  finish(std::move(lock));
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
  finish(std::move(lock));
}

void Mail::departed(int rank) {
  std::unique_lock lock(mutex_);
  has_left(rank);
  finish(std::move(lock));
}

// Short messages that found no room in a ring count as sent, so they are delivered first. No event
// reports room to this thread, so it polls, for a second at most: a rank that does not read for so
// long learns of the departure from the monitor.
void Mail::leave() {
  if (!rings_ && !world_.monitor->is_complete()) {
    // To every rank, connected or not, but behind the messages on their connections.
    if (world_.monitor->failed()) return;
    world_.monitor->settle();
    const LetterHead head(LetterKind::kLeave);
    world_.monitor->send_to_all(Topic::kMail, {head.view().begin(), head.view().end()});
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    for (int rank = 0; rank < world_.size; ++rank) {
      if (rank != world_.rank && !peer(rank).has_left)
        post(rank, LetterHead(LetterKind::kLeave).view());
    }
  }
  constexpr int kTries = 1000;
  for (int tries = 0; tries < kTries && some_wait_ && !world_.monitor->failed(); ++tries) {
    if (!collect()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Mail::finish(std::unique_lock<std::mutex> lock) {
  const std::vector<Settled> settled = std::exchange(settled_, {});
  lock.unlock();
  for (const Settled& each : settled) settle_(*each.operation, each.outcome);
}

// The way of letters.

void Mail::post(int to, ByteView head, ByteView body) {
  Peer& receiver = peer(to);
  if (receiver.letters.empty() && deliver(to, head, body)) return;
  Bytes whole;
  whole.reserve(head.size() + body.size());
  whole.insert(whole.end(), head.begin(), head.end());
  whole.insert(whole.end(), body.begin(), body.end());
  receiver.letters.push_back(std::move(whole));
  some_wait_ = true;
}

bool Mail::deliver(int to, ByteView head, ByteView body) {
  if (rings_) {
    if (!rings_->send(to, head, body)) return false;
    channel_.bell_of(to)->notify_of_mail();
    return true;
  }
  Bytes whole;
  whole.reserve(head.size() + body.size());
  whole.insert(whole.end(), head.begin(), head.end());
  whole.insert(whole.end(), body.begin(), body.end());
  world_.monitor->send(to, Topic::kMail, std::move(whole));
  return true;
}

// Letters first, since the answers to the other rank's messages are among them.
bool Mail::deliver_waiting(int to) {
  Peer& receiver = peer(to);
  bool moved = false;
  while (!receiver.letters.empty()) {
    if (!deliver(to, receiver.letters.front(), {})) return moved;
    receiver.letters.pop_front();
    moved = true;
  }
  while (!receiver.streams.empty()) {
    const std::uint64_t id = receiver.streams.front();
    const auto found = offered_.find(Id{to, id});
    while (found != offered_.end() && found->second.sent < found->second.granted) {
      Sending& sending = found->second;
      const std::uint64_t bytes = std::min(part_bytes_, sending.granted - sending.sent);
      const std::byte* const begin = sending.operation->in + sending.sent;
      if (!deliver(to, LetterHead(LetterKind::kPart).number(id).view(), {begin, bytes}))
        return moved;
      sending.sent += bytes;
      moved = true;
    }
    receiver.streams.pop_front();
  }
  return moved;
}

// The bytes of the first letter that found no room; 0 if none waits.
std::uint64_t Mail::next_bytes(const Peer& receiver) const {
  if (!receiver.letters.empty()) return receiver.letters.front().size();
  return receiver.streams.empty() ? 0 : kPartHead + part_bytes_;
}

void Mail::count_waiting() {
  some_wait_ = std::ranges::any_of(peers_, [&](const Peer& each) { return next_bytes(each) > 0; });
}

bool Mail::collect() {
  if (!rings_) return false;
  const std::uint32_t letters =
      channel_.bell_of(world_.rank)->letters.load(std::memory_order_acquire);
  if (letters == seen_letters_ && !some_wait_.load(std::memory_order_relaxed)) return false;
  std::unique_lock lock(mutex_);
  seen_letters_ = letters;
  if (!rings_->open_for_reading()) return false;
  bool moved = false;
  for (int other = 0; other < world_.size; ++other) {
    if (other == world_.rank) continue;
    if (read_ring(other)) moved = true;
  }
  for (int other = 0; other < world_.size; ++other) {
    if (deliver_waiting(other)) moved = true;
  }
  count_waiting();
  finish(std::move(lock));
  return moved;
}

bool Mail::read_ring(int from) {
  for (int taken = 0; taken < kMostAtATime; ++taken) {
    std::uint64_t bytes = 0;
    const Ring::Read found = rings_->look(from, bytes);
    if (found == Ring::Read::kNothing) return taken > 0;
    if (found == Ring::Read::kDamaged) {
      world_.monitor->fail({.code = ErrorCode::kSystem,
                            .message = "the memory that " + world_.name_of(from) + " shares with " +
                                       world_.name_of(world_.rank) + " is damaged",
                            .rank = from,
                            .host = world_.hosts[static_cast<std::size_t>(from)]});
      return true;
    }
    take({.from = from, .bytes = bytes, .rings = &*rings_});
    if (rings_->pop(from)) channel_.bell_of(from)->notify_of_mail();
  }
  --seen_letters_;  // look again
  return true;
}

bool Mail::has_work() {
  if (!rings_ || world_.monitor->failed()) return false;
  const Doorbell& bell = *channel_.bell_of(world_.rank);
  if (bell.letters.load(std::memory_order_acquire) != seen_letters_) return true;
  if (!some_wait_) return false;
  const std::lock_guard lock(mutex_);
  for (int other = 0; other < world_.size; ++other) {
    const std::uint64_t bytes = next_bytes(peer(other));
    if (bytes > 0 && rings_->has_room_for(other, bytes)) return true;
  }
  return false;
}

void Mail::Letter::copy(std::uint64_t offset, std::byte* out, std::uint64_t count) const {
  if (rings != nullptr) {
    rings->copy(from, offset, out, count);
  } else if (count > 0) {
    std::memcpy(out, payload->data() + offset, count);
  }
}

void Mail::take(const Letter& letter) {
  std::array<std::byte, kLongestHead> head = {};
  const std::size_t length = std::min<std::uint64_t>(head.size(), letter.bytes);
  letter.copy(0, head.data(), length);
  ByteReader reader(ByteView(head).first(length));
  const LetterKind kind{reader.number<std::uint8_t>()};
  if (ended_ && kind != LetterKind::kLeave) return;
  const int from = letter.from;
  switch (kind) {
    case LetterKind::kShort: {
      const auto tag = reader.number<std::uint64_t>();
      const auto id = reader.number<std::uint64_t>();
      if (!reader.ok()) return;
      arrive({from, tag, id, letter.bytes - kShortHead, true}, letter);
      return;
    }
    case LetterKind::kOffer: {
      const auto tag = reader.number<std::uint64_t>();
      const auto id = reader.number<std::uint64_t>();
      const auto bytes = reader.number<std::uint64_t>();
      if (reader.ok()) arrive({from, tag, id, bytes, false}, letter);
      return;
    }
    case LetterKind::kAccept: {
      const auto id = reader.number<std::uint64_t>();
      const auto window = reader.number<std::uint64_t>();
      if (reader.ok()) accept(id, from, window);
      return;
    }
    case LetterKind::kPart: {
      const auto id = reader.number<std::uint64_t>();
      if (reader.ok()) add_part(id, letter);
      return;
    }
    case LetterKind::kRefuse: {
      const auto id = reader.number<std::uint64_t>();
      const auto bytes = reader.number<std::uint64_t>();
      if (reader.ok()) refuse(from, id, bytes);
      return;
    }
    case LetterKind::kRead: {
      const auto bytes = reader.number<std::uint64_t>();
      peer(from).unread -= std::min(peer(from).unread, bytes);
      return;
    }
    case LetterKind::kLeave:
      has_left(from);
      return;
  }
}

void Mail::arrive(Arrived arrived, const Letter& letter) {
  const auto found = std::ranges::find_if(waiting_, [&](const Receiving& receive) {
    return matches(receive.from, receive.tag, arrived.from, arrived.tag);
  });
  if (found == waiting_.end()) {
    if (arrived.is_short && letter.payload != nullptr) {
      arrived.letter = std::move(*letter.payload);
    } else if (arrived.is_short) {
      arrived.letter.resize(letter.bytes);
      letter.copy(0, arrived.letter.data(), letter.bytes);
    }
    arrived_.push_back(std::move(arrived));
    return;
  }
  Receiving receive = *found;
  waiting_.erase(found);
  match(receive, arrived, &letter);
}

// `letter`: that of a message which has just arrived; null for one that was kept.
void Mail::match(Receiving& receive, const Arrived& arrived, const Letter* letter) {
  if (receive.sender != nullptr) *receive.sender = arrived.from;
  if (arrived.is_short) report_read(arrived.from, arrived.length + kAddedToEach);
  if (receive.bytes != arrived.length) {
    if (!arrived.is_short) {
      post(arrived.from,
           LetterHead(LetterKind::kRefuse).number(arrived.id).number(receive.bytes).view());
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
  if (arrived.is_short) {
    if (letter != nullptr) {
      letter->copy(kShortHead, receive.operation->out, receive.bytes);
    } else if (receive.bytes > 0) {
      std::memcpy(receive.operation->out, arrived.letter.data() + kShortHead, receive.bytes);
    }
    settle(receive.operation, {});
    return;
  }
  const std::uint64_t window =
      rings_ ? receive.bytes : std::min<std::uint64_t>(kWindow, receive.bytes);
  post(arrived.from, LetterHead(LetterKind::kAccept).number(arrived.id).number(window).view());
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
  // The receiver accepts one byte more than there are once it has them all.
  if (window > sending.bytes || sending.bytes == 0) {
    settle(sending.operation, {});
    offered_.erase(found);
    return;
  }
  sending.granted = std::max(sending.granted, window);
  peer(from).streams.push_back(id);
  deliver_waiting(from);
  if (next_bytes(peer(from)) > 0) some_wait_ = true;
}

void Mail::add_part(std::uint64_t id, const Letter& letter) {
  const auto found = incoming_.find(Id{letter.from, id});
  if (found == incoming_.end()) return;
  Receiving& receiving = found->second;
  const std::uint64_t taken =
      std::min<std::uint64_t>(letter.bytes - kPartHead, receiving.bytes - receiving.got);
  if (taken > 0) letter.copy(kPartHead, receiving.operation->out + receiving.got, taken);
  receiving.got += taken;
  const bool is_whole = receiving.got == receiving.bytes;
  const std::uint64_t window =
      is_whole ? receiving.bytes + 1 : std::min(receiving.got + kWindow, receiving.bytes);
  if (is_whole || !rings_) {
    post(letter.from, LetterHead(LetterKind::kAccept).number(id).number(window).view());
  }
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
  post(from, LetterHead(LetterKind::kRead).number(news).view());
}

// Short messages of the rank can still be received; the bytes of its offers cannot.
void Mail::has_left(int rank) {
  if (std::exchange(peer(rank).has_left, true)) return;
  const bool is_alone = all_have_left();
  peer(rank).letters.clear();
  peer(rank).streams.clear();
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
    return arrived.from == rank && !arrived.is_short;
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
